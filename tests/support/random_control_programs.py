"""Random programs with nested control flow, as Python source for both JAX and namoo.

A seed determines a program: its arguments, its statements, and the functions in them. Eager namoo
runs each statement as soon as it is written, so that the types are known for the next one.
`python tests/support/compare_control_programs.py --help` says how to run programs.
"""

from __future__ import annotations

import functools
import math
import random
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import namoo
import namoo.lax
import namoo.numpy

LARGEST, DEEPEST = 64, 3
FLOATS = ["float16", "bfloat16", "float32"]
INTEGERS = ["int8", "int16", "int32", "uint8", "uint16", "uint32"]
WIDE = ["float64", "int64", "uint64", "complex128"]


@dataclass
class Statement:
    """`target = text`, after the functions that the text mentions."""

    names: list[str]
    text: str
    functions: list[Function] = field(default_factory=list)
    exact: bool = True
    target: str = ""
    constants: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.target = self.target or ", ".join(self.names)

    def used(self) -> set[str]:
        return names_in(self.text).union(*(f.used() for f in self.functions))


@dataclass
class Function:
    """A function of the program; `after` are the lines that follow its definition."""

    name: str
    params: list[str]
    statements: list[Statement] = field(default_factory=list)
    result: str = ""
    decorator: str = ""
    after: list[str] = field(default_factory=list)

    def used(self) -> set[str]:
        return names_in(self.result).union(*(s.used() for s in self.statements))

    def lines(self, noise: bool) -> Iterator[str]:
        if self.decorator:
            yield self.decorator
        yield f"def {self.name}({', '.join(self.params)}):"
        for statement in self.statements:
            yield from ("    " + line for line in statement_lines(statement, noise))
        yield f"    return {self.result}"
        yield from self.after

    def prune(self, needed: set[str]) -> None:
        """Drop statements whose results are not used."""
        needed = needed | names_in(self.result)
        kept = []
        for statement in reversed(self.statements):
            if needed.intersection(statement.names):
                for function in statement.functions:
                    function.prune(set())
                needed |= statement.used()
                kept.append(statement)
        self.statements = kept[::-1]


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\b[vpf]\d+\b", text))


def statement_lines(statement: Statement, noise: bool) -> Iterator[str]:
    for function in statement.functions:
        yield from function.lines(noise)
    yield f"{statement.target} = {statement.text}"
    if noise and not statement.exact:
        yield from (f"{name} = noise({name})" for name in statement.names)


@dataclass
class Program:
    """A function, its arguments as source, and its settings and checks.

    `others` are more arguments of the same types; `refused` are statements that eager namoo did not
    run, each as a separate program.
    """

    seed: int
    x64: bool
    reverse: bool
    arguments: list[str]
    others: list[str]
    main: Function
    refused: list[Program]

    def source(self, check: str = "value", noise: bool = False) -> str:
        """Return the source that both libraries run; it defines `call` and `inputs`."""
        lines = list(self.main.lines(noise))
        if noise:
            lines[1:1] = [f"    {p} = noise({p})" for p in self.main.params]
        return "\n".join(
            [
                *lines,
                f"inputs = ({''.join(a + ', ' for a in self.arguments)})",
                *CHECKS[check](self),
            ]
        )

    def script(self, check: str = "value") -> str:
        """Return the source with imports and a call, for people to read or paste."""
        return "\n".join(
            [
                f"# seed {self.seed}",
                "import jax, numpy as np, jax.numpy as jnp",
                "from jax import lax",
                f'jax.config.update("jax_enable_x64", {self.x64})',
                self.source(check),
                "print(call(*inputs), jax.jit(call)(*inputs))",
            ]
        )


def value(program: Program) -> list[str]:
    return ["call = program"]


def gradient(program: Program) -> list[str]:
    floats = [i for i, a in enumerate(program.arguments) if re.search("'(b?float|complex)", a)]
    return [
        "def loss(*args):",
        "    outs = [out for out in program(*args) if jnp.issubdtype(out.dtype, jnp.inexact)]",
        "    sums = [jnp.sum(jnp.real(out)).astype('float32') for out in outs]",
        "    return sum(sums, jnp.float32(0))",
        f"call = jax.grad(loss, {tuple(floats)})",
    ]


def batch(program: Program) -> list[str]:
    axes = tuple(0 if a.startswith("jnp") else None for a in program.arguments)
    return [
        f"others = ({', '.join(program.others)},)",
        f"call = jax.vmap(program, in_axes={axes})",
        "examples = inputs, others",
        f"inputs = tuple(a if axis is None else jnp.asarray(np.stack([a, b]))"
        f" for a, b, axis in zip(inputs, others, {axes}))",
    ]


CHECKS = {"value": value, "gradient": gradient, "batch": batch}


class Rejected(Exception):
    """A statement cannot be written with the available values."""


