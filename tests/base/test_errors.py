"""What mistakes say: type, message, the user's line, and that what the message advises works.

The messages stand in `data/messages.txt`. `NAMOO_UPDATE_SNAPSHOTS=1` writes them anew.
"""

import builtins
import importlib
import os
import pickle
import re
import subprocess
import sys
import traceback
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
import reference
from namoo import core, errors, lax
from namoo._base import source_context as source_module
from namoo._base.source_context import hide_frames, source_context

SNAPSHOTS = Path(__file__).parents[1] / "data" / "messages.txt"
kept = []


def branch(x):
    if x > 0:
        return x
    return -x


def nested_branch(params):
    return branch(params["w"][0].sum())


def count(x, n):
    for _ in range(n):
        x = x + 1
    return x


def keep(x):
    kept.append(x * 2)
    return x


def keep_and_use():
    namoo.clear_caches()
    namoo.jit(keep)(1.0)
    return kept.pop() + 1


def keep_in_loop():
    lax.scan(lambda c, x: (c, kept.append(c * x)), 1.0, jnp.ones(3))
    return kept.pop() + 1


def assign(x):
    x[0] = 1.0
    return x


def grow(carry, x):
    return jnp.concatenate([carry, carry]), x


def rename(carry, x):
    return {"h": carry["h"].astype("int32"), "d": x}, x


def train(params, x):
    return (x @ params["w"]).sum()


W = {"w": jnp.ones((2, 3)), "b": jnp.ones(3)}

# A mistake, and words of JAX's message that programs and tutorials look for.
WORDS = {
    "jnp.ones(2) + {}": r"for \+: '.*ArrayImpl' and 'dict'",
    "(1, 2) * jnp.arange(2)": r"for \*: 'tuple' and '.*ArrayImpl'",
    "jnp.ones(2) < set()": r"'.*ArrayImpl' and 'set'",
    "jnp.zeros(2, 'float64')": r"Explicitly requested dtype float64 requested in zeros is not",
    "jnp.zeros(2, 3)": r"Did you accidentally write `jax.numpy.zeros\(2, 3\)` when you meant",
    "jit(jnp.zeros)(3)": r"(?s)Shapes must be 1D sequences of con.*\nIf using `jit`, try using",
    "jit(lambda x: 1 if x else 2)(True)": r"Attempted boolean conversion of traced array with",
    "jit(lambda x: [1][x])(0)": r"The __index__\(\) method was called on traced array with shape",
    "jit(lambda x: np.sin(x))(1.0)": r"numpy.ndarray conversion method __array__\(\) was called",
    "jit(lambda x: float(x))(1.0)": r"Abstract tracer value encountered where concrete value is",
    "jit(lambda x: x.tolist())(1.0)": r"The tolist\(\) method was called on traced array",
    "jit(lambda x: x.tobytes())(1.0)": r"The tobytes\(\) method was called on traced array",
    "jit(lambda x: x[x > 0])(jnp.ones(3))": r"Array boolean indices must be concrete; got",
    "jit(jnp.arange)(3)": r"It arose in the jnp.arange argument 'stop'",
    "jit(lambda n: jnp.r_[:n])(3)": r"slice stop of jnp.r_",
    "jit(lambda i: jnp.ravel_multi_index(i, (3,)))((jnp.array([1]),))": r"='raise'. Use mode=",
    "jit(lambda i: jnp.choose(i, [i]))(jnp.array([0]))": r"mode='raise'. Use mode='wrap' or mode=",
    "jnp.arange(1j)": r"Passing complex start/stop/step to jnp.arange is no longer supported",
    "jnp.ones(1, 'float8_e4m3fn') + jnp.ones(1)": r"8-bit floats do not support implicit promotion",
    "jnp.ones(1, 'int4') + jnp.ones(1)": r"4-bit integers do not support implicit promotion",
    "jnp.array(2**31)": r"Python int 2147483648 too large to convert to int32",
    "jnp.tri(2, k=2**40)": r"Python int 1099511627776 too large to convert to int32",
    "jnp.broadcast_to(jnp.ones((2, 3)), (3,))": r"Cannot broadcast to shape with fewer dimensions",
    "jnp.clip(1j, 0, 1)": r"Complex values have no ordering and cannot be clipped",
    "jnp.hypot(1j, 1)": r"jnp.hypot is not well defined for complex-valued inputs",
    "jnp.rot90(jnp.ones(2))": r"rot90 requires its first argument to have ndim at least two, but",
    "jnp.size(jnp.ones((2, 3)), (0, 0))": r"repeated axis",
    "jnp.sum(jnp.ones((2, 3)), (0, 0))": r"duplicate value in 'axis': \(0, 0\)",
    "jnp.cumulative_sum(jnp.ones((2, 3)))": r"The input array has rank 2, however",
    "jnp.cumulative_sum(1)": r"The input must be non-scalar to take",
    "jnp.nanstd(jnp.ones(2), where=1)": r"jnp.nanstd: where must be None or a boolean array",
    "jnp.interp(1, jnp.ones(2), jnp.ones(3))": r"xp and fp must be one-dimensional arrays of equal",
    "jnp.ones(2)[[0, 1]]": r"Using a non-tuple sequence for multi.*arr\[array\(seq\)\]",
    "jnp.ones(2)[1j]": r"Indexer must have integer or boolean type, got indexer with type complex",
    "jit(lambda i: jnp.ones((2, 0))[0, i])(0)": r"index is out of bounds for axis 1 with size 0",
    "jnp.ones((2, 0))[0, jnp.array(0)]": r"index is out of bounds for axis 1 with size 0",
    "jnp.ones(0).at[jnp.array(0)].add(1.0)": r"index is out of bounds for axis 0 with size 0",
    "jnp.ones(2)[0, 0]": r"Too many indices: array is 1-dimensional, but 2 were indexed",
    "jit(jnp.sin)(np.ma.array([1.0], mask=[True]))": r"numpy masked arrays are not supported as",
    "jnp.ones(1) + np.ma.array([1.0], mask=[True])": r"numpy masked arrays are not supported as",
    "jnp.array(jnp.ones(2), None, False)": r"Passing the copy, order, and ndmin arguments to jnp",
    "jnp.array(1, None, True, copy=False)": r"array\(\) got multiple values for argument 'copy'",
    "jnp.array(1, None, True, 'K', 0, 0)": r"array\(\) takes at most 5 positional arguments",
    "jnp.ones(2, 'complex64').astype(int)": r"Casting from complex to real dtypes will soon raise",
    "lax.convert_element_type(1j * jnp.ones(2), int)": r"Casting complex values to real",
    "jnp.shape([1, 2])": r"shape requires ndarray or scalar arguments",
    "jnp.ndim(None)": r"ndim requires ndarray or scalar arguments",
    "jnp.size([1, 2])": r"size requires ndarray or scalar arguments",
}

