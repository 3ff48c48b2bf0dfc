"""`namoo.core` has the names of `jax.core`, and programs about programs mean the same in both."""

import subprocess
import sys

import jax
import jax.core
import jax.extend.core
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from jax_oracle import OURS, THEIRS, agree


def core_of(lib):
    """All names of a library that concern programs, wherever it keeps them now."""
    return namoo.core if lib is OURS else _Theirs()


class _Theirs:
    def __getattr__(self, name):
        for module in (jax.extend.core, jax.core):
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(name)


def test_the_names_of_jax_that_are_not_deprecated_are_here():
    ours, theirs = dir(namoo.core), [n for n in dir(jax.core) if not n.startswith("_")]
    elsewhere = {"max_dim", "min_dim"}
    assert set(theirs) - set(ours) == elsewhere


@pytest.mark.parametrize("transform", ["none", "jit", "grad", "vmap", "jvp", "jit(vmap)", "scan"])
def test_what_is_traced_is_a_tracer(transform):
    def program(lib):
        core, seen = core_of(lib), []

        def f(x):
            seen.append(isinstance(x, core.Tracer))
            seen.append(isinstance(x.aval, core.ShapedArray))
            seen.append(isinstance(x.aval, core.AbstractValue))
            return x * 2.0

        x = lib.jnp.arange(3.0)
        {
            "none": lambda: f(x),
            "jit": lambda: lib.jit(f)(x),
            "grad": lambda: lib.grad(f)(1.0),
            "vmap": lambda: lib.vmap(f)(x),
            "jvp": lambda: lib.jvp(f, (x,), (x,)),
            "jit(vmap)": lambda: lib.jit(lib.vmap(f))(x),
            "scan": lambda: lib.lax.scan(lambda c, y: (f(c), y), x, x),
        }[transform]()
        return [np.asarray(s) for s in seen[:3]]

    agree(program)


def layers(lib):
    """A function with a nested program, a loop, constants and literals."""
    scale = np.arange(3.0, dtype=np.float32)

    @lib.jit
    def inner(x):
        return lib.jnp.tanh(x * scale + 1.0)

    def f(x, y):
        total, ys = lib.lax.scan(lambda c, row: (c + row, c * 2.0), x, y)
        return inner(total), lib.lax.sin(ys), 3.0

    return f


ARGS = (np.ones(3, np.float32), np.arange(6, dtype=np.float32).reshape(2, 3))


def walk(core, jaxpr):
    """Each equation as plain data, inner programs included."""
    for eqn in jaxpr.eqns:
        yield (
            eqn.primitive.name,
            [isinstance(v, core.Literal) for v in eqn.invars],
            [(v.aval.shape, str(v.aval.dtype)) for v in (*eqn.invars, *eqn.outvars)],
            [isinstance(v, core.Var) for v in eqn.outvars],
        )
        for sub in core.jaxprs_in_params(eqn.params):
            yield from walk(core, sub)


def test_equations_tell_what_jax_tells():
    names = {}
    for lib in (OURS, THEIRS):
        core = core_of(lib)
        closed = lib.make_jaxpr(layers(lib))(*ARGS)
        assert isinstance(closed, core.ClosedJaxpr) and isinstance(closed.jaxpr, core.Jaxpr)
        assert all(isinstance(eqn, core.JaxprEqn) for eqn in closed.jaxpr.eqns)
        assert not closed.effects and not closed.jaxpr.effects
        inner = [e for e in closed.eqns if e.primitive.name == "jit"]
        assert [isinstance(e.params["jaxpr"], core.ClosedJaxpr) for e in inner] == [True]
        names[lib is OURS] = list(walk(core, closed.jaxpr))
    # The programs of library functions are not equal to the letter: user-written operations are.
    wanted = {"scan", "jit", "tanh", "sin", "mul", "add"}
    ours, theirs = ([row for row in names[own] if row[0] in wanted] for own in (True, False))
    assert [row[0] for row in ours] == [row[0] for row in theirs]
    assert [row[3] for row in ours] == [row[3] for row in theirs]


def interpret(core, jaxpr, consts, args):
    """An interpreter as a user writes it, in neither library's words but `core`'s."""
    env = {}
    env.update(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def read(v):
        return v.val if isinstance(v, core.Literal) else env[v]

    for eqn in jaxpr.eqns:
        params = eqn.primitive.get_bind_params(eqn.params)
        outs = eqn.primitive.bind(*map(read, eqn.invars), **params)
        outs = outs if eqn.primitive.multiple_results else [outs]
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(v) for v in jaxpr.outvars]