class Writer:
    """The writer of one program."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.seed = seed
        self.x64 = self.chance(0.5)
        self.reverse = self.chance(0.5)
        self.dtypes = ["bool", *INTEGERS, *FLOATS, *FLOATS, "float32", "complex64"]
        self.dtypes += WIDE if self.x64 else []
        self.count = 0
        self.values: dict[str, Any] = {
            "jax": namoo, "jnp": namoo.numpy, "lax": namoo.lax, "np": np,
        }  # fmt: skip
        self.scope: list[str] = []
        self.refused: list[Program] = []
        self.depth = 0
        self.sizes = [self.pick([1, 2, 2, 3, 3]) for _ in range(3)]
        if self.chance(0.2):
            self.sizes[0] = 0
        self.bans: set[str] = set()
        if self.reverse:
            self.bans = {"while"}

    def pick(self, options: Any) -> Any:
        return self.rng.choice(options)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def shape(self, largest: int = 3) -> tuple[int, ...]:
        return tuple(self.pick(self.sizes) for _ in range(self.pick(range(largest + 1))))

    # Values: names of variables, numbers, and expressions of a wanted type.

    def variable(self, kinds: str = "biufc", where: Callable[[Any], Any] | None = None) -> str:
        """Return a variable in scope with a dtype of these kinds; newer ones are likelier."""
        found = [
            name
            for name in self.scope
            if kind(self.values[name]) in kinds and (not where or where(self.values[name]))
        ]
        if not found:
            raise Rejected
        return found[max(0, len(found) - 1 - int(self.rng.expovariate(0.5)))]

    def number(self, kinds: str = "bif") -> str:
        return {
            "b": lambda: self.pick(["True", "False"]),
            "i": lambda: str(self.pick([0, 1, 2, 3, -1, -2, 5, 7])),
            "f": lambda: self.pick(["0.5", "-1.5", "2.0", "0.1", "-0.0", "3.0", "1e-3"]),
            "c": lambda: self.pick(["(1-2j)", "0.5j"]),
        }[self.pick(kinds)]()

    def element(self, dtype: str) -> str:
        """Return the text of one number of a dtype, sometimes an extreme one."""
        rare = self.chance(0.12)
        if dtype == "bool":
            return self.pick(["True", "False"])
        if dtype.startswith("complex"):
            return f"complex({self.element('float32')}, {self.element('float32')})"
        if "float" in dtype:
            if rare:
                return self.pick(["np.nan", "np.inf", "-np.inf", "-0.0", "0.0", "1e4"])
            return repr(round(self.rng.uniform(-3, 3), 2))
        limits = np.iinfo(dtype)
        if rare:
            return str(self.pick([limits.min, limits.max, limits.max - 1]))
        return str(self.rng.randint(max(-5, int(limits.min)), 9))

    def array(self, shape: tuple[int, ...], dtype: str) -> str:
        if 0 in shape:
            return f"jnp.zeros({shape}, '{dtype}')"
        if not shape:
            return f"jnp.array({self.element(dtype)}, '{dtype}')"
        items = ", ".join(self.element(dtype) for _ in range(math.prod(shape)))
        text = f"jnp.array([{items}], '{dtype}')"
        return text if len(shape) == 1 else f"{text}.reshape{shape}"

    def fitted(self, shape: tuple[int, ...], dtype: str) -> str:
        """Return an expression of a variable with a given shape and dtype."""
        name = self.variable(where=lambda v: broadcasts(v.shape, shape) or self.chance(0.5))
        value, text = self.values[name], name
        if not broadcasts(value.shape, shape):
            text = f"jnp.sum({name})"
        if kind(value) == "c" and "complex" not in dtype:
            text = f"jnp.real({text})"
        if str(value.dtype) != dtype or text != name:
            text = f"({text} != 0)" if dtype == "bool" else f"{text}.astype('{dtype}')"
        return text if value.shape == shape and text else f"jnp.broadcast_to({text}, {shape})"

    def integer(self) -> str:
        """Return a scalar int32 that may be out of bounds for any axis."""
        if self.chance(0.3):
            return str(self.pick([0, 1, -1, 2, 5, -7]))
        kinds = self.variable("bi", lambda v: v.size)
        return f"{kinds}.ravel()[0].astype('int32')"

    def predicate(self) -> str:
        name = self.variable("biuf")
        if self.chance(0.3):
            return f"jnp.{self.pick(['any', 'all'])}({name} > {self.number('if')})"
        return f"(jnp.sum({name}) {self.pick(['>', '<=', '==', '!='])} {self.number('if')})"

    # Functions and statements.

    def function(
        self,
        samples: list[Any],
        wanted: Sequence[tuple[tuple[int, ...], str] | None],
        result: str = "{}",
        closed: bool = False,
        bans: str = "",
        decorator: str = "",
    ) -> Function:
        """Write a function of values like the samples, with results of the wanted types.

        `result` is a template for the results, where `p` are the parameters' names; a wanted type
        of None accepts any type.
        """
        function = Function(self.name("f"), [self.name("p") for _ in samples], decorator=decorator)
        scope, banned = self.scope, self.bans
        self.scope = ([] if closed else list(scope)) + function.params
        self.bans = banned | set(bans.split())
        self.values.update(zip(function.params, samples, strict=True))
        self.depth += 1
        try:
            for _ in range(self.pick([1, 1, 2, 2, 3])):
                self.write(function)
            texts = []
            for want in wanted:
                texts.append(self.fitted(*want) if want else self.variable())
            function.result = result.format(*texts, p=function.params)
        finally:
            self.depth -= 1
            self.scope, self.bans = scope, banned
        self.run("\n".join(function.lines(False)))
        return function

    def run(self, source: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(source, self.values)

    def write(self, function: Function) -> None:
        """Append one statement."""
        for _ in range(30):
            control = self.depth < DEEPEST and self.chance(0.45 if self.depth else 0.4)
            try:
                statement = self.pick(CONTROL if control else SIMPLE)(self)
            except Rejected:
                continue
            names = re.findall(r"\bv\d+\b", statement.target)
            statement.names = names
            try:
                self.run(f"{statement.target} = {statement.text}")
            except Exception:  # noqa: BLE001 - whether JAX refuses it as well is checked later
                self.refused.append(self.alone(statement))
                continue
            results = [self.values[name] for name in names]
            if any(v.size > LARGEST or v.ndim > 4 for v in results):
                continue
            statement.constants = [like(v) for v in results]
            function.statements.append(statement)
            self.scope = self.scope + names
            return
        raise Rejected

    def alone(self, statement: Statement) -> Program:
        """Return a program of one statement, with arguments like the variables it uses."""
        names = [name for name in self.scope if name in statement.used()]
        arguments = [like(self.values[name]) for name in names]
        main = Function("program", names, [statement], f"({', '.join(statement.names)},)")
        return Program(self.seed, self.x64, False, arguments, arguments, main, [])

    def program(self) -> Program:
        """Write the whole program."""
        arguments, others, main = [], [], Function("program", [])
        for _ in range(self.pick([2, 3, 3, 4])):
            name = self.name("p")
            main.params.append(name)
            if self.chance(0.15):
                arguments.append(self.number("bif"))
                others.append(arguments[-1])
                copy = self.name("v")
                self.run(f"{name} = {arguments[-1]}\n{copy} = jnp.asarray({name})")
                constant = like(self.values[copy])
                statement = Statement([copy], f"jnp.asarray({name})", constants=[constant])
                main.statements.append(statement)
                self.scope.append(copy)
                continue
            shape, dtype = self.shape(), self.pick(self.dtypes)
            arguments.append(from_numpy(self.array(shape, dtype)))
            others.append(from_numpy(self.array(shape, dtype)))
            self.run(f"{name} = {arguments[-1]}")
            self.scope.append(name)
        for _ in range(self.pick([2, 3, 4, 5])):
            self.write(main)
        written = [n for s in main.statements for n in s.names]
        kept = [n for n in written if self.chance(0.5) or n in main.statements[-1].names]
        main.result = f"({', '.join(kept)},)"
        main.prune(set())
        return Program(self.seed, self.x64, self.reverse, arguments, others, main, self.refused)


def write(seed: int) -> Program:
    writer, engine = Writer(seed), namoo.config.engine
    namoo.config.update("engine", "interpreter")
    try:
        with namoo.enable_x64(writer.x64):
            return writer.program()
    finally:
        namoo.config.update("engine", engine)


def kind(value: Any) -> str:
    """Return the kind of a dtype: b, i, u, f or c."""
    return kind_of_dtype(value.dtype)


@functools.cache
def kind_of_dtype(dtype: Any) -> str:
    return "f" if dtype.name == "bfloat16" else dtype.kind


def from_numpy(array: str) -> str:
    """Return the text of an array made by NumPy: JAX would compile each operation."""
    return f"jnp.asarray({array.replace('jnp.', 'np.')})"


def like(value: Any) -> str:
    """Return the text of a constant of a value's type."""
    if value.weak_type:
        number = {"b": "True", "i": "1", "f": "0.5", "c": "0.5j"}[kind(value)]
        return f"jnp.broadcast_to({number}, {value.shape})"
    return f"jnp.full({value.shape}, 1, '{value.dtype}')"


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


