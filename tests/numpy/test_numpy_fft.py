"""`jnp.fft` against real JAX: values, dtypes, weak types, shapes, errors, derivatives."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import namoo
import namoo.numpy as jnp
import numpy_gradients as gradients
import numpy_oracle as oracle

ONE_AXIS = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
TWO_AXES = ["fft2", "ifft2", "rfft2", "irfft2"]
MANY_AXES = ["fftn", "ifftn", "rfftn", "irfftn"]

ONE = [
    "f",
    "c",
    "i",
    "t",
    "h",
    "s",
    "2.0",
    "f, 3",
    "f, 6",
    "c, n=5, axis=0",
    "f, axis=0, norm='ortho'",
    "c, norm='forward'",
    "f, norm='backward'",
    "f, norm='other'",
    "f, n=0",
    "f, n=-1",
    "f, n=2.5",
    "f, axis=2",
    "f, axis=(0, 1)",
    "e, axis=-1",
    "jnp.asarray(2.0)[None]",
    "[1.0, 2.0]",
]
TWO = [
    "z",
    "c",
    "z, s=(2, 5)",
    "z, axes=(0, 1), norm='ortho'",
    "c, norm='forward'",
    "z, axes=(0,)",
    "z, s=(2,)",
    "g",
]
MANY = [
    "z",
    "c",
    "i",
    "z, s=(2, 5)",
    "z, s=(3, 2, 3)",
    "z, axes=(2, 0), norm='ortho'",
    "z, s=(3, 5), axes=(1, 0)",
    "z, axes=(0, 0)",
    "z, s=(1,), axes=(0, 1)",
    "z, s=(0, 2)",
    "z, axes=(0, 5)",
    "jnp.ones((2, 1, 2, 2, 3), jnp.float32)",
]
OTHERS = [
    "jnp.fft.fftn(f, axes=())",
    "jnp.fft.fftn(s)",
    *(
        f"jnp.fft.{name}({args})"
        for name in ("fftfreq", "rfftfreq")
        for args in (
            "5",
            "4, d=2",
            "6, 0.1",
            "4, s",
            "1",
            "0",
            "5, dtype='float16'",
            "5, dtype='complex64'",
            "[3]",
            "3, [1.0]",
        )
    ),
    *(
        f"jnp.fft.{name}({args})"
        for name in ("fftshift", "ifftshift")
        for args in ("g", "i, axes=1", "z, axes=(0, 2)", "z", "c, -1", "g, axes=3", "[1]", "e", "s")
    ),
]
TABLES = {
    "one axis": [f"jnp.fft.{name}({args})" for name in ONE_AXIS for args in ONE],
    "two axes": [f"jnp.fft.{name}({args})" for name in TWO_AXES for args in TWO],
    "many axes": [f"jnp.fft.{name}({args})" for name in MANY_AXES for args in MANY],
    "others": OTHERS,
}
# JAX takes a list here by accident, and tells a wrong axis in other words than everywhere else.
SKIPPED = {
    "jnp.fft.ihfft([1.0, 2.0])",
    *(
        f"jnp.fft.{name}({args})"
        for name in ("hfft", "ihfft")
        for args in ("s", "2.0", "f, axis=2")
    ),
}
CASES = [(name, text) for name, table in TABLES.items() for text in table if text not in SKIPPED]


@pytest.mark.parametrize(("table", "expression"), CASES)
def test_as_jax(table, expression):
    oracle.check_traced(tuple(TABLES[table]), expression)


@settings(max_examples=40)
@given(st.data())
def test_transforms_of_any_axes(data):
    """Any axes of any shape, in any order, against NumPy; and the inverse gives them back."""
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    axes = data.draw(st.permutations(range(len(shape))))
    axes = tuple(axes[: data.draw(st.integers(1, len(shape)))])
    norm = data.draw(st.sampled_from([None, "backward", "ortho", "forward"]))
    rng = np.random.RandomState(sum(shape))
    x = rng.randn(*shape) + 1j * rng.randn(*shape)
    found = jnp.fft.fftn(jnp.asarray(x), axes=axes, norm=norm)
    np.testing.assert_allclose(found, np.fft.fftn(x, axes=axes, norm=norm), 1e-4, 1e-4)
    back = jnp.fft.ifftn(found, axes=axes, norm=norm)
    np.testing.assert_allclose(back, x, 1e-4, 1e-4)
    real = jnp.fft.rfftn(jnp.asarray(x.real), axes=axes, norm=norm)
    np.testing.assert_allclose(real, np.fft.rfftn(x.real, axes=axes, norm=norm), 1e-4, 1e-4)
    sizes = [shape[axis] for axis in axes]
    again = jnp.fft.irfftn(real, s=sizes, axes=axes, norm=norm)
    np.testing.assert_allclose(again, x.real, 1e-4, 1e-4)


def test_mapped():
    x = gradients.normal(2, 3, 4)
    found = namoo.vmap(jnp.fft.rfft2, in_axes=1, out_axes=1)(jnp.asarray(x))
    wanted = jax.vmap(jax.numpy.fft.rfft2, in_axes=1, out_axes=1)(x)
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)


@pytest.mark.parametrize(
    "call",
    [
        lambda fft: fft.ifft(np.ones((2, 3)), axis=(0, 1)),
        lambda fft: fft.rfftn(np.ones((2, 3)), axes=[1, 1]),
        lambda fft: fft.irfft2(np.ones((2, 3)), axes=[0]),
        lambda fft: fft.fftfreq([3]),
        lambda fft: fft.rfftfreq(3, d=[1.0]),
    ],
)
def test_messages_begin_with_those_of_jax(call):
    with pytest.raises(ValueError) as wanted:  # noqa: PT011 - its text is compared
        call(jax.numpy.fft)
    with pytest.raises(ValueError) as found:  # noqa: PT011
        call(jnp.fft)
    assert str(found.value).startswith(str(wanted.value))