@pytest.mark.parametrize("transform", ["none", "jit", "grad"])
def test_an_interpreter_over_a_program(transform):
    def program(lib, x, y):
        core = core_of(lib)

        def run(x, y):
            closed = lib.make_jaxpr(layers(lib))(x, y)
            return interpret(core, closed.jaxpr, closed.literals, (x, y))[:2]

        if transform == "grad":
            return lib.grad(lambda x, y: sum(o.sum() for o in run(x, y)), argnums=(0, 1))(x, y)
        return (lib.jit(run) if transform == "jit" else run)(x, y)

    agree(program, *ARGS, weak=False)


def test_the_inverse_of_a_function_from_its_program():
    """The exercise of JAX's tutorial: run the equations backwards, by inverses."""

    def program(lib, y):
        core, lax = core_of(lib), lib.lax
        inverses = {lax.exp_p: lib.jnp.log, lax.tanh_p: lib.jnp.arctanh}
        closed = lib.make_jaxpr(lambda x: lib.jnp.exp(lib.jnp.tanh(x)))(y)
        env = dict(zip(closed.jaxpr.outvars, [y], strict=True))
        for eqn in closed.jaxpr.eqns[::-1]:
            (source,), (result,) = eqn.invars, eqn.outvars
            assert isinstance(source, core.Var)
            env[source] = inverses[eqn.primitive](env[result])
        return env[closed.jaxpr.invars[0]]

    agree(program, np.float32(2.0), weak=False)


def test_programs_made_by_hand():
    def program(lib, x):
        core = core_of(lib)
        new = core.gensym()
        a = new(core.ShapedArray((3,), lib.jnp.float32))
        b, c = new(a.aval), new(a.aval)
        eqns = [
            core.new_jaxpr_eqn([a], [b], lib.lax.neg_p, {}, core.no_effects),
            core.new_jaxpr_eqn([b, a], [c], lib.lax.mul_p, {}, core.no_effects),
        ]
        info = lib.make_jaxpr(lambda x: x)(x).jaxpr.debug_info
        jaxpr = core.Jaxpr([], [a], [c], eqns, core.no_effects, info)
        core.check_jaxpr(jaxpr)
        closed = core.ClosedJaxpr(jaxpr, [])
        run = core.jaxpr_as_fun(closed)
        less = core.ClosedJaxpr(jaxpr.replace(eqns=jaxpr.eqns[:1], outvars=[b]), ())
        return [*run(x), *lib.jit(run)(x), *core.jaxpr_as_fun(less)(x)]

    agree(program, np.ones(3, np.float32))


def test_copies_keep_and_change_where_they_come_from():
    for lib in (OURS, THEIRS):
        first, second = (lib.make_jaxpr(f)(1.0).jaxpr for f in (lib.lax.sin, lib.lax.cos))
        same = first.replace(eqns=[])
        assert same.debug_info.func_src_info == first.debug_info.func_src_info
        other = first.replace(debug_info=second.debug_info)
        assert other.debug_info.func_src_info == second.debug_info.func_src_info
        assert other.debug_info.func_src_info != first.debug_info.func_src_info
        [eqn], [place] = first.eqns, second.eqns
        assert eqn.replace(params={}).source_info is eqn.source_info
        assert eqn.replace(source_info=place.source_info).source_info is place.source_info


