"""`jit`: trace a function once per kind of arguments, and run the compiled program after that."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np

import namoo.api.wiring  # noqa: F401  # fills in the late attachments
from namoo import tree_util
from namoo._base import dtypes, instrument
from namoo._base.caches import per_program, register
from namoo._base.config import config
from namoo._base.gc_policy import gc_relaxed
from namoo._base.lazy import later
from namoo._base.pickling import by_name
from namoo._base.source_context import at_user_line, entry_point, user_source
from namoo.analysis.dead_code import needed
from namoo.api import dispatch
from namoo.api.retrace import (
    Explanation,
    Fixed,
    Retrace,
    Signature,
    constant_notes,
    new_function_reasons,
    operation_sources,
    reasons,
    signature_of,
    warn_of_retraces,
)
from namoo.api.static_arguments import chosen_arguments, refuse_overlap, require_hashable
from namoo.control.call import jit_p
from namoo.core.array import Array, EagerArray, PlacedArray, to_numpy
from namoo.core.avals import ShapedArray, ShapeDtypeStruct, aval_of
from namoo.core.jaxpr import ClosedJaxpr, eval_jaxpr
from namoo.core.trace import EvalTrace, Tracer, context, wrap
from namoo.dimensions.sizes import as_value
from namoo.engines.base import require_device
from namoo.engines.select import compile as compile_program
from namoo.engines.select import compile_times
from namoo.memo.identity import function_key
from namoo.transforms.arguments import (
    Static,
    argument_paths,
    function_name,
    is_array,
    require_callable,
)
from namoo.transforms.program import ProgramPrimitive, uses_several_devices
from namoo.transforms.refs import Ref, is_inner, refuse_aliases
from namoo.transforms.stage import close, stage

if TYPE_CHECKING:
    from namoo.api import donation as donations
    from namoo.api import jit_shardings, ref_calls, stages
    from namoo.api.signatures import JitDecorator, JitOptions, JittedFunction, P, R
else:  # most functions do without these
    donations = later("namoo.api.donation")
    jit_shardings = later("namoo.api.jit_shardings")
    ref_calls = later("namoo.api.ref_calls")
    stages = later("namoo.api.stages")


def _leaf_key(x: Any) -> Any:
    """Return the part of a leaf that selects the program: its type, or a static value."""
    kind = type(x)
    if kind is EagerArray:
        value = x._value
        return value.shape, value.dtype, x._weak
    if isinstance(x, (Array, np.ndarray, np.generic, ShapeDtypeStruct, ShapedArray)):
        aval = aval_of(x)
        key = aval.shape, getattr(aval.dtype, "numpy", aval.dtype), aval.weak_type
        return (*key, aval.vma) if aval.vma else key
    if kind in (bool, int, float, complex):
        if kind is int:
            to_numpy(x)  # refuses an integer that does not fit
        aval = aval_of(x)
        return aval.shape, aval.dtype, aval.weak_type
    if kind is slice:  # has no hash before Python 3.12
        return slice, x.start, x.stop, x.step
    return x.aval if isinstance(x, Ref) else Fixed(kind, x)


# One program can serve arrays, NumPy arrays and Python numbers of the same type. C++ learns at most
# this many combinations for each program.
_LESSONS = 8


class _Program:
    """A traced program: its equations, its constants, and the structure of its result.

    What is compiled is `program`, from which unused inputs were removed. It takes the constants
    `given`, and the operands whose positions are not in `unused`.
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
        "refs",
        "unused",
        "weak_out",
    )

    def __init__(self, closed, consts, out_tree, fixed_out, cost, keep_unused):
        self.closed: ClosedJaxpr = closed
        self.consts: list[Any] = consts
        self.refs = ref_calls.of(closed) if closed.effectful or keep_unused else None
        self.program = closed if self.refs is None else self.refs.program
        self.given, self.unused = consts, frozenset()
        if self.refs is None and not keep_unused:
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
        """Drop the entries that belong to unused operands."""
        if not self.unused:
            return operands
        return [x for i, x in enumerate(operands) if i not in self.unused]

    def donate(self, donated: Sequence[bool], engine: str | None) -> None:
        """Let results use the memory of some operands."""
        places = [i for i, d in enumerate(self.used(donated), len(self.given)) if d]
        if places:
            self.donation = donations.Donation(self.program, places, engine)


# A retrace is explained by comparing it with this many earlier calls.
_COMPARED = 16