ONES = "jnp.ones({}), jnp.ones({}, int), "
GATHER = "lax.gather(" + ONES.format((5, 4, 3), (2, 2)) + "lax.GatherDimensionNumbers({}), {})"
SCATTER = (
    "lax.scatter_add(" + ONES.format((5, 4, 3), (2, 2)) + "jnp.ones((2, 3)), "
    "lax.ScatterDimensionNumbers({}))"
)
RAGGED = (
    "lax.ragged_dot_general(jnp.ones((6, 5)), jnp.ones({}), jnp.ones({}, int), "
    "lax.RaggedDotDimensionNumbers({}, [{}], {}))"
)
NUMBERS = "((([1], [1]), ([], [])))"

# A mistake whose message in JAX begins with the words that ours must have, up to what it got.
BEGINNINGS = [
    *(
        GATHER.format(*case)
        for case in (
            ("(1, 0), (), (0, 1)", (1, 1, 3)),
            ("(1, 1), (), (0, 1)", (1, 1, 3)),
            ("(0, 3), (0,), (0, 1)", (1, 1, 3)),
            ("(1,), (0, 1), (0,)", (1, 1, 3)),
            ("(1,), (0, 1), (0, 3)", (1, 1, 3)),
            ("(1,), (0, 1), (1, 1)", (1, 1, 3)),
            ("(1,), (1, 0), (0, 1)", (1, 1, 3)),
            ("(1,), (0, 0), (0, 1)", (1, 1, 3)),
            ("(1,), (0, 3), (0, 1)", (1, 1, 3)),
            ("(1,), (0,), (0, 1)", (1, 1, 3)),
            ("(1,), (0, 1), (0, 1)", (1, 3)),
            ("(1,), (0, 1), (0, 1)", (1, 1, 4)),
            ("(1,), (0, 1), (0, 1)", (1, 2, 3)),
            ("(1,), (0,), (0, 1), (0,), (0,)", (1, 1, 3)),
            ("(1,), (0,), (1, 2), (1,), (0,)", (1, 1, 3)),
            ("(1,), (0, 1), (0, 1), (3,), (0,)", (1, 1, 3)),
            ("(1,), (1,), (1, 2), (0,), (1,)", (1, 1, 3)),
            ("(1,), (1,), (1, 2), (0,), (2,)", (1, 1, 3)),
            ("(1,), (1,), (1, 2), (0,), ()", (1, 1, 3)),
            ("(1,), (1,), (1, 2), (0,), (0,)", (1, 1, 3)),
        )
    ),
    *(
        SCATTER.format(case)
        for case in (
            "(), (0, 1), (0, 1)",
            "(2,), (0, 1), (0, 1)",
            "(1,), (1, 0), (0, 1)",
            "(1,), (0, 0), (0, 1)",
            "(1,), (0, 3), (0, 1)",
            "(1,), (0, 1), (0,)",
            "(1,), (0, 1), (0, 3)",
            "(1,), (0, 1), (1, 1)",
            "(1,), (0,), (0, 1)",
            "(1,), (0,), (0, 1), (0,), (0,)",
            "(1,), (0, 1), (0, 1), (2,), ()",
            "(0,), (0, 1), (0, 1)",
        )
    ),
    RAGGED.format((3, 5, 7), (2, 3), NUMBERS, 0, [0]),
    RAGGED.format((3, 5, 7), (3,), NUMBERS, 0, []),
    RAGGED.format((3, 5, 7), (3,), NUMBERS, 0, [1]),
    RAGGED.format((3, 5, 7), (2,), NUMBERS, 0, [0]),
    RAGGED.format((3, 5, 7), (3,), NUMBERS, 1, [0]),
    RAGGED.format((3, 5, 7), (3,), NUMBERS, 2, [0]),
    "lax.broadcast_in_dim(jnp.ones((2, 2)), (2,), (0, 1))",
    "lax.broadcast_in_dim(jnp.ones(2), (2, 3), (2,))",
    "lax.broadcast_in_dim(jnp.ones(2), (3,), (0,))",
    "lax.broadcast_in_dim(jnp.ones((2, 2)), (2, 2), (0, 0))",
    "lax.dynamic_slice(jnp.ones((2, 2)), (jnp.int32(1), jnp.int16(1)), (1, 1))",
    "lax.pad(jnp.ones(2), 0.0, [(0, 1, -1)])",
    "lax.split(jnp.ones(2), (-1, 3))",
    "lax.split(jnp.ones(2), (1, 3))",
    "lax.pad(jnp.ones(2), 0.0, [(-3, 0, 0)])",
    "lax.conv_general_dilated(jnp.ones((1, 1, 1)), jnp.ones((1, 1, 1, 1)), (1,), [(0, 0)], "
    "dimension_numbers=lax.ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2)))",
    "lax.squeeze(jnp.ones((1, 2)), (2,))",
    "lax.argmin(jnp.ones((0, 2)), 0, int)",
    "lax.reduce(jnp.ones(2), jnp.ones(2), lax.add, (0,))",
    "lax.reduce({'x': jnp.ones(2)}, {'y': 1.0}, lambda x, y: x, (0,))",
    "lax.reduce_window(jnp.ones(2), jnp.ones(1), lax.add, (1,), (1,), 'SAME')",
    "lax.conv_general_dilated(jnp.ones((1, 1, 3, 3)), jnp.ones((1, 1, 3, 3)), (1,), 'SAME')",
    "lax.broadcast_shapes((-1,))",
    "jnp.broadcast_shapes((-1,))",
    "jax.eval_shape(lambda x: lax.top_k(x, 9), jax.ShapeDtypeStruct((2**31 + 1,), 'int8'))",
]