VALUES = {
    "int": 1, "bool": True, "complex": 1j, "text": "a", "none": None, "list": [1],
    "texts": np.array("a"), "objects": np.array([object()]), "scalar": np.float64(2),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_valid_types(name):
    x = VALUES[name]
    assert namoo.core.valid_jaxtype(x) is jax.extend.core.valid_jaxtype(x)


def test_valid_types_of_the_libraries():
    assert namoo.core.valid_jaxtype(jnp.ones(3))
    assert namoo.core.valid_jaxtype(namoo.ShapeDtypeStruct((3,), "float32"))
    assert not namoo.core.valid_jaxtype(namoo.core.ShapedArray((3,), "float32"))


@pytest.mark.parametrize(
    ("name", "size", "axis"),
    [
        ("mapped_aval", 2, 0),
        ("mapped_aval", 4, 2),
        ("mapped_aval", 9, None),
        ("unmapped_aval", 9, 0),
        ("unmapped_aval", 9, 1),
        ("unmapped_aval", 9, 3),
        ("unmapped_aval", 9, None),
    ],
)
def test_types_of_batches(name, size, axis):
    def shape(lib):
        core = core_of(lib)
        aval = getattr(core, name)(size, axis, core.ShapedArray((2, 3, 4), int))
        return aval.shape, np.dtype(aval.dtype)

    assert shape(OURS) == shape(THEIRS)


def test_a_wrong_size_of_a_batch():
    for lib in (OURS, THEIRS):
        with pytest.raises(AssertionError):
            core_of(lib).mapped_aval(4, 0, lib.typeof(np.ones((3, 2))))


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32"), jnp.float32, float])
@pytest.mark.parametrize("shape", [(2, 3), [2, 3], (np.int64(2), 3)])
def test_types_as_users_write_them(shape, dtype):
    aval = namoo.core.ShapedArray(shape, dtype)
    theirs = jax.core.ShapedArray(tuple(shape), np.dtype(dtype))
    assert (aval.shape, aval.dtype, aval.ndim) == (theirs.shape, theirs.dtype, theirs.ndim)
    assert isinstance(aval.dtype, np.dtype)
    tangent = namoo.core.ShapedArray(shape, int).to_tangent_aval()
    assert tangent.dtype == theirs.update(dtype=np.dtype(int)).to_tangent_aval().dtype


def test_concrete_or_error():
    for lib in (OURS, THEIRS):
        core = core_of(lib)
        assert core.concrete_or_error(int, np.float32(3.0)) == 3
        assert core.concrete_or_error(None, "x") == "x"
        with pytest.raises(lib.errors.ConcretizationTypeError, match="sizes must be known"):
            lib.jit(lambda n, c=core: c.concrete_or_error(int, n, "sizes must be known"))(3)
        # Under grad alone the number is known.
        assert lib.grad(lambda x, c=core: x * c.concrete_or_error(float, x))(2.0) == 2.0


def test_trace_states():
    for lib in (OURS, THEIRS):
        core, inside = core_of(lib), []

        def f(x, core=core, inside=inside):
            inside += [core.get_opaque_trace_state(), core.get_opaque_trace_state()]
            assert inside[-1] == inside[-2]
            return x

        outside = core.get_opaque_trace_state()
        lib.jit(f)(1.0)
        lib.vmap(f)(np.ones(2))
        assert outside == core.get_opaque_trace_state()
        assert outside != inside[0] and outside != inside[2] and inside[0] != inside[2]


def test_where_a_function_is_run():
    for lib in (OURS, THEIRS):
        core, seen = core_of(lib), []

        def f(x, core=core, seen=seen):
            seen.append(
                (
                    core.unsafe_am_i_under_a_jit_DO_NOT_USE(),
                    core.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
                    core.unsafe_get_axis_names_DO_NOT_USE(),
                    core.nonempty_axis_env_DO_NOT_USE(),
                )
            )
            return x

        f(1.0)
        lib.jit(f)(1.0)
        lib.vmap(f, axis_name="i")(np.ones(2))
        lib.vmap(lib.jit(f), axis_name="i")(np.ones(2))
        assert seen[0] == (False, False, [], False)
        assert seen[1] == (True, False, [], False)
        assert seen[2] == (False, True, ["i"], True)
        assert seen[3][0] and seen[3][2:] == (["i"], True)


def test_known_values_are_computed_at_once_within_eval_context():
    for lib in (OURS, THEIRS):
        core = core_of(lib)

        @lib.jit
        def f(x, lib=lib, core=core):
            with core.eval_context():
                n = int(lib.jnp.sum(lib.jnp.arange(4)))
            return x * n

        assert f(2.0) == 12.0


def test_effects_are_told():
    for lib in (OURS, THEIRS):
        closed = lib.make_jaxpr(lambda x, lib=lib: lib.debug.print("{}", x))(1.0)
        [eqn] = closed.eqns
        assert len(closed.effects) == len(eqn.effects) == len(closed.jaxpr.effects) == 1
        nested = lib.make_jaxpr(lib.jit(lambda x, lib=lib: lib.debug.print("{}", x)))(1.0)
        assert nested.effects == closed.effects


def test_import_does_not_load_programs():
    code = "import sys, namoo; print('namoo.core.jaxpr' in sys.modules); namoo.core.Tracer"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_wrong_parameters_are_refused():
    for lib in (OURS, THEIRS):
        core = core_of(lib)
        for fun, name, value in [
            (lambda x, lib=lib: lib.lax.scan(lambda c, _: (c, c), x, None, 2), "reverse", 4),
            (lambda x, lib=lib: lib.lax.scan(lambda c, _: (c, c), x, None, 2), "num_consts", -3),
            (lambda x, lib=lib: lib.lax.switch(0, [lib.jnp.sin, lib.jnp.cos], x), "branches", (4,)),
        ]:
            jaxpr = lib.make_jaxpr(fun)(1.0).jaxpr
            eqn = next(e for e in jaxpr.eqns if name in e.params)
            eqn.params[name] = value
            with pytest.raises(core.JaxprTypeError, match=f"invalid .* param {name} of type"):
                core.check_jaxpr(jaxpr)
