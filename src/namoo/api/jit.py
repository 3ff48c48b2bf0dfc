"""`jit`: trace a function once per kind of arguments, and run the program from then on."""

from __future__ import annotations

import contextlib
import functools
import itertools
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from namoo import _dtypes, _spans, errors, tree_util
from namoo._accelerator import native
from namoo._config import config
from namoo._lazy import collector_waits, later
from namoo._pickling import by_name
from namoo.api import dispatch
from namoo.api.arguments import (
    Static,
    argnums_tuple,
    argument_paths,
    function_name,
    is_array,
    require_callable,
    signature,
)
from namoo.api.retrace import Explanation, Fixed, Retrace, Signature, reasons
from namoo.control.call import jit_p
from namoo.control.trees import forget_programs
from namoo.core.array import Array, EagerArray, PlacedArray
from namoo.core.avals import ShapedArray, ShapeDtypeStruct, aval_of
from namoo.core.jaxpr import ClosedJaxpr, eval_jaxpr, needed
from namoo.core.trace import Tracer, context, eval_trace, wrap
from namoo.engines import base
from namoo.engines.base import require_device
from namoo.engines.choice import compile as compile_program
from namoo.transforms.identity import function_key
from namoo.transforms.program import ProgramPrimitive, speaks_of_devices
from namoo.transforms.stage import close, stage

if TYPE_CHECKING:
    from namoo.api import donation as donations
    from namoo.api import layout, stages
else:  # what most functions do without
    donations = later("namoo.api.donation")
    layout = later("namoo.api.layout")
    stages = later("namoo.api.stages")

ProgramPrimitive.compiler = staticmethod(compile_program)
base.stage = stage


def _on_devices(prim: Any, values: Sequence[Any], params: dict[str, Any]) -> Any:
    # Loaded late: most programs run where the host is.
    from namoo.api.placement import apply

    return apply(prim, values, params)


ProgramPrimitive.on_devices = staticmethod(_on_devices)


def _leaf_key(x: Any) -> Any:
    """What of a leaf decides which program serves it."""
    kind = type(x)
    if kind is EagerArray:
        value = x._value
        return value.shape, value.dtype, x._weak
    if isinstance(x, (Array, np.ndarray, np.generic, ShapeDtypeStruct, ShapedArray)):
        aval = aval_of(x)
        key = aval.shape, getattr(aval.dtype, "numpy", aval.dtype), aval.weak_type
        return (*key, aval.vma) if aval.vma else key
    if kind in (bool, int, float, complex):
        aval = aval_of(x)  # refuses an integer that does not fit
        return aval.shape, aval.dtype, aval.weak_type
    if kind is slice:  # has no hash before Python 3.12
        return slice, x.start, x.stop, x.step
    return Fixed(kind, x)


# A program serves arguments of several classes (arrays, NumPy's, Python's numbers) in one type;
# what was not recognised after so many lessons never will be.
_LESSONS = 8


class _Program:
    """A traced program: the equations, its constants, and the structure of its result.

    What runs is `program`, which has no inputs that nothing needs: of the constants it is given
    `given`, and of the operands those whose numbers are not in `unused`.
    """

    __slots__ = (
        "closed",
        "consts",
        "cost",
        "donation",
        "fixed_out",
        "given",
        "lessons",
        "number",
        "out_tree",
        "placed",
        "program",
        "unused",
        "weak_out",
    )

    def __init__(self, closed, consts, out_tree, fixed_out, cost, keep_unused):
        self.closed: ClosedJaxpr = closed
        self.consts: list[Any] = consts
        self.program, self.given, self.unused = closed, consts, frozenset()
        if not keep_unused:
            self._drop_unused()
        self.out_tree = out_tree
        self.fixed_out: Static = fixed_out
        self.weak_out = [a.weak_type for a in closed.out_avals]
        self.cost = cost
        self.donation: donations.Donation | None = None
        self.lessons = 0
        self.placed: bool | None = None
        self.number = next(_numbers)

    def _drop_unused(self):
        jaxpr, count = self.closed.jaxpr, len(self.consts)
        eqns, read = needed(jaxpr)
        kept = [i for i, v in enumerate(jaxpr.invars) if v in read]
        if len(kept) < len(jaxpr.invars):
            lean = jaxpr.replace(invars=[jaxpr.invars[i] for i in kept], eqns=eqns)
            self.program = self.closed.replace(jaxpr=lean)
            self.given = [self.consts[i] for i in kept if i < count]
            self.unused = frozenset(range(len(jaxpr.invars) - count)).difference(
                i - count for i in kept
            )

    def used(self, operands: Sequence[Any]) -> Sequence[Any]:
        """Of something for each operand, that of those which the program takes."""
        if not self.unused:
            return operands
        return [x for i, x in enumerate(operands) if i not in self.unused]

    def donate(self, donated: Sequence[bool], engine: str | None) -> None:
        """Let the program keep the memory of some operands."""
        places = [i for i, d in enumerate(self.used(donated), len(self.given)) if d]
        if places:
            self.donation = donations.Donation(self.program, places, engine)


