"""Products of matrices and tensors, against real JAX."""

import string

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import namoo
import namoo.numpy as jnp
import numpy_oracle as oracle

EXPRESSIONS = """
jnp.dot(g, g)
jnp.dot(f, g)
jnp.dot(f, m)
jnp.dot(z, m)
jnp.dot(z, f.T)
jnp.dot(f, 2.0)
jnp.dot(2, 3)
jnp.dot(i, j)
jnp.dot(i, g)
jnp.dot(h, h.T)
jnp.dot(b, b.T)
jnp.dot(h, g)
jnp.dot(k, u.T)
jnp.dot(t, t.T)
jnp.dot(c, m)
jnp.dot(f, f)
jnp.dot(f, f.T, preferred_element_type='float16')
jnp.dot(f, f.T, precision='highest')
jnp.dot([1], g)
jnp.matmul(f, m)
jnp.matmul(g, g)
jnp.matmul(f, g)
jnp.matmul(g, m)
jnp.matmul(z, m)
jnp.matmul(z, g)
jnp.matmul(z, z.mT)
jnp.matmul(z[:, None], f.T)
jnp.matmul(z[:, None], z[None].mT)
jnp.matmul(z[:1], z.mT)
jnp.matmul(z[:1], z[:1].mT)
jnp.matmul(f, z.mT)
jnp.matmul(g, z.mT)
jnp.matmul(e, m)
jnp.matmul(i, m)
jnp.matmul(i, j)
jnp.matmul(h, b.T)
jnp.matmul(f, f)
jnp.matmul(f, s)
jnp.matmul(2.0, g)
jnp.matmul(z, jnp.ones((5, 4, 3)))
jnp.matmul(f, m, preferred_element_type='bfloat16')
f @ m
f @ f.T
g @ m
f @ 2
[1.0] @ g
np.ones((2, 4), np.float32) @ g
jnp.vdot(f, p)
jnp.vdot(c, c)
jnp.vdot(c, f)
jnp.vdot(f, g)
jnp.vecdot(f, g)
jnp.vecdot(c, c)
jnp.vecdot(f, p, axis=0)
jnp.vecdot(f, m)
jnp.vecdot(f, g[:3])
jnp.matvec(z, g)
jnp.matvec(z, f)
jnp.matvec(f, f[0])
jnp.vecmat(g, m)
jnp.vecmat(c, m)
jnp.tensordot(f, m, 1)
jnp.tensordot(z, z, 3)
jnp.tensordot(f, f, ((0, 1), (0, 1)))
jnp.tensordot(f, f, (1, 1))
jnp.tensordot(z, f, ([1, 2], [0, 1]))
jnp.tensordot(f, g, 0)
jnp.tensordot(f, m, 3)
jnp.tensordot(f, m, ((0,), (0, 1)))
jnp.tensordot(f, f, 'a')
jnp.tensordot(f, f, 1)
jnp.inner(g, g)
jnp.inner(f, m)
jnp.inner(f, 2.0)
jnp.inner(f, g[:2])
jnp.outer(g, j)
jnp.outer(f, s)
jnp.outer(f, f, f)
jnp.kron(f, i)
jnp.kron(g, f)
jnp.kron(2, g)
jnp.cross(f[:, :3], f[:, 1:])
jnp.cross(f[:, :2], f[:, 2:])
jnp.cross(f[:, :3], f[:, :2])
jnp.cross(f[:, :2], f[0, :3])
jnp.cross(f[:3].T, p.T, axis=1)
jnp.cross(f, p, axisa=0, axisb=0, axisc=0)
jnp.cross(g, g)
jnp.trace(m)
jnp.trace(f, 1)
jnp.trace(z, -1, 1, 2)
jnp.trace(i, dtype='float32')
jnp.trace(u)
jnp.trace(g)
jnp.trace(z, axis1=1, axis2=1)
jnp.einsum('ij,jk->ik', f, m)
jnp.einsum('ij,kj->ik', f, m)
jnp.einsum('ij->ji', f)
jnp.einsum('ij->', f)
jnp.einsum('ii', m)
jnp.einsum('ii->i', m)
jnp.einsum('iij->j', jnp.ones((2, 2, 3)))
jnp.einsum('i,j', g, j)
jnp.einsum('ij,j', f, g)
jnp.einsum('ij,ij->i', f, p)
jnp.einsum('bij,bjk->bik', z, z.mT)
jnp.einsum('bij,jk,kl->bil', z, m, m)
jnp.einsum('...j,jk->...k', z, m)
jnp.einsum('...ij,...jk', z, m)
jnp.einsum('i...->...', f)
jnp.einsum('ij,jk,kl,lm->im', f, m, m, f.T, optimize='greedy')
jnp.einsum('ij,jk,kl->il', f, m, m, optimize=False)
jnp.einsum('ij,jk,kl->il', f, m, m, optimize=True)
jnp.einsum('ij,jk,kl->il', f, m, m, optimize=[(0, 1), (0, 1)])
jnp.einsum('ij,ij,ij->j', f, p, i)
jnp.einsum('ij->i', t)
jnp.einsum('ij->', t, preferred_element_type=int)
jnp.einsum('ii', m > 0)
jnp.einsum('ij,ij->i', t, t)
jnp.einsum('ij,ik->', t, t)
jnp.einsum('ij,ij->i', h, b)
jnp.einsum('ij,j->i', k, g)
jnp.einsum('ij,ij->i', u, k)
jnp.einsum('ij,ij->i', t, c)
jnp.einsum('ij,ik,i->jk', t, k, h[:, 0])
jnp.einsum('ij->', h, preferred_element_type='float32')
jnp.einsum('ij,->ij', h, 2.5)
jnp.einsum('i,i->', g, j)
jnp.einsum('ij,jk->ik', i, i.T)
jnp.einsum('ij,jk->ik', h, h.T)
jnp.einsum('ij,jk->ik', f, c.T)
jnp.einsum('ij,jk->ik', f, m, preferred_element_type='float16')
jnp.einsum(f, [0, 1], m, [1, 2], [0, 2])
jnp.einsum(f, [0, 1], m, [1, 2])
jnp.einsum(m, [0, 0])
jnp.einsum('ij,jk->ik', f, f)
jnp.einsum('ij,jk->iz', f, m)
jnp.einsum('ijk->i', f)
jnp.einsum('ij,jk->ik', f)
jnp.einsum('ij,jk->ik', f[:, :1], m)
jnp.einsum('ij', f, out=f)
jnp.einsum('i->i', g)
jnp.einsum('ij->', jnp.full((2, 2), 1.5))
jnp.einsum_path('ij,jk,kl->il', f, m, m)[0]
""".strip().splitlines()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_as_jax(expression):
    oracle.check_traced(tuple(EXPRESSIONS), expression)


