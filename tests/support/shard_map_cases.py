"""Functions over a mesh of 4 × 2 devices, for both namoo and JAX.

Run as a script, `python shard_map_cases.py FILE`, it writes JAX's results to a file: JAX needs the
number of devices before it is loaded.

"""

import os
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

X = np.arange(32.0, dtype=np.float32).reshape(8, 4) / 8
W = np.linspace(0, 1, 4, dtype=np.float32)
BOTH = ("x", "y")


@dataclass
class Case:
    """`fun(m, *parts)`, where `m` is namoo or JAX, and how arrays are split and joined."""

    name: str
    fun: Any
    ins: list
    out: tuple
    args: tuple = (X,)
    grad: Any = None
    options: dict = field(default_factory=dict)

    def run(self, m, mesh, spec, outer=None):
        """Return the results as a list; `outer` is applied to the mapped function."""
        mapped = m.shard_map(
            lambda *parts: self.fun(m, *parts),
            mesh=mesh,
            in_specs=tuple(spec(*e) for e in self.ins),
            out_specs=spec(*self.out),
            **self.options,
        )
        function = mapped
        if self.grad is not None:
            function = m.grad(lambda *args: (mapped(*args) ** 2).sum(), argnums=self.grad)
        out = (outer or m.jit)(function)(*self.args)
        return m.tree.leaves(out)


def _sgd(m, w, rows):
    def step(w, row):
        return w - 0.01 * m.grad(lambda w: ((row * w) ** 2).sum())(w), None

    return m.lax.scan(step, w, rows)[0]


def _ring(m, a):
    return m.lax.ppermute(a, "x", [(0, 1), (1, 2), (2, 3), (3, 0)])


SPLIT, WHOLE = ("x",), ()
WEIGHTS: dict[str, Any] = dict(ins=[WHOLE, SPLIT], args=(W, X))
UNCHECKED = {"check_vma": False}

CASES = [
    Case("elementwise", lambda m, a: a * 2, [BOTH], BOTH),
    Case("psum", lambda m, a: m.lax.psum(a, "x"), [BOTH], (None, "y")),
    Case("psum of both", lambda m, a: m.lax.psum(a.sum(), BOTH), [BOTH], WHOLE),
    Case(
        "psum in groups",
        lambda m, a: m.lax.psum(a, "x", axis_index_groups=[[0, 2], [1, 3]]),
        [BOTH],
        BOTH,
        options=UNCHECKED,
    ),
    Case("pmax", lambda m, a: m.lax.pmax(a, "x"), [BOTH], (None, "y")),
    Case("pmin", lambda m, a: m.lax.pmin(a, "x"), [BOTH], (None, "y")),
    Case("pmean", lambda m, a: m.lax.pmean(a, "x"), [BOTH], (None, "y")),
    Case(
        "axis_index",
        lambda m, a: a + m.lax.axis_index("x") * 10 + m.lax.axis_index("y"),
        [BOTH],
        BOTH,
    ),
    Case("axis_size", lambda m, a: a * m.lax.axis_size("x"), [BOTH], BOTH),
    Case("all_gather", lambda m, a: m.lax.all_gather(a, "x"), [BOTH], (None, "x", "y")),
    Case("all_gather tiled", lambda m, a: m.lax.all_gather(a, "x", tiled=True), [BOTH], BOTH),
    Case("all_gather axis", lambda m, a: m.lax.all_gather(a, "y", axis=1), [BOTH], ("x", "y")),
    Case("ppermute", _ring, [BOTH], BOTH),
    Case("ppermute some", lambda m, a: m.lax.ppermute(a, "x", [(0, 1), (2, 0)]), [BOTH], BOTH),
    Case(
        "psum_scatter",
        lambda m, a: m.lax.psum_scatter(a, "y", scatter_dimension=0, tiled=True),
        [(None, "y")],
        ("y", None),
    ),
    Case(
        "psum_scatter of rows",
        lambda m, a: m.lax.psum_scatter(a, "x", scatter_dimension=1),
        [("x", None)],
        ("x",),
    ),
    Case(
        "all_to_all tiled",
        lambda m, a: m.lax.all_to_all(a, "x", 0, 1, tiled=True),
        [(None, "x")],
        ("x",),
    ),
    Case("all_to_all", lambda m, a: m.lax.all_to_all(a, "x", 1, 0), [("x", None)], (None, "x")),
    Case("matmul", lambda m, a: m.lax.psum(a @ a.T, "y"), [(None, "y")], WHOLE),
    Case("cond", lambda m, a: m.lax.cond(m.lax.axis_index("x") > 1, lambda: a * 2, lambda: a),
         [BOTH], BOTH),
    Case("tuple of axes", lambda m, a: a + 1, [(("x", "y"),)], (("y", "x"),)),
    Case("part of the axes", lambda m, a: m.lax.psum(a, "x"), [SPLIT], WHOLE,
         options={"axis_names": {"x"}}),
    Case("vmap inside", lambda m, a: m.vmap(lambda r: m.lax.psum(r, "x"))(a), [BOTH], (None, "y")),
    Case("jit inside", lambda m, w, a: m.jit(m.grad(lambda w: (a * w * w).sum()))(w), out=WHOLE,
         **WEIGHTS),
    # Gradients inside: those of what all devices share are sums.
    Case("grad inside", lambda m, w, a: m.grad(lambda w: (a * w * w).sum())(w), out=WHOLE,
         **WEIGHTS),
    Case(
        "grad of a mean inside",
        lambda m, w, a: m.grad(lambda w: m.lax.pmean((a * w * w).sum(), "x"))(w),
        out=WHOLE,
        **WEIGHTS,
    ),
    Case(
        "mean of a grad inside",
        lambda m, w, a: m.lax.pmean(m.grad(lambda w: (a * w * w).sum())(w), "x"),
        out=WHOLE,
        **WEIGHTS,
    ),
    Case(
        "mean of a grad inside, unchecked",
        lambda m, w, a: m.lax.pmean(m.grad(lambda w: (a * w * w).sum())(w), "x"),
        out=WHOLE,
        options=UNCHECKED,
        **WEIGHTS,
    ),
    Case("steps inside", _sgd, out=WHOLE, **WEIGHTS),
    # Gradients of the whole.
    Case("grad", lambda m, a: m.numpy.sin(a), [BOTH], BOTH, grad=0),
    Case("grad of psum", lambda m, a: m.lax.psum(m.numpy.sin(a), "x"), [BOTH], (None, "y"), grad=0),
    Case("grad of all_gather", lambda m, a: m.lax.all_gather(m.numpy.sin(a), "x"), [BOTH],
         (None, "x", "y"), grad=0),
    Case("grad of ppermute", lambda m, a: _ring(m, m.numpy.sin(a)), [BOTH], BOTH, grad=0),
    Case("grad by shared", lambda m, w, a: a * w, out=SPLIT, grad=(0, 1), **WEIGHTS),
    Case("grad of a sum by shared", lambda m, w, a: m.lax.psum((a * w).sum(), "x"), out=WHOLE,
         grad=(0, 1), **WEIGHTS),
    Case(
        "grad by shared, unchecked",
        lambda m, w, a: m.lax.psum((a * w).sum(), "x"),
        out=WHOLE,
        grad=(0, 1),
        options=UNCHECKED,
        **WEIGHTS,
    ),
    Case(
        "grad with a scalar kept",
        lambda m, w, a: m.numpy.sin(m.lax.psum(a.sum(), "x")) * w,
        out=WHOLE,
        grad=(0, 1),
        **WEIGHTS,
    ),
]  # fmt: skip