# A tracing is explained by the nearest of so many before it.
_COMPARED = 16


class _Cache:
    """The programs of one function, and why each was traced."""

    __slots__ = ("__weakref__", "calls", "keys", "programs", "records", "signatures")

    def __init__(self):
        self.calls = dispatch.new_calls()
        self.programs: dict[Any, _Program] = {}
        self.keys: dict[int, Any] = {}
        """Those of the programs, by the programs' numbers."""
        self.signatures: list[Signature] = []
        self.records: list[Retrace] = []

    def clear(self):
        if self.calls is not None:
            self.calls.clear()
        self.programs.clear()
        self.keys.clear()
        self.signatures.clear()
        self.records.clear()


# The programs of all functions by their numbers, with the caches they are in; the one that was used
# last is at the end.  A call that C++ recognises does not come here: it holds its programs itself.
_recent: OrderedDict[int, weakref.ref[_Cache]] = OrderedDict()
_numbers = itertools.count()
_PROGRAMS_LIMIT = 4096


def _let_go() -> None:
    """Forget the program that was used the longest ago."""
    number, cache = _recent.popitem(last=False)
    cache = cache()
    if cache is not None and number in cache.keys:
        cache.programs.pop(cache.keys.pop(number), None)


# Caches of functions that equal ones share, by what the functions are; the newest last.
_shared: OrderedDict[Any, tuple[_Cache, list[Any]]] = OrderedDict()
_SHARED_LIMIT = 512
# Caches of functions that are only equal to themselves.
_own: weakref.WeakKeyDictionary[Any, dict[Any, _Cache]] = weakref.WeakKeyDictionary()


def _cache_for(fun: Callable, options: Any) -> _Cache:
    found = function_key(fun)
    if found is not None:
        key, kept = found
        try:
            entry = _shared.get((key, options))
        except TypeError:  # a default or a bound value without hash
            entry, key = None, None
        if entry is not None:
            _shared.move_to_end((key, options))
            return entry[0]
        if key is not None:
            cache = _Cache()
            # What the key names by identity is kept, so that no other object gets its id.
            _shared[key, options] = cache, kept
            while len(_shared) > _SHARED_LIMIT:
                _shared.popitem(last=False)
            return cache
    try:
        return _own.setdefault(fun, {}).setdefault(options, _Cache())
    except TypeError:  # not weakly referable, or without hash
        return _Cache()


def clear_caches() -> None:
    """Forget all traced programs, and give back most of the memory that is kept for results.

    >>> clear_caches()
    """
    if native is not None:
        native.pool_limit(None)
    forget_programs()
    for cache, _ in list(_shared.values()):
        cache.clear()
    for caches in list(_own.values()):
        for cache in caches.values():
            cache.clear()