@st.composite
def formulas(draw):
    """An einsum formula over few letters, and shapes that fit it."""
    sizes = {letter: draw(st.integers(1, 3)) for letter in "abcd"}
    terms = draw(st.lists(st.text("abcd", max_size=4), min_size=1, max_size=4))
    used = sorted(set("".join(terms)))
    output = draw(st.permutations(used))[: draw(st.integers(0, len(used)))]
    shapes = [tuple(sizes[letter] for letter in term) for term in terms]
    return f"{','.join(terms)}->{''.join(output)}", shapes


@given(formulas())
def test_einsum_as_in_numpy(case):
    formula, shapes = case
    arrays = [
        np.cos(np.arange(np.prod(shape, dtype=int)) + i).reshape(shape).astype(np.float32)
        for i, shape in enumerate(shapes)
    ]
    wanted = np.einsum(formula, *(x.astype(np.float64) for x in arrays))
    found = np.asarray(jnp.einsum(formula, *arrays))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@given(
    st.lists(st.sampled_from([1, 2, 3]), max_size=3),
    st.integers(0, 3),
    st.integers(0, 3),
    st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_matmul_broadcasts_as_in_numpy(lead, skip_x, skip_y, ones):
    def leading(skip, flags):
        return tuple(1 if one else n for n, one in zip(lead, flags, strict=False))[skip:]

    x = np.random.RandomState(0).randn(*leading(skip_x, ones[:3]), 2, 3).astype(np.float32)
    y = np.random.RandomState(1).randn(*leading(skip_y, ones[3:]), 3, 4).astype(np.float32)
    wanted = np.matmul(x, y)
    for found in (jnp.matmul(x, y), jnp.matmul(x, y, precision="highest")):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, atol=1e-5)


def test_letters_are_enough():
    many = string.ascii_letters[:30]
    x = jnp.ones((1,) * 30)
    assert jnp.einsum(f"{many}->", x) == 1


@pytest.mark.parametrize("other", ["complex64", "float16", "int8", "bool"])
def test_derivative_beside_an_operand_of_another_type(other):
    x, y = np.arange(3, dtype=np.float32), np.arange(3, dtype=np.int8).astype(other)

    def derivative(package):
        fun = package.numpy
        return package.grad(lambda x: fun.real(fun.einsum("a,a->", x, fun.asarray(y))))(x)

    found, wanted = derivative(namoo), derivative(jax)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