class _Cache:
    """The programs of one function, and the reason why each was traced."""

    __slots__ = ("__weakref__", "calls", "keys", "name", "programs", "records", "signatures")

    def __init__(self):
        self.name = ""
        self.calls = dispatch.new_calls()
        self.programs: dict[Any, _Program] = {}
        self.keys: dict[int, Any] = {}
        """Program number → key in `programs`."""
        self.signatures: list[Signature] = []
        self.records: list[Retrace] = []
        _all.add(self)

    def clear(self):
        if self.calls is not None:
            self.calls.clear()
        self.programs.clear()
        self.keys.clear()
        self.signatures.clear()
        self.records.clear()


# Program number → cache, for the programs of all functions, in order of last use. Calls that C++
# recognises do not update the order; C++ keeps their programs alive itself.
_numbers = itertools.count()
_PROGRAMS_LIMIT = 4096
_recent: OrderedDict[int, weakref.ref[_Cache]] = register(
    "api.jit order of use",
    OrderedDict(),
    bound=_PROGRAMS_LIMIT,
    keyed_by="number of the program",
    kept=True,
)
_all: weakref.WeakSet[_Cache] = register(
    "api.jit programs and recognised calls",
    weakref.WeakSet(),
    bound=_PROGRAMS_LIMIT,
    keyed_by="function, static arguments, structure and types of the arguments, settings",
    entries=lambda: sum(len(cache.programs) for cache in _all),
    clear=lambda: [cache.clear() for cache in _all],
)


def traced_functions() -> list[Explanation]:
    """Return the traces of every function under `jit` that has any, the most traced first."""
    found = [Explanation(cache.name, cache.records) for cache in _all if cache.records]
    return sorted(found, key=lambda e: (-len(e), e.name))


def _let_go() -> None:
    """Evict the least recently used program."""
    number, cache = _recent.popitem(last=False)
    cache = cache()
    if cache is not None and number in cache.keys:
        cache.programs.pop(cache.keys.pop(number), None)


# Caches that equal functions share, by what the functions do; the newest last. Clearing empties
# these caches and the next ones but keeps them: decorated functions hold a reference.
_SHARED_LIMIT = 512
# A cache keeps the arrays that its function closes over alive, even after the function is gone.
_SHARED_BYTES = 1 << 26
_shared: OrderedDict[Any, tuple[_Cache, list[Any]]] = register(
    "api.jit functions by what they do",
    OrderedDict(),
    bound="512 functions, and 64 MB of arrays that they close over",
    keyed_by="code, closure and globals of the function, options of jit",
    kept=True,
)
_own: weakref.WeakKeyDictionary[Any, dict[Any, _Cache]] = register(
    "api.jit functions by identity",
    weakref.WeakKeyDictionary(),
    bound="live functions",
    keyed_by="identity of the function, options of jit",
    kept=True,
)


def _kept_bytes(kept: Sequence[Any]) -> int:
    values = [x._value for x in kept if type(x) is EagerArray]
    return sum(value.nbytes for value in values if isinstance(value, np.ndarray))  # not deleted


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
            # Objects that the key names by identity are kept alive, so that no other object gets
            # their id.
            _shared[key, options] = cache, kept
            size = _kept_bytes(kept)
            size = size and sum(_kept_bytes(other) for _, other in _shared.values())
            while len(_shared) > _SHARED_LIMIT or (size > _SHARED_BYTES and _shared):
                size -= _kept_bytes(_shared.popitem(last=False)[1][1])
            return cache
    try:
        return _own.setdefault(fun, {}).setdefault(options, _Cache())
    except TypeError:  # not weakly referable, or without hash
        return _Cache()


@per_program("executable on an engine", keyed_by="engine")
def _executable_on(closed: ClosedJaxpr, engine: str) -> Any:
    return compile_program(closed, {"engine": engine})