class Jitted(dispatch.Dispatcher):
    """A function under `jit`.  Call it as the function itself."""

    def __init__(self, fun: Callable, **options: Any):
        functools.update_wrapper(self, fun, updated=())
        # A callable object may have attributes with the names of our methods.
        attributes = getattr(fun, "__dict__", {}).items()
        self.__dict__.update({k: v for k, v in attributes if not hasattr(type(self), k)})
        self._fun = fun
        self._given = options
        self._name = function_name(fun)
        self._inline = options["inline"]
        self._nums, self._names = _chosen_arguments(fun, "static", *options["static"])
        self._donated = _chosen_arguments(fun, "donate", *options["donate"])
        _refuse_overlap(self._nums, self._names, *self._donated)
        self._keep_unused = options["keep_unused"]
        self._engine = options["engine"]
        told = any(x is not None for x in options["shardings"])
        self._shardings = layout.Shardings.of(*options["shardings"]) if told else None
        self._options = (self._nums, self._names, self._inline, self._keep_unused)
        if any(self._donated):
            self._options += (self._donated,)
        if self._engine is not None or self._shardings is not None:
            self._options += (self._engine, self._shardings)
        self._cache_or_none: _Cache | None = None

    @property
    def _cache(self) -> _Cache:
        # Looked up at the first use: a decorated function may close over things defined later.
        if self._cache_or_none is None:
            self._cache_or_none = _cache_for(self._fun, self._options)
            self.calls = self._cache_or_none.calls
        return self._cache_or_none

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A function decorated in a class is a method."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<jit of {self._fun!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return by_name(self) or (_jitted, (self._fun, self._given))

    def _split(self, args: tuple, kwargs: dict) -> tuple[tuple, dict, tuple]:
        """Arguments that are data, and static ones with their names or numbers."""
        nums = {i % len(args) for i in self._nums if -len(args) <= i < len(args)} if args else ()
        static = [(i, args[i]) for i in sorted(nums)]
        static += [(k, kwargs[k]) for k in sorted(kwargs) if k in self._names]
        for name, value in static:
            if isinstance(value, Array):
                raise ValueError(
                    f"Non-hashable static arguments are used in a jit function: argument {name!r} "
                    f"of {self._name} is an array. Arrays are data: do not mark it static."
                )
            try:
                hash(value)
            except TypeError:
                raise ValueError(
                    f"Non-hashable static arguments are used in a jit function: argument {name!r} "
                    f"of {self._name} is {value!r} of type {type(value).__name__}. Static "
                    "arguments decide which program is used, so they need __hash__ and __eq__: "
                    "pass a tuple for a list, a frozen dataclass for a dict; or do not mark it "
                    "static."
                ) from None
        args = tuple(x for i, x in enumerate(args) if i not in nums)
        kwargs = {k: v for k, v in kwargs.items() if k not in self._names}
        return args, kwargs, tuple(static)

    def general(self, args: tuple, kwargs: dict) -> Any:
        """A call whose arguments were not recognised at once."""
        if config.disable_jit:
            return self._fun(*args, **kwargs)
        return self._call(args, kwargs)

    def _call(self, args, kwargs):
        static = ()
        if self._nums or self._names:
            args, kwargs, static = self._split(args, kwargs)
        leaves, tree = tree_util.tree_flatten((args, kwargs))
        traced = self._program(leaves, tree, args, kwargs, static)
        operands = leaves if not any(map(_is_fixed, leaves)) else [x for x in leaves if is_array(x)]
        if context.trace is eval_trace:
            used = traced.used(operands)
            inputs = (*traced.given, *used)
            if self._is_placed(traced, used):
                run = self._plan(traced, operands, args, kwargs).ready()
                outs = run(inputs)
                if self.calls is not None and run.buffers is not None:
                    self._learn(traced, leaves, tree, static, run)
                return traced.out_tree.unflatten(traced.fixed_out.join(outs))
            if traced.donation is None:
                run = self._executable(traced.program)
                outs = dispatch.execute(run, inputs)
            else:
                outs = traced.donation(inputs)
            outs = list(map(wrap, outs, traced.weak_out))
            if self.calls is not None:
                self._learn(traced, leaves, tree, static)
        else:
            closed = traced.closed
            if self._shardings is not None:
                closed = self._shardings.constrained(args, kwargs, traced)
            if self._inline:
                outs = eval_jaxpr(closed.jaxpr, (), *traced.consts, *operands)
            else:
                outs = jit_p.bind(*traced.consts, *operands, jaxpr=closed, name=self._name)
        return traced.out_tree.unflatten(traced.fixed_out.join(outs))

    def _executable(self, closed: ClosedJaxpr) -> Any:
        """The program made ready by the engine of this function, or by the one of the settings."""
        cache = closed.jaxpr.cache
        if self._engine is None:
            return cache.get("executable") or ProgramPrimitive.executable(closed)
        run = cache.get(("executable", self._engine))
        if run is None:
            run = compile_program(closed, {"engine": self._engine})
            cache["executable", self._engine] = run
        return run

    def _is_placed(self, traced: _Program, used: Sequence[Any]) -> bool:
        """Whether the program runs on devices of its own, from the operands that it takes."""
        if traced.placed is None:
            # Whether the program itself speaks of devices; arguments are asked each time.
            told = self._shardings is not None and self._shardings.are_elsewhere()
            traced.placed = told or speaks_of_devices(traced.program.jaxpr)
        if traced.placed:
            return True
        # What happens to lie where XLA runs programs anyway needs no other way.
        loose = (self._engine or config.engine) != "xla"
        return any(
            type(x) is PlacedArray and (x._committed or (loose and x._follows)) for x in used
        )

    def _plan(self, traced: _Program, operands: Sequence[Any], args: Any, kwargs: Any) -> Any:
        """How the program is to run on the devices of its arguments."""
        from namoo.api import placement

        wanted, moves = None, False
        given: list[Any] = [None] * len(operands)
        leaves = tree_util.tree_leaves((args, kwargs))
        paths = argument_paths(self._fun, args, kwargs)
        paths = [p for p, x in zip(paths, leaves, strict=True) if is_array(x)]
        if self._shardings is not None:
            given, wanted = self._shardings.leaves(args, kwargs, traced)
            given, moves = given[len(traced.consts) :], self._shardings.moves
            placement.require_given(operands, given, paths, moves)
        consts = len(traced.given)
        return placement.plan(
            traced.program,
            [*traced.given, *traced.used(operands)],
            [*[None] * consts, *traced.used(given)],
            wanted,
            traced.donation.aliases if traced.donation is not None else None,
            [*(f"constant {i}" for i in range(consts)), *traced.used(paths)],
        )

    def _learn(self, traced, leaves, tree, static, run=None):
        """Recognise these arguments from now on."""
        if traced.lessons >= _LESSONS or context.axes:
            return
        traced.lessons += 1
        if any(isinstance(c, Tracer) for c in traced.consts):
            return
        takes_arrays = run is None and traced.donation is not None
        if run is None:
            run = traced.donation or self._executable(traced.program)
        numbers = [i for i, x in enumerate(leaves) if is_array(x)] if traced.unused else []
        dispatch.remember(
            self.calls,
            leaves,
            tree,
            static,
            run,
            takes_arrays,
            traced.given,
            traced.weak_out,
            traced.out_tree,
            traced.fixed_out.places,
            {numbers[i] for i in traced.unused},
        )

    def _program(self, leaves, tree, args, kwargs, static) -> _Program:
        """The program for these arguments, traced if there is none yet."""
        axes = tuple(context.axes.items()) if context.axes else ()
        try:
            scope = (*axes, context.checked) if axes else ()
            key = (tree, tuple(map(_leaf_key, leaves)), static, scope, config.trace_id())
            traced = self._cache.programs.get(key)
        except TypeError:
            Static(leaves).check_arguments(
                self._fun, lambda: argument_paths(self._fun, args, kwargs)
            )
            raise
        if traced is None:
            return self._trace(key, leaves, tree, args, kwargs, static, axes)
        with contextlib.suppress(KeyError):  # another thread may have let it go
            _recent.move_to_end(traced.number)
        return traced

    def _trace(self, key, leaves, tree, args, kwargs, static, axes) -> _Program:
        start = time.perf_counter()
        fixed = Static(leaves)
        operands = fixed.dynamic(leaves)
        # Few ask for them: a message, or a call that differs from one before.
        paths = functools.cache(lambda: argument_paths(self._fun, args, kwargs))
        fixed.check_arguments(self._fun, paths)
        chosen = dict(static)
        out_tree: Any = None
        fixed_out: Any = None

        def flat(*tracers):
            nonlocal out_tree, fixed_out
            inner_args, inner_kwargs = tree.unflatten(fixed.join(tracers))
            result = self._fun(*_restore(inner_args, chosen), **inner_kwargs, **_named(chosen))
            outs, out_tree = tree_util.tree_flatten(result)
            fixed_out = Static(outs)
            fixed_out.check_results("jit", self._fun, result)
            for i, x in enumerate(outs):
                # Nothing has to be computed.
                if i not in fixed_out.places and aval_of(x).dtype == _dtypes.float0:
                    fixed_out.places[i] = np.zeros(aval_of(x).shape, _dtypes.float0)
            return fixed_out.dynamic(outs)

        def names():
            return [p for i, p in enumerate(paths()) if i not in fixed.places]

        with collector_waits(), _spans.span("trace", self._name):
            jaxpr, consts = stage(flat, [aval_of(x) for x in operands], self._name, names)
        closed, consts = close(jaxpr, consts)
        cost = time.perf_counter() - start
        traced = _Program(closed, consts, out_tree, fixed_out, cost, self._keep_unused)
        if any(self._donated):
            given = self._donated_leaves(args, kwargs, static)
            given = [d for i, d in enumerate(given) if i not in fixed.places]
            traced.donate(given, self._engine)
        if self._shardings is not None:
            self._shardings.check(args, kwargs, traced, names())
        # A program that closes over values of a transformation outside serves this call only.
        if not any(isinstance(c, Tracer) for c in consts):
            self._remember(key, traced, leaves, tree, paths, static, axes)
        return traced

    def _donated_leaves(self, args, kwargs, static) -> list[bool]:
        numbers = {n for n, _ in static if isinstance(n, int)}
        return donations.donated_leaves(args, kwargs, numbers, *self._donated)

    def _remember(self, key, traced, leaves, tree, paths, static, axes):
        cache = self._cache
        avals = tuple(aval_of(x) if is_array(x) else Fixed(type(x), x) for x in leaves)
        names = [*sig.parameters] if static and (sig := signature(self._fun)) else []
        named = tuple(
            (names[n] if isinstance(n, int) and n < len(names) else n, v) for n, v in static
        )
        new = Signature(tree, avals, named, axes, config.trace_key())
        why = reasons(new, paths, cache.signatures)
        cache.signatures.append(new)
        record = Retrace(why, errors.user_source(), traced.cost)
        cache.records.append(record)
        del cache.records[:-1000], cache.signatures[:-_COMPARED]
        if (config.explain_cache_misses and why) or config.log_compiles:
            import logging

            logging.getLogger("namoo").warning("%s: %s", self._name, record)
        cache.programs[key] = traced
        cache.keys[traced.number] = key
        _recent[traced.number] = weakref.ref(cache)
        while len(_recent) > _PROGRAMS_LIMIT:
            _let_go()

    def explain(self) -> Explanation:
        """Every tracing of the function, and why it was needed.

        >>> import namoo.numpy as jnp
        >>> f = jit(lambda x: x + 1)
        >>> f(jnp.zeros(2)), f(jnp.zeros(3))
        (Array([1., 1.], dtype=float32), Array([1., 1., 1.], dtype=float32))
        >>> [r.reasons for r in f.explain()]
        [(), ('x: shape changed: f32[2] → f32[3]',)]
        """
        return Explanation(self._name, self._cache.records)

    def clear_cache(self) -> None:
        """Forget the programs of this function."""
        self._cache.clear()

    def _cache_size(self) -> int:
        return len(self._cache.programs)

    @errors.boundary
    def trace(self, *args: Any, **kwargs: Any) -> stages.Traced:
        """The program for arguments, which may be `ShapeDtypeStruct`s, without running it."""
        data, kw, static = self._split(args, kwargs)
        leaves, tree = tree_util.tree_flatten((data, kw))
        traced = self._program(leaves, tree, data, kw, static)
        donated = self._donated_leaves(data, kw, static)
        return stages.Traced(self, traced, tree, leaves, donated)

    def lower(self, *args: Any, **kwargs: Any) -> stages.Lowered:
        """The program for arguments, ready to be compiled."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The types of the result for arguments, as `ShapeDtypeStruct`s."""
        return self.trace(*args, **kwargs).out_info