Y = np.arange(8.0, dtype=np.float32) - 3


def positive(m, c):
    """Fail for parts with a number that is not positive."""

    def fun(x):
        c.check(m.numpy.all(x > 0), "{} is not positive", m.numpy.min(x))
        return x * 2

    return fun


def _checked_before(m, c, over):
    def fun(x):
        c.check(x[0] > 0, "{} comes first", x[0])
        return over(positive(m, c))(x)

    return fun


def _checked_twice(m, c, over):
    def fun(x):
        out = positive(m, c)(x)
        c.check(m.numpy.all(x < 2), "too large")
        return out

    return over(fun)


def _checked_together(m, c, over):
    def fun(x):
        total = m.lax.psum(x.sum(), "x")
        c.check(total > 100, "the sum is {}", total)
        return x

    return over(fun)


# Errors to look for, and a function of one array; `over(fun, *axes)` maps one over the mesh.
CHECKS = {
    "user": ("user_checks", lambda m, c, over: over(positive(m, c))),
    "both axes": ("user_checks", lambda m, c, over: over(positive(m, c), *BOTH)),
    "shared": ("user_checks", lambda m, c, over: over(positive(m, c), None)),
    "unchecked": ("user_checks", lambda m, c, over: over(positive(m, c), check_vma=False)),
    "jit": ("user_checks", lambda m, c, over: m.jit(over(positive(m, c)))),
    "vmap": (
        "user_checks",
        lambda m, c, over: lambda x: m.vmap(over(positive(m, c)))(m.numpy.stack([x, x + 2])),
    ),
    "before": ("user_checks", _checked_before),
    "twice": ("user_checks", _checked_twice),
    "collective": ("user_checks", _checked_together),
    "nan": ("nan_checks", lambda m, c, over: over(m.numpy.log)),
    "division": ("div_checks", lambda m, c, over: over(lambda x: 1 / x)),
    "all": ("all_checks", lambda m, c, over: over(lambda x: m.numpy.log(x) / x)),
    "other errors": ("nan_checks", lambda m, c, over: over(positive(m, c))),
    "pass": ("user_checks", lambda m, c, over: lambda x: over(positive(m, c))(x * x + 1)),
    "pmap": ("user_checks", lambda m, c, over: m.pmap(positive(m, c))),
    "pmap of all": ("all_checks", lambda m, c, over: m.pmap(lambda x: m.numpy.log(x) / x)),
    "pmap of two": (
        "user_checks",
        lambda m, c, over: lambda x: m.pmap(m.vmap(positive(m, c)))(x.reshape(4, 2)),
    ),
}


def check(m, c, mesh, spec, name):
    """Return what a checked function's error says, what it raises, and its result."""
    errors, make = CHECKS[name]

    def over(fun, *axes, **options):
        cut = spec(axes or ("x",)) if axes != (None,) else spec()
        return m.shard_map(fun, mesh=mesh, in_specs=cut, out_specs=cut, **options)

    error, out = c.checkify(make(m, c, over), errors=getattr(c, errors))(m.numpy.asarray(Y))
    raised = ""
    try:
        error.throw()
    except Exception as caught:
        raised = str(caught).splitlines()[0]
    return str(error.get()), raised, out


def main(path):
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count=8"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    from jax.experimental import checkify

    types = (jax.sharding.AxisType.Auto,) * 2
    mesh = jax.make_mesh((4, 2), BOTH, axis_types=types)
    out = {}
    for case in CASES:
        for i, leaf in enumerate(case.run(jax, mesh, jax.sharding.PartitionSpec)):
            out[f"{case.name}/{i}"] = np.asarray(leaf)
    for name in CHECKS:
        for i, leaf in enumerate(check(jax, checkify, mesh, jax.sharding.PartitionSpec, name)):
            out[f"check {name}/{i}"] = np.asarray(leaf)
    np.savez(path, **out)


if __name__ == "__main__":
    main(sys.argv[1])