class Jitted(dispatch.Dispatcher):
    """A function under `jit`. It is called like the function itself."""

    def __init__(self, fun: Callable, **options: Any):
        # A callable object may have attributes with the names of our methods.
        attributes = getattr(fun, "__dict__", {}).items()
        self.__dict__.update({k: v for k, v in attributes if not hasattr(type(self), k)})
        functools.update_wrapper(self, fun, updated=())
        self._fun = fun
        self._given = options
        self._name = function_name(fun)
        self._inline = options["inline"]
        self._nums, self._names = chosen_arguments(fun, "static", *options["static"])
        self._donated = chosen_arguments(fun, "donate", *options["donate"])
        refuse_overlap(self._nums, self._names, *self._donated)
        self._keep_unused = options["keep_unused"]
        self._engine = options["engine"]
        given = any(x is not None for x in options["shardings"])
        self._shardings = jit_shardings.Shardings.of(*options["shardings"]) if given else None
        self._options = (self._nums, self._names, self._inline, self._keep_unused)
        if any(self._donated):
            self._options += (self._donated,)
        if self._engine is not None or self._shardings is not None:
            self._options += (self._engine, self._shardings)
        self._cache_or_none: _Cache | None = None

    def _namoo_identity(self) -> tuple:
        """Everything that a call depends on; see `memo.identity`."""
        return self._fun, self._options

    @property
    def _cache(self) -> _Cache:
        # Looked up at the first call: a decorated function may close over names that are defined
        # later.
        if self._cache_or_none is None:
            self._cache_or_none = _cache_for(self._fun, self._options)
            self.calls = self._cache_or_none.calls
        return self._cache_or_none

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._fun)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind to an instance: a function that is decorated in a class is a method."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        try:
            return f"<PjitFunction of {self.__wrapped__!r}>"
        except Exception:  # a repr that fails must not hide what is printed around it
            return "<PjitFunction>"

    def __reduce__(self) -> tuple[Any, ...]:
        return by_name(self) or (_jitted, (self._fun, self._given))

    def _split(self, args: tuple, kwargs: dict) -> tuple[tuple, dict, tuple]:
        """Split arguments into positional data, keyword data, and static ones."""
        nums = {i % len(args) for i in self._nums if -len(args) <= i < len(args)} if args else ()
        static = [(i, args[i]) for i in sorted(nums)]
        static += [(k, kwargs[k]) for k in sorted(kwargs) if k in self._names]
        require_hashable(self._fun, static)
        args = tuple(x for i, x in enumerate(args) if i not in nums)
        kwargs = {k: v for k, v in kwargs.items() if k not in self._names}
        return args, kwargs, tuple(static)

    def general(self, args: tuple, kwargs: dict) -> Any:
        """Handle a call that the C++ fast path did not recognise."""
        if config.disable_jit:
            return self._fun(*args, **kwargs)
        if config.no_execution and isinstance(context.trace, EvalTrace):
            raise RuntimeError(
                f"namoo tried to execute function jit({self._name}), but the option no_execution "
                "is set."
            )
        return self._call(args, kwargs)

    def _call(self, args, kwargs):
        static = ()
        if self._nums or self._names:
            args, kwargs, static = self._split(args, kwargs)
        leaves, tree = tree_util.tree_flatten((args, kwargs))
        traced = self._program(leaves, tree, args, kwargs, static)
        operands = leaves if not any(map(_is_fixed, leaves)) else [x for x in leaves if is_array(x)]
        if traced.refs is not None and type(context.trace) is EvalTrace:
            names = functools.partial(argument_paths, self._fun, args, kwargs)
            outs = traced.refs(traced.consts, leaves, operands, self, names)
        elif type(context.trace) is EvalTrace:
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
        """Compile a program with the engine of this function, or with that of the settings."""
        if self._engine is None:
            return ProgramPrimitive.executable(closed)
        return _executable_on(closed, self._engine)

    def _is_placed(self, traced: _Program, used: Sequence[Any]) -> bool:
        """Whether the program runs on devices of its own, given the operands that it uses."""
        if traced.placed is None:
            # Whether the program itself names devices; arguments are checked at each call.
            elsewhere = self._shardings is not None and self._shardings.are_elsewhere()
            traced.placed = elsewhere or uses_several_devices(traced.program.jaxpr)
        if traced.placed:
            return True
        # Uncommitted arrays on the device where XLA runs programs anyway need no placement.
        loose = (self._engine or config.engine) != "xla"
        return any(
            type(x) is PlacedArray and (x._committed or (loose and x._follows)) for x in used
        )

    def _plan(self, traced: _Program, operands: Sequence[Any], args: Any, kwargs: Any) -> Any:
        """Plan how the program runs on the devices of its arguments."""
        from namoo.devices import placement

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
        """Teach the C++ fast path to recognise these arguments."""
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
            traced.fixed_out.by_position,
            {numbers[i] for i in traced.unused},
        )

    def _program(self, leaves, tree, args, kwargs, static) -> _Program:
        """Return the program for these arguments, tracing the function if there is none yet."""
        axes = tuple(context.axes.items()) if context.axes else ()
        try:
            scope = (*axes, context.checked) if axes else ()
            # 1, True and 1.0 are equal, but not the same program.
            kinds = tuple([type(value) for _, value in static])
            key = (tree, tuple(map(_leaf_key, leaves)), static, kinds, scope, config.trace_id())
            traced = self._cache.programs.get(key)
        except TypeError:
            Static(leaves).check_arguments(
                self._fun, lambda: argument_paths(self._fun, args, kwargs)
            )
            raise
        except OverflowError:
            self._check_integers(leaves, args, kwargs)
            raise
        except Exception as error:
            hash(static)  # an error raised by `__hash__` is passed on
            raise ValueError(
                "static arguments should be comparable using __eq__, but comparing those of "
                f"{self._name} raised {type(error).__name__}: {error}"
            ) from error
        if traced is None:
            return self._trace(key, leaves, tree, args, kwargs, static, axes)
        with contextlib.suppress(KeyError):  # another thread may have let it go
            _recent.move_to_end(traced.number)
        return traced

    def _check_integers(self, leaves, args, kwargs):
        """Refuse an integer that does not fit, by the path of its argument."""
        paths = argument_paths(self._fun, args, kwargs)
        for x, path in zip(leaves, paths, strict=True):
            if type(x) is int:
                try:
                    to_numpy(x)
                except OverflowError as error:
                    raise OverflowError(
                        "An overflow was encountered while parsing an argument to a jitted "
                        f"computation, whose argument path is {path}. ({error})"
                    ) from None

    def _trace(self, key, leaves, tree, args, kwargs, static, axes) -> _Program:
        if config.no_tracing:
            raise RuntimeError(
                f"re-tracing function {self._name} for `jit`, but 'no_tracing' is set."
                + at_user_line()
            )
        start = time.perf_counter()
        fixed = Static(leaves)
        operands = fixed.dynamic(leaves)
        # Computed on demand, for messages and for explaining a retrace.
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
            outs = [as_value(x) for x in outs]
            fixed_out = Static(outs)
            fixed_out.check_results("jit", self._fun, result)
            for i, x in enumerate(outs):
                # A float0 result is a constant.
                if i not in fixed_out.by_position and aval_of(x).dtype == dtypes.float0:
                    fixed_out.by_position[i] = np.zeros(aval_of(x).shape, dtypes.float0)
            return fixed_out.dynamic(outs)

        names = lambda: [p for i, p in enumerate(paths()) if i not in fixed.by_position]  # noqa: E731
        refuse_aliases(self._name, "jit", operands, names)
        with gc_relaxed(), instrument.span("trace", self._name):
            jaxpr, consts = stage(flat, [aval_of(x) for x in operands], self._name, names)
        closed, consts = close(jaxpr, consts)
        cost = time.perf_counter() - start
        traced = _Program(closed, consts, out_tree, fixed_out, cost, self._keep_unused)
        if any(self._donated):
            given = self._donated_leaves(args, kwargs, static)
            given = [d for i, d in enumerate(given) if i not in fixed.by_position]
            traced.donate(given, self._engine)
        if self._shardings is not None:
            self._shardings.check(args, kwargs, traced, names())
        # A program that closes over tracers of an outer transformation is valid for this call only.
        if not any(isinstance(c, Tracer) or is_inner(c) for c in consts):
            self._remember(key, traced, leaves, tree, paths, static, axes)
        return traced

    def _donated_leaves(self, args, kwargs, static) -> list[bool]:
        numbers = {n for n, _ in static if isinstance(n, int)}
        return donations.donated_leaves(args, kwargs, numbers, *self._donated)

    def _remember(self, key, traced, leaves, tree, paths, static, axes):
        cache = self._cache
        new = signature_of(self._fun, tree, leaves, static, axes)
        number, why = 0, reasons(new, paths, cache.signatures)
        if not cache.signatures:
            number, why = new_function_reasons(self._fun, cache)
            cache.name = self._name
        cache.signatures.append(new)
        jaxpr, times = traced.closed.jaxpr, compile_times(traced.program)
        notes, sources = constant_notes(jaxpr, traced.consts), operation_sources(jaxpr)
        record = Retrace(why, user_source(), traced.cost, times, notes, sources, number)
        for earlier in cache.records[-1:]:
            earlier.settle()
        cache.records.append(record)
        del cache.records[:-1000], cache.signatures[:-_COMPARED]
        warn_of_retraces(self._name, cache.records)
        text = "Finished tracing %s for jit, a TRACING CACHE MISS: %s"
        asked = config.explain_cache_misses or config.log_compiles
        instrument.log(asked, text, self._name, record)
        cache.programs[key] = traced
        cache.keys[traced.number] = key
        _recent[traced.number] = weakref.ref(cache)
        while len(_recent) > _PROGRAMS_LIMIT:
            _let_go()

    def explain(self) -> Explanation:
        """Return every trace of the function, and why it was needed.

        Example:
            >>> import namoo.numpy as jnp
            >>> f = jit(lambda x: x + 1)
            >>> f(jnp.zeros(2)), f(jnp.zeros(3))
            (Array([1., 1.], dtype=float32), Array([1., 1., 1.], dtype=float32))
            >>> [r.reasons for r in f.explain()]
            [(), ('different input types: at x, now f32[3] and before f32[2]',)]
        """
        return Explanation(self._name, self._cache.records)

    def clear_cache(self) -> None:
        """Remove all programs of this function from its cache."""
        self._cache.clear()

    def _cache_size(self) -> int:
        return len(self._cache.programs)

    @entry_point
    def trace(self, *args: Any, **kwargs: Any) -> stages.Traced:
        """Trace the function without running it; arguments may be `ShapeDtypeStruct`s."""
        data, kw, static = self._split(args, kwargs)
        leaves, tree = tree_util.tree_flatten((data, kw))
        traced = self._program(leaves, tree, data, kw, static)
        donated = self._donated_leaves(data, kw, static)
        return stages.Traced(self, traced, tree, leaves, donated)

    def lower(self, *args: Any, **kwargs: Any) -> stages.Lowered:
        """Trace the function for arguments, and return the program ready to be compiled."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the types of the result for arguments, as `ShapeDtypeStruct`s."""
        return self.trace(*args, **kwargs).out_info


