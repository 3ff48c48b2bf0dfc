"""`Loader`: batches of examples, and a position that can be saved and restored."""

from __future__ import annotations

import inspect
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from namoo import random
from namoo._base.source_context import entry_class
from namoo.data import order
from namoo.data.sources import Source, source_of, stack
from namoo.data.workers import Workers

_STALE = (
    "this loop over the loader cannot go on: another one was begun, or `restore` was called. A "
    "loader has one position; use a second loader to read at two positions."
)


@entry_class
class Loader:
    """Batches of examples, in an order that only the key and the epoch determine.

    `for batch in loader` yields the batches of one epoch, or the rest of a started one. Batches are
    trees of NumPy arrays. The position counts the batches that the loop has received, not those
    that workers have prepared, so a state saved after a step continues with the next batch.

    Args:
        source: a tree of arrays (a tuple, a dict, a dataclass; arrays of other libraries too,
            mapped files, HDF5 and Zarr), anything with `len` and `[i]` (lists, datasets of Hugging
            Face, PyTorch and Grain), an iterable, or a function that returns one.
        batch_size: the number of examples in a batch.
        key: a key, for everything that is random.
        shuffle: whether to shuffle each epoch; by default, if there is a key. The order is
            `data.permutation(key, epoch, len(source))`.
        last: what to do with an incomplete last batch: "drop" it, "keep" it unchanged, or "pad" it
            by repeating one example. With "pad", every batch is a pair `(batch, mask)`, whose mask
            is False for the padding. By default the batch is dropped in a shuffled order, as in
            training, where each epoch drops different examples. In a fixed order it is kept, so
            that an evaluation sees every example.
        map: a function of one example. If it has a parameter `key`, it gets a key that depends on
            the loader's key, the epoch and the position of the example.
        batch_map: a function of a batch (before the mask is added); may have a `key` too.
        collate: puts a list of examples into a batch; `data.stack` by default.
        weights: draw examples with probabilities in proportion to these; see `data.weighted`.
        samples: how many examples to draw in an epoch, with weights.
        replace: whether an example can be drawn twice in an epoch, with weights.
        shuffle_buffer: how many examples of a stream are held to change their order; a stream
            cannot be shuffled otherwise.
        shard: `(index, count)`: of all examples, in the order of the epoch, this process takes
            every `count`-th one, starting with number `index`. Usually
            `(namoo.process_index(), namoo.process_count())`. All shards have the same number of
            batches, except with last="keep".
        workers: how many threads or processes prepare batches; 0 does so in the loop.
        worker_kind: "thread" or "process". NumPy and reading files let threads run at once; Python
            code does not. Processes need a source and functions that can be pickled.
        prefetch: how many batches each worker prepares ahead.

    Raises:
        ValueError: if arguments contradict each other.
        TypeError: if examples cannot be read from the source.

    Example:
        >>> import numpy as np
        >>> from namoo import random
        >>> make = lambda: Loader(np.arange(10), 4, key=random.key(1), last="pad")
        >>> loader = make()
        >>> batches = iter(loader)
        >>> next(batches), next(batches)
        ((array([6, 1, 2, 4]), array([ True,  True,  True,  True])),
         (array([7, 3, 8, 9]), array([ True,  True,  True,  True])))
        >>> state = loader.state()
        >>> other = make()
        >>> other.restore(state)
        >>> list(other)
        [(array([0, 5, 5, 5]), array([ True,  True, False, False]))]
    """

    def __init__(
        self,
        source: Any,
        batch_size: int,
        *,
        key: Any = None,
        shuffle: bool | None = None,
        last: str | None = None,
        map: Callable[..., Any] | None = None,
        batch_map: Callable[..., Any] | None = None,
        collate: Callable[[list[Any]], Any] = stack,
        weights: Any = None,
        samples: int | None = None,
        replace: bool = True,
        shuffle_buffer: int | None = None,
        shard: tuple[int, int] = (0, 1),
        workers: int = 0,
        worker_kind: str = "thread",
        prefetch: int = 2,
    ):
        self.batch_size = operator.index(batch_size)
        self.shard_index, self.shard_count = shard
        self._source = source_of(source)
        self._key = key
        is_stream = not hasattr(self._source, "__len__")
        self._stream: Any = self._source if is_stream else None
        self._size = 0 if is_stream else len(self._source)
        wants = key is not None and weights is None if shuffle is None else shuffle
        self._shuffles = bool(wants) and not (is_stream and shuffle is None and not shuffle_buffer)
        self._weights = None if weights is None else np.asarray(weights, np.float64)
        is_random = self._shuffles or weights is not None
        self.last = last if last is not None else "drop" if is_random else "keep"
        self._samples, self._replace, self._buffer = samples, replace, shuffle_buffer
        self._worker_count, self._worker_kind = operator.index(workers), worker_kind
        self._prefetch = operator.index(prefetch)
        self._epoch = self._batch = 0
        self._turn: object = None
        self._pool: Workers | None = None
        self._takes_key = _takes_key(map) or _takes_key(batch_map)
        self._check(shuffle, is_stream)
        indexed = None if is_stream else self._source
        self._make = _Make(indexed, self.batch_size, self.last == "pad", map, batch_map, collate)

    def _check(self, shuffle: bool | None, is_stream: bool) -> None:
        """Reject arguments that contradict each other."""
        if self._key is not None and not hasattr(self._key, "dtype"):
            raise TypeError(
                f"key must be a random key, not {self._key!r:.40}: Loader(..., key=random.key(0))."
            )
        index, count = self.shard_index, self.shard_count
        needs_key = self._takes_key or shuffle or self._weights is not None or self._buffer
        problems = [
            (self.batch_size < 1, f"batch_size must be positive, not {self.batch_size}"),
            (
                self.last not in ("drop", "keep", "pad"),
                f"last must be 'drop', 'keep' or 'pad', not {self.last!r}",
            ),
            (not 0 <= index < count, f"shard must be (index, count), not {(index, count)}"),
            (
                self._worker_kind not in ("thread", "process"),
                f"worker_kind must be 'thread' or 'process', not {self._worker_kind!r}",
            ),
            (self._worker_count < 0, f"workers must not be negative: {self._worker_count}"),
            (self._prefetch < 1, f"prefetch must be positive, not {self._prefetch}"),
            (
                bool(needs_key) and self._key is None,
                "shuffling, weights and functions with a key need a key: "
                "Loader(..., key=random.key(0))",
            ),
            (
                is_stream and bool(shuffle) and not self._buffer,
                "a stream is shuffled in a buffer: give its size, as in shuffle_buffer=10_000",
            ),
            (not is_stream and bool(self._buffer), "shuffle_buffer is for streams only"),
            (
                is_stream and self._weights is not None,
                "weights need a source with `len` and `[i]`, not a stream",
            ),
            (
                self._weights is not None and bool(shuffle),
                "weights draw in random order already: leave shuffle out",
            ),
            (
                self._weights is not None and self._weights.shape != (self._size,),
                f"weights must be one number for each of {self._size} examples",
            ),
            (
                self._weights is None and self._samples is not None,
                "samples is the number of weighted draws: give weights too",
            ),
        ]
        for is_wrong, message in problems:
            if is_wrong:
                raise ValueError(message + ".")

    def __repr__(self) -> str:
        what = "a stream" if self._stream is not None else f"{self._size} examples"
        order = "shuffled" if self._shuffles else "weighted" if self._weights is not None else ""
        count = "" if self._stream is not None else f" of {len(self)}"
        words = [
            f"{what} in batches of {self.batch_size}",
            order,
            f"shard {self.shard_index} of {self.shard_count}" * (self.shard_count > 1),
            f"{self._worker_count} {self._worker_kind} workers" * bool(self._worker_count),
            f"at batch {self._batch}{count} of epoch {self._epoch}",
        ]
        return f"<Loader of {', '.join(word for word in words if word)}>"

    @property
    def epoch(self) -> int:
        """The number of the epoch that the next batch belongs to."""
        return self._epoch

    @property
    def key(self) -> Any:
        """The key."""
        return self._key

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        if self._stream is not None:
            raise TypeError("a stream has no length: it is known only when it ends.")
        size, count = self._drawn(), self.shard_count
        if self.last == "drop":
            return size // count // self.batch_size
        ours = (
            -(-size // count) if self.last == "pad" else len(range(self.shard_index, size, count))
        )
        return -(-ours // self.batch_size)

    def _drawn(self) -> int:
        """Return the number of examples of an epoch, over all shards."""
        if self._weights is None:
            return self._size
        if self._samples is not None:
            return self._samples
        return self._size if self._replace else int(np.count_nonzero(self._weights))

    def state(self) -> dict[str, Any]:
        """Return the position: a small tree of integers and the key, to be saved with a model.

        It is the same in all shards, and the same for any number of workers.
        """
        return {
            "epoch": self._epoch,
            "batch": self._batch,
            "batch_size": self.batch_size,
            "shards": self.shard_count,
            "key": self._key,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to a saved position; the next batch is the one that followed it.

        A stream is read again up to that position.

        Args:
            state: from `state`, of this loader or of one with the same arguments.

        Raises:
            ValueError: if the state is of a loader with another batch size or number of shards, or
                is not a state of a loader.
        """
        if missing := self.state().keys() - state.keys():
            raise ValueError(
                "this is not a position of a loader, as `state()` returns it: it lacks "
                f"{sorted(missing)} and has {sorted(state)!r:.100}."
            )
        for name, ours in (("batch_size", self.batch_size), ("shards", self.shard_count)):
            if int(state[name]) != ours:
                raise ValueError(
                    f"the state was saved by a loader with {name} {int(state[name])}, and this one "
                    f"has {ours}: its position has no meaning here. Use the same {name}."
                )
        self._epoch, self._batch = int(state["epoch"]), int(state["batch"])
        self._key = state["key"]
        self._turn = None

    def steps(self, count: int) -> Iterator[Any]:
        """Yield `count` batches, from as many epochs as needed.

        Args:
            count: how many.

        Returns:
            An iterator.

        Raises:
            ValueError: if an epoch has no batch at all.

        Example:
            >>> import numpy as np
            >>> [batch.tolist() for batch in Loader(np.arange(4), 2).steps(3)]
            [[0, 1], [2, 3], [0, 1]]
        """
        while count > 0:
            before = count
            for batch in self:
                count -= 1
                yield batch
                if not count:
                    return
            if before == count:
                raise ValueError(
                    f"an epoch has no batch of {self.batch_size} examples; use last='pad' or a "
                    "smaller batch_size."
                )

    def __iter__(self) -> Iterator[Any]:
        self._turn = turn = object()
        return self._run(turn)

    def _run(self, turn: object) -> Iterator[Any]:
        epoch, at = self._epoch, self._batch
        tasks = self._tasks(epoch, at)
        is_stream = self._stream is not None
        length = 0 if is_stream else len(self)
        if self._worker_count:
            if self._pool is None:
                self._pool = Workers(self._make, self._worker_count, self._worker_kind)
            ahead = self._worker_count * self._prefetch
            batches = self._pool.in_order(tasks, ahead, takes_time=is_stream)
        else:
            batches = map(self._make, tasks)
        try:
            batch = self._next(batches, epoch, at)
            while batch is not _END:
                if isinstance(batch, _Failed):
                    raise batch.error
                at += 1
                # In a stream, only the absence of a next batch shows that a batch was the last.
                following = self._next(batches, epoch, at) if is_stream else None
                is_last = following is _END if is_stream else at == length
                if self._turn is not turn:
                    raise RuntimeError(_STALE)
                self._epoch, self._batch = (epoch + 1, 0) if is_last else (epoch, at)
                yield batch
                batch = following if is_stream else self._next(batches, epoch, at)
            if self._turn is turn and self._epoch == epoch:
                self._epoch, self._batch = epoch + 1, 0
        finally:
            if hasattr(batches, "close"):
                batches.close()  # type: ignore[attr-defined]

    def _next(self, batches: Iterator[Any], epoch: int, at: int) -> Any:
        """Return the next batch, the end marker, or the error to raise instead."""
        try:
            return next(batches, _END)
        except Exception as error:
            error.add_note(f"This happened in batch {at} of epoch {epoch} of a namoo.data.Loader.")
            return _Failed(error)

    def close(self) -> None:
        """Stop the workers; a later loop starts new ones. Deleting the loader does this, too."""
        self._turn = None
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _tasks(self, epoch: int, at: int) -> Iterator[Any]:
        """Yield the task of each batch: indices or examples, how many are real, and keys."""
        parts = self._streamed(epoch) if self._stream is not None else self._indexed(epoch, at)
        if self._stream is not None:
            parts = itertools.islice(parts, at, None)
        base = None
        if self._takes_key:
            base = random.fold_in(order.typed(self._key), epoch)
            # No other use of the epoch's key, in any shard, folds in this number first.
            base = random.fold_in(random.fold_in(base, 0x6D6170), self.shard_index)
        for number, (part, real) in enumerate(parts, at):
            keys = None
            if base is not None:
                made = random.split(random.fold_in(base, number), self.batch_size + 1)
                keys = np.asarray(random.key_data(made)), str(random.key_impl(made))
            yield part, real, keys

    def _indexed(self, epoch: int, at: int) -> Iterator[tuple[np.ndarray, int]]:
        """Yield the indices of the examples of each batch, and how many of them are real."""
        index, count, size = self.shard_index, self.shard_count, self.batch_size
        ours, end = len(range(index, self._drawn(), count)), len(self) * size
        order_of = self._order(epoch)
        # Several batches at a time: computing the order of one batch would cost more than the
        # batch.
        block = max(1, _BLOCK // size) * size
        for begin in range(at * size, end, block):
            last = min(begin + block, end)
            numbers = order_of(np.arange(begin, min(last, ours)) * count + index)
            for start in range(0, last - begin, size):
                part = numbers[start : start + size]
                real = len(part)
                if self.last == "pad" and real < size:
                    filler = part[-1] if real else order_of(np.zeros(1, int))[0]
                    part = np.append(part, np.full(size - real, filler, part.dtype))
                yield part, real

    def _order(self, epoch: int) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function from positions in the epoch to indices of examples."""
        if self._weights is not None:
            key = order.typed(self._key)
            drawn = order.weighted(key, epoch, self._weights, self._samples, self._replace)
            return drawn.__getitem__
        if self._shuffles:
            return order.order_of(order.typed(self._key), epoch, self._size)
        return lambda positions: positions

    def _streamed(self, epoch: int) -> Iterator[tuple[list[Any], int]]:
        index, count = self.shard_index, self.shard_count
        lacks = False
        filler: Any = _END

        def ours() -> Iterator[Any]:
            nonlocal lacks, filler
            items = iter(self._stream())
            while group := list(itertools.islice(items, count)):
                if filler is _END:
                    filler = group[0]
                if len(group) == count or (self.last != "drop" and index < len(group)):
                    yield group[index]
                else:
                    lacks = True

        items = ours()
        if self._shuffles:
            key = random.fold_in(order.typed(self._key), epoch)
            items = order.shuffled(items, self._buffer or 1, random.fold_in(key, index))
        while part := list(itertools.islice(items, self.batch_size)):
            real = len(part)
            if real == self.batch_size or self.last == "keep":
                yield part, real
            elif self.last == "pad":
                yield part + part[-1:] * (self.batch_size - real), real
            if real < self.batch_size:
                return
        # Another shard has one more example and therefore one more batch.
        if lacks and self.last == "pad":
            yield [filler] * self.batch_size, 0


_END: Any = object()
_BLOCK = 4096


class _Failed:
    """An error instead of a batch."""

    def __init__(self, error: Exception):
        self.error = error


def _takes_key(function: Callable[..., Any] | None) -> bool:
    """Return whether a function has a parameter `key`; False if it has no signature."""
    if function is None:
        return False
    try:
        return "key" in inspect.signature(function).parameters
    except ValueError:
        return False


class _Make:
    """Make the batch of a task. This is all that a worker receives."""

    def __init__(
        self,
        source: Source | None,
        batch_size: int,
        pads: bool,
        map: Callable[..., Any] | None,
        batch_map: Callable[..., Any] | None,
        collate: Callable[[list[Any]], Any],
    ):
        self.source, self.batch_size, self.pads = source, batch_size, pads
        self.map, self.batch_map, self.collate = map, batch_map, collate
        self.map_takes_key, self.batch_map_takes_key = _takes_key(map), _takes_key(batch_map)

    def __call__(self, task: tuple[Any, int, Any]) -> Any:
        part, real, raw = task
        keys = None if raw is None else random.wrap_key_data(raw[0], impl=raw[1])
        if self.map is not None:
            examples: Iterable[Any] = part if self.source is None else self.source.examples(part)
            if self.map_takes_key and keys is not None:
                made = [self.map(x, key=keys[i]) for i, x in enumerate(examples)]
            else:
                made = [self.map(x) for x in examples]
            batch = self.collate(made)
        elif self.source is None:
            batch = self.collate(part)
        else:
            batch = self.source.batch(part, self.collate)
        if self.batch_map is not None:
            last = {"key": keys[-1]} if self.batch_map_takes_key and keys is not None else {}
            batch = self.batch_map(batch, **last)
        return (batch, np.arange(self.batch_size) < real) if self.pads else batch