@pytest.mark.parametrize("expression", BEGINNINGS)
def test_messages_begin_as_theirs(expression):
    wanted, theirs = said(jax, expression)
    found, own = said(namoo, expression)
    assert found == wanted and len(wanted) == 1
    words = re.split(r"[;:,.] | got | for \w+ dim| when broad|\.$| for array", theirs[0])[0]
    assert words in own[0]


def said(package, expression):
    """The names of the built-in types of errors and warnings, and what they say."""
    kinds, texts = [], []
    names = {"jnp": package.numpy, "lax": package.lax, "jit": package.jit, "np": np, "jax": package}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            eval(expression, names)
        except Exception as error:
            kinds.append(type(error))
            texts.append(str(error))
    kinds += [w.category for w in seen]
    texts += [str(w.message) for w in seen]
    known = (
        {k.__name__: k for k in kind.__mro__ if hasattr(builtins, k.__name__)} for kind in kinds
    )
    return [next(iter(names)) for names in known], texts


@pytest.mark.parametrize("expression", WORDS)
def test_messages_have_the_words_that_people_search_for(expression):
    wanted, theirs = said(jax, expression)
    found, own = said(namoo, expression)
    assert set(found) == set(wanted)
    for texts in (theirs, own):
        assert any(re.search(WORDS[expression], text) for text in texts), texts