def _jitted(fun: Callable, options: dict[str, Any]) -> Jitted:
    """What was pickled by value."""
    return Jitted(fun, **options)


def _is_fixed(x: Any) -> bool:
    return type(x) is not EagerArray and not is_array(x)


def _restore(args: Sequence[Any], static: dict) -> list[Any]:
    """All positional arguments, the static ones in their places."""
    out = list(args)
    for i in sorted(k for k in static if isinstance(k, int)):
        out.insert(i, static[i])
    return out


def _named(static: dict) -> dict:
    return {k: v for k, v in static.items() if isinstance(k, str)}


def _chosen_arguments(
    fun: Callable, what: str, nums: Any, names: Any
) -> tuple[tuple[int, ...], frozenset]:
    """Arguments by number and by name; where one is absent, the signature completes it."""
    both = nums is not None and names is not None
    nums = () if nums is None else argnums_tuple(nums, f"{what}_argnums")
    names = () if names is None else (names,) if isinstance(names, str) else names
    if not isinstance(names, Iterable) or not all(isinstance(n, str) for n in names):
        raise TypeError(f"{what}_argnames must be a string or strings, got {names!r}.")
    names = tuple(names)
    if not nums and not names:
        return (), frozenset()
    sig = signature(fun)
    if sig is None:
        return nums, frozenset(names)
    parameters = list(sig.parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    keywords = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for i in nums:
        if not variadic and not -len(positional) <= i < len(positional):
            raise ValueError(
                f"jitted function {function_name(fun)} has {what}_argnums={nums}, but only "
                f"{len(positional)} positional arguments."
            )
    for name in names:
        if not keywords and name not in sig.parameters:
            raise ValueError(
                f"jitted function {function_name(fun)} has invalid argname {name!r} in "
                f"{what}_argnames. Function does not take these args. Its arguments are "
                f"{list(sig.parameters)}."
            )
    all_nums, all_names = set(nums), set(names)
    for i, p in enumerate([] if both else positional):
        if (i in nums or i - len(positional) in nums) and p.kind is p.POSITIONAL_OR_KEYWORD:
            all_names.add(p.name)
        if p.name in names:
            all_nums.add(i)
    return tuple(sorted(all_nums)), frozenset(all_names)


def _refuse_overlap(nums, names, donated_nums, donated_names):
    """An argument that is part of the program has no memory to give."""
    if both := (names & donated_names or set(nums) & set(donated_nums)):
        raise ValueError(
            f"static_argnums and donate_argnums cannot intersect: {sorted(both)} are in both. A "
            "static argument is a Python value of the program; donate arguments that are arrays."
        )


def jit(
    fun: Callable | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    device: Any = None,
    backend: str | None = None,
    engine: str | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    abstracted_axes: Any = None,
    compiler_options: dict | None = None,
) -> Any:
    """Compile a function: it is traced once for each kind of arguments, then runs as a program.

    Leaves of the arguments that are no arrays but cannot change (functions, strings, enums, frozen
    dataclasses) are static: they are part of the program, and another value means another program.
    An instance of a mutable class that is no registered tree is refused, as an argument and as a
    result.

    Args:
      fun: a function of trees of arrays.
      static_argnums: arguments that are Python values of the program rather than data; hashable.
      static_argnames: the same, by name.
      donate_argnums: arguments whose memory may be reused for results. A call deletes their
        arrays, where a result is as large; only arrays passed to the compiled function itself.
      donate_argnames: the same, by name.
      keep_unused: let the program have arguments that it does not use, too. Without it they may lie
        anywhere, or be deleted, and are not taken where they are donated.
      inline: write the program into the one that calls it.
      device: the device to run on.
      backend: the platform to run on, as "cpu" or "gpu".
      engine: "native", "xla" or "interpreter", in place of `namoo.config.engine`.
      in_shardings: how the arguments lie on devices: a sharding, or a tree of them (and of None,
        for arguments that stay as they are) that is a prefix of the arguments' structure.
      out_shardings: how the results shall lie, likewise.

    Returns:
      a function with the same results. `f.explain()` tells when and why it was traced;
      `f.lower(*args).compile()` does so ahead of time.

    >>> import namoo.numpy as jnp
    >>> @jit
    ... def f(x):
    ...     return x * 2.0
    >>> f(jnp.array([1.0, 2.0]))
    Array([2., 4.], dtype=float32)
    """
    options = dict(
        static=(static_argnums, static_argnames),
        donate=(donate_argnums, donate_argnames),
        keep_unused=keep_unused,
        inline=inline,
        engine=engine,
        shardings=(in_shardings, out_shardings, device, backend),
    )

    require_device("jit", device)
    if engine not in (None, "native", "xla", "interpreter"):
        raise ValueError(
            f"jit: engine must be 'native', 'xla' or 'interpreter', or None for the one of "
            f"namoo.config.engine; got {engine!r}."
        )

    def decorate(f: Callable) -> Jitted:
        require_callable(f, "jit")
        return Jitted(f, **options)

    return decorate if fun is None else decorate(fun)


def composite(decomposition: Callable, name: str, version: int = 0) -> Callable:
    """A function that stays one named equation, which an engine may know a better way to compute.

    Args:
      decomposition: the function; keyword arguments are static.
      name: the name of the equation.
      version: has no effect.

    >>> import namoo.numpy as jnp
    >>> composite(lambda x: jnp.log(x) / 2.0, "my.half_log")(1.0)
    Array(0., dtype=float32, weak_type=True)
    """

    @errors.boundary
    @functools.wraps(decomposition)
    def call(*args, **kwargs):
        def named(*operands):
            return decomposition(*operands, **kwargs)

        named.__name__ = name
        return jit(named)(*args)

    return call