def _jitted(fun: Callable, options: dict[str, Any]) -> Jitted:
    """Rebuild a function that was pickled by value."""
    return Jitted(fun, **options)


def _is_fixed(x: Any) -> bool:
    return type(x) is not EagerArray and not is_array(x)


def _restore(args: Sequence[Any], static: dict) -> list[Any]:
    """Insert the static arguments into the positional ones."""
    out = list(args)
    for i in sorted(k for k in static if isinstance(k, int)):
        out.insert(i, static[i])
    return out


def _named(static: dict) -> dict:
    return {k: v for k, v in static.items() if isinstance(k, str)}


@overload
def jit(fun: Callable[P, R], **options: Unpack[JitOptions]) -> JittedFunction[P, R]: ...
@overload
def jit(**options: Unpack[JitOptions]) -> JitDecorator: ...
@overload
def jit(fun: Any, **options: Unpack[JitOptions]) -> Any: ...
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
    """Compile a function: it is traced once per kind of arguments, and then runs as a program.

    Leaves of the arguments that are immutable but not arrays (functions, strings, enums, frozen
    dataclasses) are static: they are part of the program, and another value means another program.
    An instance of a mutable class that is not a registered tree is refused, as an argument and as
    a result.

    Args:
        fun: a function of trees of arrays.
        static_argnums: arguments that are Python values rather than data; they must be hashable.
        static_argnames: the same, by name.
        donate_argnums: arguments whose memory may be reused for results. A call deletes their
            arrays if a result has the same size. Only arrays that are passed to the compiled
            function itself.
        donate_argnames: the same, by name.
        keep_unused: keep arguments in the program that it does not use. Otherwise they may be on
            any device, or be deleted, and donating them has no effect.
        inline: inline the program into the one that calls it.
        device: the device to run on.
        backend: the platform to run on, such as "cpu" or "gpu".
        engine: "native", "xla" or "interpreter"; the default is `namoo.config.engine`.
        in_shardings: the shardings of the arguments: a sharding, or a tree of them (with None for
            arguments that stay unchanged) that is a prefix of the arguments' structure.
        out_shardings: the shardings of the results, likewise.

    Returns:
        a function with the same results. `f.explain()` lists when and why it was traced;
        `f.lower(*args).compile()` compiles it ahead of time.

    Example:
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
    if compiler_options:
        stages.check_compiler_options(compiler_options)
    if engine not in (None, "native", "xla", "interpreter"):
        raise ValueError(
            f"jit: engine must be 'native', 'xla' or 'interpreter', or None for the one of "
            f"namoo.config.engine; got {engine!r}."
        )

    @entry_point
    def decorate(f: Callable) -> Jitted:
        require_callable(f, "jit")
        return Jitted(f, **options)

    return decorate if fun is None else decorate(fun)


def composite(decomposition: Callable, name: str, version: int = 0) -> Callable:
    """Make a function one named equation, which an engine may compute in a better way.

    Args:
        decomposition: the function; keyword arguments are static.
        name: the name of the equation.
        version: has no effect.

    Example:
        >>> import namoo.numpy as jnp
        >>> composite(lambda x: jnp.log(x) / 2.0, "my.half_log")(1.0)
        Array(0., dtype=float32, weak_type=True)
    """

    @entry_point
    @functools.wraps(decomposition)
    def call(*args, **kwargs):
        def named(*operands):
            return decomposition(*operands, **kwargs)

        named.__name__ = name
        return jit(named)(*args)

    return call