@pytest.mark.parametrize(
    "name",
    [
        "ConcretizationTypeError",
        "TracerBoolConversionError",
        "TracerIntegerConversionError",
        "TracerArrayConversionError",
        "NonConcreteBooleanIndexError",
    ],
)
def test_errors_can_be_made_from_a_traced_value(name):
    def said_of(package):
        found = []
        package.jit(lambda x: found.append(str(getattr(package.errors, name)(x))))(1.0)
        return found[0]

    theirs, own = said_of(jax), said_of(namoo)
    link = theirs.split()[-1]
    assert link.endswith(f"jax.errors.{name}") and own.endswith(link)
    # The words before the value are the same.
    assert re.split("traced array|; got|:", theirs)[0] in own
    assert "JitTracer" in own


class Unfinished(core.Tracer):
    """A tracer of another library, which has no type yet."""

    def __init__(self):
        super().__init__(None, None)  # type: ignore[arg-type]


def test_errors_made_from_a_value_say_more_and_can_be_pickled():
    error = errors.ConcretizationTypeError(Unfinished(), "Write it otherwise.")
    assert "Unfinished<None>" in str(error) and "\nWrite it otherwise.\n" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


# Mistake, and the type that JAX raises for it.
CASES = {
    "if under jit": (lambda: namoo.jit(branch)(1.0), errors.TracerBoolConversionError),
    "if on a leaf": (
        lambda: namoo.jit(nested_branch)({"w": [jnp.ones(2)]}),
        errors.TracerBoolConversionError,
    ),
    "if under vmap": (lambda: namoo.vmap(branch)(jnp.ones(3)), errors.TracerBoolConversionError),
    "range under jit": (lambda: namoo.jit(count)(1.0, 3), errors.TracerIntegerConversionError),
    "float under jit": (
        lambda: namoo.jit(lambda x: float(x))(1.0),
        errors.ConcretizationTypeError,
    ),
    "NumPy under jit": (
        lambda: namoo.jit(lambda x: np.sin(x))(1.0),
        errors.TracerArrayConversionError,
    ),
    "shape under jit": (
        lambda: namoo.jit(lambda n: jnp.zeros(n))(3),
        TypeError,
    ),
    "mask under jit": (
        lambda: namoo.jit(lambda x: x[x > 0])(jnp.ones(3)),
        errors.NonConcreteBooleanIndexError,
    ),
    "arange under jit": (
        lambda: namoo.jit(lambda n: jnp.arange(n))(3),
        errors.ConcretizationTypeError,
    ),
    "leak from jit": (keep_and_use, errors.UnexpectedTracerError),
    "leak from scan": (keep_in_loop, errors.UnexpectedTracerError),
    "vmap sizes": (
        lambda: namoo.vmap(train)({"w": jnp.ones((4, 2, 3))}, jnp.ones((5, 2))),
        ValueError,
    ),
    "vmap rank": (lambda: namoo.vmap(train, (0, 3))(W, jnp.ones((3, 2))), ValueError),
    "vmap in_axes tree": (lambda: namoo.vmap(train, ({"w": 0}, 0))(W, jnp.ones(3)), ValueError),
    "grad of an array": (lambda: namoo.grad(lambda x: x * 2)(jnp.ones(3)), TypeError),
    "grad by an integer": (lambda: namoo.grad(lambda p: p["n"] * 2.0)({"n": 3}), TypeError),
    "grad without a pair": (lambda: namoo.grad(lambda x: x, has_aux=True)(1.0), TypeError),
    "grad of while_loop": (
        lambda: namoo.grad(lambda x: lax.while_loop(lambda v: v < 9, lambda v: v * 2, x))(1.0),
        ValueError,
    ),
    "scan carry grows": (lambda: lax.scan(grow, jnp.ones(2), jnp.ones(4)), TypeError),
    "scan carry renamed": (
        lambda: lax.scan(rename, {"h": jnp.ones(2), "c": jnp.ones(2)}, jnp.ones(4)),
        TypeError,
    ),
    "scan lengths": (
        lambda: lax.scan(lambda c, x: (c, x), 0, {"a": jnp.ones(4), "b": jnp.ones(5)}),
        ValueError,
    ),
    "while carry": (
        lambda: lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1].sum()), (0, jnp.ones(3))
        ),
        TypeError,
    ),
    "while condition": (lambda: lax.while_loop(lambda c: c + 1.0, lambda c: c, 1.0), TypeError),
    "cond branches": (
        lambda: lax.cond(True, lambda x: x, lambda x: x.astype("int32"), jnp.ones(2)),
        TypeError,
    ),
    "cond on an array": (
        lambda: lax.cond(jnp.ones(2) > 0, lambda: 1, lambda: 2),
        TypeError,
    ),
    "tree.map keys": (
        lambda: namoo.tree.map(lambda p, g: p - g, W, {"w": 1, "bias": 2}),
        ValueError,
    ),
    "assignment": (lambda: assign(jnp.ones(3)), TypeError),
    "add shapes": (lambda: jnp.ones(3) + jnp.ones(4), TypeError),
    "matmul shapes": (lambda: jnp.ones((2, 3)) @ jnp.ones((2, 3)), TypeError),
    "reshape": (lambda: jnp.ones(4).reshape(3), TypeError),
    "concatenate": (
        lambda: jnp.concatenate([jnp.ones((2, 3)), jnp.ones((3, 2))]),
        TypeError,
    ),
    "index out of range": (lambda: jnp.ones(3)[5], IndexError),
    "list index": (lambda: jnp.ones(3)[[0, 1]], TypeError),
    "sin of a string": (lambda: jnp.sin("a"), TypeError),
    "unbound axis": (lambda: lax.psum(1.0, "batch"), NameError),
    "unhashable static": (
        lambda: namoo.jit(lambda x, n: x, static_argnums=1)(1.0, [1]),
        ValueError,
    ),
    "unhashable leaf": (lambda: namoo.jit(lambda cfg: 0)({"set": {1}}), TypeError),
}