def compatible(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        return math.prod(np.broadcast_shapes(a, b)) <= LARGEST
    except ValueError:
        return False


# Simple statements: each takes the writer and returns a statement, whose target has a new name.


def assign(w: Writer, text: str, exact: bool = True, functions: Any = ()) -> Statement:
    return Statement([], text, list(functions), exact, w.name("v"))


REAL = (
    "sin cos tanh exp expm1 log1p sqrt cbrt arctan sinh arcsinh sinc exp2 log log2 reciprocal "
    "square rad2deg"
).split()
COMPLEX = "sin cos exp tanh sqrt square log conj".split()
EXACT = "negative abs sign floor ceil rint trunc isnan isfinite signbit positive".split()
NN = "relu sigmoid softplus gelu silu softmax log_softmax elu".split()


def elementary(w: Writer) -> Statement:
    x = w.variable("fffc")
    if kind(w.values[x]) == "c":
        part = w.pick(["real", "imag", "conj", "abs", "isnan", "negative"])
        if w.chance(0.4):
            return assign(w, f"jnp.{part}({x})", part not in ("abs",))
        return assign(w, f"jnp.{w.pick(COMPLEX)}({x})", False)
    if w.chance(0.2):
        return assign(w, f"jax.nn.{w.pick(NN)}({x})", False)
    return assign(w, f"jnp.{w.pick(REAL)}({x})", False)


def of_integers(w: Writer) -> Statement:
    """Write a function that turns integers or booleans into floats."""
    x = w.variable("biu")
    return assign(w, f"jnp.{w.pick(['sin', 'exp', 'sqrt', 'tanh', 'log1p', 'arctan'])}({x})", False)


def exact_unary(w: Writer) -> Statement:
    x = w.variable("iuf")
    fun = w.pick(EXACT)
    if kind(w.values[x]) != "f" and w.chance(0.5):
        fun = w.pick(["invert", "bitwise_count", "negative", "abs", "sign", "square"])
        if w.chance(0.3):
            return assign(w, f"lax.{w.pick(['clz', 'population_count', 'bitwise_not'])}({x})")
    return assign(w, f"jnp.{fun}({x})")


def pair(w: Writer, kinds: str) -> tuple[str, str]:
    x = w.variable(kinds)
    if w.chance(0.25):
        numbers = "".join(k for k in "bif" if k in kinds and (k == "i" or kind(w.values[x]) >= "c"))
        y = w.number(numbers or "i")
    else:
        y = w.variable(kinds, lambda v: compatible(v.shape, w.values[x].shape))
    return (x, y) if w.chance(0.7) else (y, x)


def arithmetic(w: Writer) -> Statement:
    x, y = pair(w, "iufc")
    return assign(w, f"{x} {w.pick(['+', '-', '*', '*', '/'])} {y}", False)


def powers(w: Writer) -> Statement:
    x = w.variable("iufc")
    if w.chance(0.6):
        return assign(w, f"{x} ** {w.pick([2, 3, 0, 1])}", False)
    if kind(w.values[x]) == "f":
        return assign(
            w, f"{w.pick(['jnp.abs', ''])}({x}) ** {w.pick(['0.5', '-1.5', '-2'])}", False
        )
    return assign(w, f"jnp.power({x}, {w.pick(['0.5', '2.0', '3'])})", False)


def discrete(w: Writer) -> Statement:
    """Write an integer division, an extremum or a comparison."""
    x, y = pair(w, "iuf")
    if w.chance(0.5):
        return assign(w, f"{x} {w.pick(['//', '%', '<', '<=', '==', '!='])} {y}")
    fun = w.pick(["maximum", "minimum", "fmod", "remainder", "fmax", "fmin", "copysign", "gcd"])
    if fun == "gcd":
        x, y = w.variable("i"), w.number("i")
    return assign(w, f"jnp.{fun}({x}, {y})")


def bits(w: Writer) -> Statement:
    if w.chance(0.5):
        x, y = pair(w, w.pick(["i", "u", "b", "iu"]))
        if w.values.get(x) is not None and kind(w.values[x]) == "b" or y in ("True", "False"):
            return assign(w, f"jnp.logical_{w.pick(['and', 'or', 'xor'])}({x}, {y})")
        return assign(w, f"{x} {w.pick('&|^')} {y}")
    x = w.variable("iu")
    if w.chance(0.6):
        return assign(w, f"{x} {w.pick(['<<', '>>'])} {w.pick([0, 1, 3, 7, 31, 40, -1])}")
    y = w.variable("iu", lambda v: v.dtype == w.values[x].dtype and v.shape == w.values[x].shape)
    funs = ["shift_left", "shift_right_logical", "shift_right_arithmetic"]
    # XLA folds divisions of constants while compiling, and crashes on division by zero.
    funs += ["rem", "div"] if x != y else []
    return assign(w, f"lax.{w.pick(funs)}({x}, {y})")


def converted(w: Writer) -> Statement:
    x = w.variable()
    dtype = w.pick(w.dtypes)
    if kind(w.values[x]) == "c" and "complex" not in dtype:
        return assign(w, f"jnp.real({x}).astype('{dtype}')")
    if w.chance(0.2):
        width = w.values[x].dtype.itemsize
        same = [d for d in w.dtypes if d != "bool" and namoo.numpy.dtype(d).itemsize == width]
        if kind(w.values[x]) in "iuf" and (same := [d for d in same if "complex" not in d]):
            return assign(w, f"lax.bitcast_convert_type({x}, '{w.pick(same)}')")
    return assign(w, f"{x}.astype('{dtype}')", kind(w.values[x]) != "f")


def chosen(w: Writer) -> Statement:
    x = w.variable()
    v = w.values[x]
    if w.chance(0.2) and kind(v) in "iuf":
        low, high = sorted([w.number("i"), w.number("i")], key=int)
        return assign(w, f"jnp.clip({x}, {low}, {high})")
    y = (
        w.number("bi")
        if w.chance(0.3)
        else w.variable("biufc", lambda u: compatible(u.shape, v.shape))
    )
    test = w.variable("b", lambda u: compatible(u.shape, v.shape))
    return assign(w, f"jnp.where({test}, {x}, {y})")


def reduced(w: Writer) -> Statement:
    x = w.variable()
    v = w.values[x]
    axis = w.pick([None, *range(v.ndim)])
    keep = f", keepdims={w.chance(0.3)}"
    where = ""
    if w.chance(0.15):
        try:
            where = f", where={w.variable('b', lambda u: broadcasts(u.shape, v.shape))}"
        except Rejected:
            pass
    options = ["sum", "prod", "any", "all"]
    if kind(v) in "iufb":
        initial = {"b": "False", "u": "1"}.get(kind(v), "-2")
        if w.chance(0.4):
            fun = w.pick(["max", "min"])
            return assign(w, f"jnp.{fun}({x}, axis={axis}{keep}{where}, initial={initial})")
        if w.chance(0.3) and (v.size if axis is None else v.shape[axis]):
            return assign(w, f"jnp.{w.pick(['argmax', 'argmin'])}({x}, axis={axis}{keep})")
    if kind(v) in "fc":
        options += ["mean", "var", "std", "nansum"]
    if kind(v) == "f" and not where and w.chance(0.3):
        return assign(w, f"jax.nn.logsumexp({x}, axis={axis}{keep})", False)
    fun = w.pick(options)
    return assign(w, f"jnp.{fun}({x}, axis={axis}{keep}{where})", fun in ("any", "all"))


def accumulated(w: Writer) -> Statement:
    x = w.variable("iufc", lambda v: v.ndim)
    v = w.values[x]
    axis = w.pick(range(v.ndim))
    if w.chance(0.4):
        return assign(w, f"jnp.{w.pick(['cumsum', 'cumprod'])}({x}, axis={axis})", False)
    if kind(v) == "c":
        raise Rejected
    if w.chance(0.5):
        fun = w.pick(["cummax", "cummin", "cumsum", "cumlogsumexp"])
        if fun == "cumlogsumexp" and kind(v) != "f":
            raise Rejected
        reverse = w.chance(0.5)
        return assign(
            w, f"lax.{fun}({x}, axis={axis}, reverse={reverse})", fun[3:] in ("max", "min")
        )
    fun = w.pick(["jnp.maximum", "jnp.add", "jnp.minimum"])
    return assign(w, f"lax.associative_scan({fun}, {x}, axis={axis})", fun == "jnp.maximum")


def ordered(w: Writer) -> Statement:
    x = w.variable("biuf", lambda v: v.ndim)
    v = w.values[x]
    axis = w.pick(range(v.ndim))
    if w.chance(0.2) and v.shape[-1] and kind(v) != "b":
        return assign(w, f"lax.top_k({x}, {w.pick(range(v.shape[-1] + 1))})[{w.pick([0, 1])}]")
    if w.chance(0.2):
        y = w.variable("biuf", lambda u: u.dtype == v.dtype)
        side = w.pick(["left", "right"])
        return assign(w, f"jnp.searchsorted(jnp.sort({x}.ravel()), {y}, side='{side}')")
    return assign(w, f"jnp.{w.pick(['sort', 'argsort'])}({x}, axis={axis})")


def moved(w: Writer) -> Statement:
    x = w.variable()
    v = w.values[x]
    ways = [
        f"{x}.reshape(-1)", f"{x}.T", f"{x}[None]", f"jnp.squeeze({x})", f"jnp.flip({x})",
        f"{x}[..., None]", f"jnp.broadcast_to({x}, {(2, *v.shape)})", f"jnp.atleast_2d({x})",
    ]  # fmt: skip
    if v.ndim:
        axis = w.pick(range(v.ndim))
        ways += [
            f"jnp.roll({x}, {w.integer()}, axis={axis})",
            f"jnp.repeat({x}, 2, axis={axis})",
            f"jnp.moveaxis({x}, {axis}, -1)",
            f"jnp.tile({x}, {w.pick([1, 2])})",
            f"{x}[::-1]", f"{x}[1:]", f"{x}[:-1]", f"{x}[::2]", f"{x}[..., :1]",
            f"jnp.concatenate([{x}, {x}], axis={axis})",
            f"jnp.diff({x}, axis={axis})" if kind(v) != "b" else f"~{x}",
        ]  # fmt: skip
        low, high, inner = w.pick([0, 1, -1]), w.pick([0, 1, 2, -1]), w.pick([0, 0, 1])
        config = ", ".join(f"({low}, {high}, {inner})" if i == axis else "(0, 0, 0)"
                           for i in range(v.ndim))  # fmt: skip
        size = v.shape[axis]
        if size + low + high + max(size - 1, 0) * inner >= 0:
            ways.append(f"lax.pad({x}, jnp.array(0, {x}.dtype), [{config}])")
    if v.ndim >= 2:
        ways += [f"jnp.tril({x})", f"jnp.triu({x}, 1)", f"jnp.swapaxes({x}, 0, -1)"]
    return assign(w, w.pick(ways))


def joined(w: Writer) -> Statement:
    x = w.variable()
    v = w.values[x]
    y = w.variable(where=lambda u: u.shape == v.shape)
    if v.ndim and w.chance(0.5):
        return assign(w, f"jnp.concatenate([{x}, {y}], axis={w.pick(range(v.ndim))})")
    return assign(w, f"jnp.stack([{x}, {y}], axis={w.pick(range(v.ndim + 1))})")


def multiplied(w: Writer) -> Statement:
    x = w.variable("iufc", lambda v: v.ndim)
    v = w.values[x]
    if w.chance(0.4):
        y = w.variable("iufcb", lambda u: u.ndim and u.shape[0] == v.shape[-1] and u.ndim <= 2)
        return assign(w, f"jnp.dot({x}, {y})", False)
    if w.chance(0.3):
        y = w.variable("iufc", lambda u: u.shape == v.shape)
        return assign(w, f"jnp.einsum('...i,...i->...', {x}, {y})", False)
    if w.chance(0.3):
        y = w.variable("iuf", lambda u: u.size * v.size <= LARGEST)
        return assign(w, f"jnp.outer({x}, {y})", False)
    if v.ndim == 1:
        y = w.variable("iuf", lambda u: u.ndim == 1 and u.size)
        if not v.size:
            raise Rejected
        return assign(w, f"jnp.convolve({x}, {y}, mode='{w.pick(['full', 'same'])}')", False)
    return assign(w, f"{x} @ jnp.swapaxes({x}, -1, -2)", False)


def taken(w: Writer) -> Statement:
    """Write a read at indices that may be out of bounds."""
    x = w.variable(where=lambda v: v.ndim and v.shape[0])
    v = w.values[x]
    way = w.pick(["scalar", "array", "mode", "take", "along", "slice", "slice", "two"])
    if way == "along":
        index = w.variable("i", lambda u: u.ndim == v.ndim and u.shape[1:] == v.shape[1:])
        return assign(w, f"jnp.take_along_axis({x}, {index}, axis=0)")
    if way == "scalar":
        return assign(w, f"{x}[jnp.asarray({w.integer()})]")
    if way == "slice":
        axis = w.pick(range(v.ndim))
        size = w.pick(range(v.shape[axis] + 1))
        return assign(w, f"lax.dynamic_slice_in_dim({x}, {w.integer()}, {size}, axis={axis})")
    if way == "two" and v.ndim >= 2 and v.shape[1]:
        return assign(w, f"{x}[jnp.asarray({w.integer()}), jnp.array([0, -1, 5])]")
    index = (
        w.variable("iu", lambda u: u.ndim <= 2)
        if w.chance(0.5)
        else w.pick(["jnp.array([0, 7, -1])", "jnp.array([-9, 1], 'int8')", "jnp.zeros((0,), int)"])
    )
    if way == "mode":
        options = f"mode='{w.pick(['clip', 'drop', 'fill'])}'"
        if kind(v) in "iuf" and w.chance(0.3):
            options = "mode='fill', fill_value=3"
        return assign(w, f"{x}.at[{index}].get({options})")
    if way == "take":
        axis = w.pick([None, *[i for i in range(v.ndim) if v.shape[i]]])
        if not v.size:
            raise Rejected
        return assign(
            w, f"jnp.take({x}, {index}, axis={axis}, mode='{w.pick(['clip', 'fill', 'wrap'])}')"
        )
    return assign(w, f"{x}[{index}]")


def updated(w: Writer) -> Statement:
    """Write an update at indices that may be out of bounds."""
    x = w.variable("iufcb", lambda v: v.ndim and v.shape[0])
    v = w.values[x]
    dtype = str(v.dtype)
    methods = ["set"] if dtype == "bool" else ["set", "add", "multiply", "add"]
    if kind(v) in "iuf":
        methods += ["min", "max"]
    method = w.pick(methods)
    mode = f", mode='{w.pick(['clip', 'drop', 'fill'])}'" if w.chance(0.5) else ""
    if w.chance(0.25):
        axis = w.pick(range(v.ndim))
        shape = tuple(w.pick(range(n + 1)) if i == axis else n for i, n in enumerate(v.shape))
        part = w.fitted(shape, dtype)
        return assign(
            w, f"lax.dynamic_update_slice_in_dim({x}, {part}, {w.integer()}, axis={axis})"
        )
    if w.chance(0.4):
        part = w.fitted(v.shape[1:], dtype)
        return assign(w, f"{x}.at[jnp.asarray({w.integer()})].{method}({part}{mode})", False)
    index = w.pick(["jnp.array([0, 7, 0])", "jnp.array([-9, 1, -1])", "jnp.array([1, 2, 1])"])
    if method == "set":
        index = w.pick(["jnp.array([0, 7])", "jnp.array([-9, -1])", "jnp.zeros((0,), int)"])
    part = w.fitted(v.shape[1:], dtype)
    return assign(w, f"{x}.at[{index}].{method}({part}{mode})", False)


def made(w: Writer) -> Statement:
    dtype = w.pick(w.dtypes[1:])
    ways = [
        f"jnp.arange({w.pick([0, 1, 3, 4])}, dtype='{dtype}')" if "complex" not in dtype else "",
        f"jnp.full({w.shape()}, {w.number('i')})",
        f"jnp.zeros({w.shape()}, '{dtype}')",
        f"jnp.ones({w.shape()}, '{dtype}')",
        f"jnp.eye({w.pick([0, 1, 2, 3])}, dtype='{dtype}')",
        f"jnp.linspace(0, 1, {w.pick([1, 2, 3])})",
        w.array(w.shape(), dtype),
        f"jnp.asarray({w.number()})",
        f"lax.broadcasted_iota('int32', {w.pick([(2, 3), (1, 2), (3, 0)])}, {w.pick([0, 1])})",
    ]
    return assign(w, w.pick([way for way in ways if way]))


def drawn(w: Writer) -> Statement:
    key = f"jax.random.key({w.pick(range(9))})"
    if w.chance(0.5):
        key = f"jax.random.fold_in({key}, {w.integer()})"
    if w.chance(0.4):
        return assign(w, f"jax.random.bits({key}, {w.shape(2)}, 'uint8')")
    if w.chance(0.5):
        return assign(w, f"jax.random.randint({key}, {w.shape(2)}, -3, 6)")
    fun = w.pick(["uniform", "normal", "bernoulli"])
    if fun == "bernoulli":
        return assign(w, f"jax.random.bernoulli({key}, 0.4, {w.shape(2)})")
    return assign(w, f"jax.random.{fun}({key}, {w.shape(2)}, '{w.pick(FLOATS)}')", False)


def segments(w: Writer) -> Statement:
    x = w.variable("iuf", lambda v: v.ndim)
    v = w.values[x]
    ids = w.variable("i", lambda u: u.shape == v.shape[:1])
    fun = w.pick(["sum", "max", "min", "prod"])
    return assign(w, f"jax.ops.segment_{fun}({x}, {ids}, {w.pick([1, 3])})", False)


SIMPLE = [
    elementary, elementary, of_integers, exact_unary, arithmetic, arithmetic, arithmetic, powers,
    discrete, discrete, bits, bits, converted, converted, chosen, chosen, reduced, reduced,
    accumulated, ordered, moved, moved, joined, multiplied, taken, taken, updated, updated,
    made, drawn, segments,
]  # fmt: skip


# Control flow and transformations: statements with functions inside.


def kind_of(value: Any) -> tuple[tuple[int, ...], str]:
    return value.shape, str(value.dtype)


def some_kind(w: Writer, kinds: str = "biufc") -> tuple[tuple[int, ...], str]:
    """Return a type like that of a variable, or any other."""
    if w.chance(0.6):
        return kind_of(w.values[w.variable(kinds)])
    dtypes = [d for d in w.dtypes if kind_of_dtype(namoo.numpy.dtype(d)) in kinds]
    return w.shape(2), w.pick(dtypes)


def branched(w: Writer) -> Statement:
    operands = [w.variable() for _ in range(w.pick([0, 1, 2]))]
    samples = [w.values[x] for x in operands]
    wanted = [some_kind(w) for _ in range(w.pick([1, 1, 2]))]
    many = w.chance(0.4)
    functions = [
        w.function(samples, wanted, tuple_of(wanted))
        for _ in range(w.pick([1, 2, 3]) if many else 2)
    ]
    names = [f.name for f in functions]
    target = ", ".join(w.name("v") for _ in wanted) + ("," if len(wanted) == 1 else "")
    rest = "".join(f", {x}" for x in operands)
    if many:
        text = f"lax.switch({w.integer()}, [{', '.join(names)}]{rest})"
    else:
        text = f"lax.cond({w.predicate()}, {', '.join(names)}{rest})"
    return Statement([], text, functions, True, target)


def tuple_of(items: list[Any]) -> str:
    return "(" + "{}, " * len(items) + ")"


def unpack(w: Writer, function: Function, names: list[str]) -> None:
    """Make a function take its first parameters as one tuple, unpacked by its first statement."""
    state = w.name("p")
    function.params = [state, *function.params[len(names) :]]
    target = ", ".join(names) + "," * (len(names) == 1)
    function.statements.insert(0, Statement(names, state, target=target))
    w.run("\n".join(function.lines(False)))


def scanned(w: Writer) -> Statement:
    carried = [w.variable() for _ in range(w.pick([1, 1, 2]))]
    samples = [w.values[c] for c in carried]
    over = w.chance(0.7) and w.variable(where=lambda v: v.ndim)
    if over:
        xs = w.values[over]
        samples.append(namoo.numpy.zeros(xs.shape[1:], xs.dtype))
        tail = over
    else:
        samples.append(namoo.numpy.zeros((), int))
        tail = f"jnp.arange({w.pick([0, 1, 3])})"
    wanted = [kind_of(w.values[c]) for c in carried]
    function = w.function(samples, [*wanted, None], f"{tuple_of(wanted)}, {{}}")
    unpack(w, function, function.params[:-1])
    carries = ", ".join(w.name("v") for _ in carried) + ","
    options = ", reverse=True" if w.chance(0.3) else ""
    options += f", unroll={w.pick([2, 'True'])}" if w.chance(0.15) else ""
    text = f"lax.scan({function.name}, ({', '.join(carried)},), {tail}{options})"
    return Statement([], text, [function], True, f"({carries}), {w.name('v')}")


def looped(w: Writer) -> Statement:
    x = w.variable()
    sample = w.values[x]
    counter = namoo.numpy.asarray(0)
    if "while" in w.bans or w.chance(0.6):
        bounds = f"{w.pick([0, 1, -1])}, {w.pick([0, 1, 2, 3])}"
        if "while" not in w.bans and w.chance(0.5):
            low, high = w.integer(), w.integer()
            bounds = f"jnp.maximum(jnp.int32({low}), -2), jnp.minimum(jnp.int32({high}), 3)"
            counter = namoo.numpy.int32(0)
        function = w.function([counter, sample], [kind_of(sample)])
        body = function.name
        if not counter.weak_type:
            # Known bounds make the counter weakly typed, but only eager code knows them.
            body = f"lambda i, x: {body}(jnp.int32(i), x)"
        return assign(w, f"lax.fori_loop({bounds}, {body}, {x})", True, [function])
    function = w.function([counter, sample], [kind_of(sample)], "({p[0]} + 1, {})")
    unpack(w, function, function.params)
    end = w.name("p")
    test = ""
    if kind(sample) in "biuf" and w.chance(0.5):
        test = f" & (jnp.sum({end}[1]) {w.pick(['<', '>', '!='])} {w.number('if')})"
    test = f"lambda {end}: ({end}[0] < {w.pick([0, 1, 3])}){test}"
    text = f"lax.while_loop({test}, {function.name}, (0, {x}))[1]"
    return assign(w, text, True, [function])


def mapped(w: Writer) -> Statement:
    x = w.variable(where=lambda v: v.ndim)
    v = w.values[x]
    axis = w.pick(range(v.ndim))
    size = v.shape[axis]
    args, axes, samples = [], [], []
    for y in [x] + [w.variable() for _ in range(w.pick([0, 1, 2]))]:
        u = w.values[y]
        options = [i for i in range(u.ndim) if u.shape[i] == size]
        a = axis if y == x else w.pick([None, *options])
        args.append(y)
        axes.append(a if a is None or w.chance(0.7) else a - u.ndim)
        shape = u.shape if a is None else u.shape[:a] + u.shape[a + 1 :]
        samples.append(namoo.numpy.zeros(shape, u.dtype))
    function = w.function(samples, [None])
    out = w.pick([0, 0, -1])
    if w.chance(0.15) and len(args) == 1 and axis == 0:
        return assign(w, f"lax.map({function.name}, {x})", True, [function])
    text = f"jax.vmap({function.name}, in_axes=({', '.join(map(str, axes))},), out_axes={out})"
    return assign(w, f"{text}({', '.join(args)})", True, [function])


def differentiated(w: Writer) -> Statement:
    x = w.variable("f")
    v = w.values[x]
    if w.chance(0.5):
        wanted = ((), str(v.dtype) if w.chance(0.7) else w.pick(FLOATS))
        function = w.function([v], [wanted], bans="while")
        way = w.pick(["grad", "grad", "jacrev"])
        return assign(w, f"jax.{way}({function.name})({x})", True, [function])
    wanted = some_kind(w, "f")
    way = w.pick(["jvp", "vjp", "linearize", "jacfwd"])
    function = w.function([v], [wanted], bans="while" if way == "vjp" else "custom_vjp")
    name = function.name
    text = {
        "jvp": f"jax.jvp({name}, ({x},), (jnp.ones_like({x}),))[1]",
        "vjp": f"jax.vjp({name}, {x})[1](jnp.full({wanted[0]}, 0.5, '{wanted[1]}'))[0]",
        "linearize": f"jax.linearize({name}, {x})[1](jnp.ones_like({x}))",
        "jacfwd": f"jax.jacfwd({name})({x})",
    }[way]
    return assign(w, text, True, [function])


def ruled(w: Writer) -> Statement:
    """Write a function with a custom derivative, half the tangent."""
    x = w.variable("fc")
    v = w.values[x]
    way = w.pick(["custom_jvp", "custom_vjp"])
    if way in w.bans:
        way = "custom_jvp"
    function = w.function([v], [kind_of(v)], closed=True, decorator=f"@jax.{way}")
    name = function.name
    function.after = (
        [f"{name}.defjvp(lambda ps, ts: ({name}(ps[0]), ts[0] * 0.5))"]
        if way == "custom_jvp"
        else [f"{name}.defvjp(lambda p: ({name}(p), p), lambda r, ct: (ct * 0.5,))"]
    )
    w.run("\n".join(function.lines(False)))
    return assign(w, f"{name}({x})", True, [function])


def called(w: Writer) -> Statement:
    args = [w.variable() for _ in range(w.pick([1, 2]))]
    function = w.function([w.values[a] for a in args], [None])
    way = w.pick(["jit", "jit", "checkpoint"])
    return assign(w, f"jax.{way}({function.name})({', '.join(args)})", True, [function])


CONTROL = [
    branched, branched, branched, scanned, scanned, looped, looped, mapped, mapped,
    differentiated, differentiated, ruled, called,
]  # fmt: skip