def provoke(mistake, error):
    with pytest.raises(error) as caught:
        mistake()
    return caught.value


def normal(message):
    """A message without what depends on the machine or on the place in this file."""
    message = message.replace(__file__, "program.py")
    return re.sub(r"program\.py:\d+", "program.py:LINE", message)


def read_snapshots():
    parts = re.split(r"^=== (.*)$", SNAPSHOTS.read_text(encoding="utf-8"), flags=re.M)
    return dict(zip(parts[1::2], (p.strip("\n") for p in parts[2::2]), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_message(case):
    error = provoke(*CASES[case])
    found = f"{type(error).__name__}: {normal(str(error))}"
    assert found == read_snapshots()[case]


@pytest.mark.parametrize("case", CASES)
def test_only_the_users_lines_are_in_the_traceback(case):
    error = provoke(*CASES[case])
    package = str(Path(namoo.__file__).parent)
    frames = traceback.extract_tb(error.__traceback__)
    assert [f.name for f in frames if f.filename.startswith(package)] == []


def test_a_setting_shows_internal_frames():
    namoo.config.update("jax_traceback_filtering", "off")
    try:
        error = provoke(*CASES["grad of an array"])
    finally:
        namoo.config.update("jax_traceback_filtering", "auto")
    assert any("namoo" in f.filename for f in traceback.extract_tb(error.__traceback__))


def test_messages_stay_short_on_large_trees():
    big = {f"layer{i}": jnp.zeros(3) for i in range(5000)}
    other = {f"layer{i}x": jnp.zeros(3) for i in range(5000)}
    for mistake in (
        lambda: lax.scan(lambda c, x: (other, x), big, jnp.ones(2)),
        lambda: lax.cond(True, lambda: big, lambda: other),
        lambda: namoo.tree.map(lambda a, b: a, big, other),
        lambda: namoo.jvp(lambda x: x, (big,), (other,)),
        lambda: namoo.vmap(lambda x: x, in_axes=({"layer0": 0},))(big),
    ):
        with pytest.raises((TypeError, ValueError)) as caught:
            mistake()
        assert len(str(caught.value).splitlines()) <= 25


ADVICE = {
    "where": lambda: namoo.jit(lambda x: jnp.where(x > 0, x, -x))(-1.0),
    "cond": lambda: namoo.jit(lambda x: lax.cond(x > 0, lambda v: v, lambda v: -v, x))(-1.0),
    "static": lambda: namoo.jit(count, static_argnames=("n",))(1.0, 3),
    "fori_loop": lambda: namoo.jit(lambda x, n: lax.fori_loop(0, n, lambda i, v: v + 1, x))(1.0, 3),
    "callback": lambda: namoo.jit(
        lambda x: namoo.pure_callback(np.sin, namoo.ShapeDtypeStruct((), "float32"), x)
    )(1.0),
    "mask": lambda: namoo.jit(lambda x: jnp.where(x > 0, x, 0))(jnp.ones(3)),
    "nonzero": lambda: namoo.jit(lambda x: jnp.nonzero(x > 0, size=2))(jnp.ones(3)),
    "at": lambda: jnp.ones(3).at[0].set(2.0),
    "in_axes": lambda: namoo.vmap(train, (None, 0))(W, jnp.ones((5, 2))),
    "sum": lambda: namoo.grad(lambda x: (x * 2).sum())(jnp.ones(3)),
    "allow_int": lambda: namoo.grad(lambda p: p["x"] * p["n"], allow_int=True)({"n": 3, "x": 1.0}),
    "scan with where": lambda: namoo.grad(
        lambda x: lax.scan(lambda v, _: (jnp.where(v < 9, v * 2, v), None), x, None, length=5)[0]
    )(1.0),
}


@pytest.mark.parametrize("advice", ADVICE)
def test_what_messages_advise_runs(advice):
    ADVICE[advice]()


def test_hide_frames_hides_a_library_too(tmp_path):
    library = tmp_path / "library.py"
    library.write_text("def call(f, *args):\n    return f(*args)\n")
    namespace: dict = {}
    exec(compile(library.read_text(), str(library), "exec"), namespace)
    before = source_module._hidden
    hide_frames(str(library))
    try:
        error = provoke(lambda: namespace["call"](namoo.grad(lambda x: x), jnp.ones(2)), TypeError)
    finally:
        source_module._hidden = before
    assert "test_errors.py" in str(error) and "library.py" not in str(error)


def test_the_parts_between_a_library_function_and_its_caller_exist():
    package = Path(namoo.__file__).parent
    assert [part for part in source_module.BETWEEN if not (package / part).exists()] == []


@pytest.mark.parametrize(
    "module", ["checkpoints", "dtypes", "errors", "experimental.checkify", "tree"]
)
def test_exceptions_print_as_their_public_names(module):
    space = importlib.import_module(f"namoo.{module}")
    found = [x for x in vars(space).values() if isinstance(x, type) and issubclass(x, Exception)]
    assert found and {x.__module__ for x in found} == {f"namoo.{module}"}
    assert all(pickle.loads(pickle.dumps(x)) is x for x in found)


def written_on_several_lines(x):
    y = jnp.sin(
        x,
    ) * jnp.cos(x)
    for _ in range(2):
        y = (y + jnp.tan(x)) * 2
    return (lambda z: jnp.exp(z))(y)


def test_an_equation_knows_its_line():
    first = written_on_several_lines.__code__.co_firstlineno
    eqns = namoo.make_jaxpr(written_on_several_lines)(1.0).eqns
    found = [(eqn.primitive.name, eqn.source.line - first) for eqn in eqns]
    loop = [("tan", 5), ("add", 5), ("mul", 5)]
    assert found == [("sin", 1), ("cos", 3), ("mul", 1), *loop, *loop, ("exp", 6)]
    assert {eqn.source.file for eqn in eqns} == {__file__}
    assert eqns[0].source.function == "written_on_several_lines"
    assert eqns[-1].source.function == "written_on_several_lines.<locals>.<lambda>"
    # A place is the line: not what stands where on it.
    assert len({eqn.source for eqn in eqns[3:9]}) == 1
    assert eqns[3].source != eqns[2].source


@namoo.custom_vjp
def tripled(x):
    return x * 3


def tripled_backward(_, ct):
    return (ct * 5,)


tripled.defvjp(lambda x: (tripled(x), None), tripled_backward)


def chain(x):
    y = jnp.sin(x)
    z = tripled(y)
    return (z / y).sum()


def test_what_is_derived_comes_from_the_line_it_is_derived_from():
    def lines(fun, *args):
        eqns = namoo.make_jaxpr(fun)(*args).eqns
        assert {eqn.source.file for eqn in eqns} == {__file__}
        return {(eqn.primitive.name, eqn.source.function, eqn.source.line - first) for eqn in eqns}

    first = chain.__code__.co_firstlineno
    backward = ("mul", "tripled_backward", tripled_backward.__code__.co_firstlineno + 1 - first)
    # An operation, and what its rules make of it: derivative, transposition, batch.
    for fun, x in [(namoo.grad(chain), jnp.ones(3)), (namoo.vmap(namoo.grad(chain)), jnp.eye(3))]:
        found = lines(fun, x)
        assert {("sin", "chain", 1), ("cos", "chain", 1), ("mul", "chain", 1)} <= found
        assert {("div", "chain", 3), ("neg", "chain", 3), backward} <= found
        assert len([1 for name, *_ in found if name in ("sin", "cos", "div")]) == 3

    # A program that is run again, to be transformed, keeps its lines.
    calls = namoo.make_jaxpr(namoo.grad(namoo.jit(chain)))(jnp.ones(3)).eqns
    inner = [eqn for call in calls for eqn in call.params["jaxpr"].eqns]
    again = {(eqn.primitive.name, eqn.source.function, eqn.source.line - first) for eqn in inner}
    assert {("cos", "chain", 1), ("neg", "chain", 3), backward} <= again


def test_an_error_in_a_rule_leaves_no_line_behind():
    with pytest.raises(TypeError):
        namoo.make_jaxpr(namoo.grad(lambda x: lax.add(x, jnp.ones(3, int)).sum()))(jnp.ones(3))
    assert source_context.operation is None and source_context.eqn is None
    assert at_line_of_this_function() == "at_line_of_this_function"


def at_line_of_this_function():
    return namoo.make_jaxpr(lambda x: jnp.sin(x))(1.0).eqns[0].source.function.split(".")[0]


def write_snapshots():
    parts = []
    for case, (mistake, error) in CASES.items():
        caught = provoke(mistake, error)
        parts.append(f"=== {case}\n{type(caught).__name__}: {normal(str(caught))}\n")
    SNAPSHOTS.write_text("\n".join(parts), encoding="utf-8")


if os.environ.get("NAMOO_UPDATE_SNAPSHOTS"):
    write_snapshots()


def test_the_line_in_a_message_is_the_users_not_that_of_numpy():
    with pytest.raises(errors.TracerArrayConversionError, match=r"test_errors\.py:\d+ \("):
        namoo.jit(np.linalg.norm)(jnp.ones(3))


def test_public_functions_hide_the_frames_of_the_package(tmp_path):
    # In a process of its own: some functions register what they are given, or write files.
    program = Path(__file__).parents[1] / "support" / "wrong_calls.py"
    environment = {**os.environ, "PYTHONPATH": str(Path(reference.__file__).parent)}
    run = subprocess.run(
        [sys.executable, program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (run.stdout, run.returncode) == ("", 0), run.stderr[-2000:]
