"""Everything the library remembers.

The rooms below know nothing about it: with `config.memo` off (`NAMOO_MEMO=0`) results are the
same, and only computing them is slower.

There is one seam, `core.trace.Memory`.  Importing this package replaces `Trace.memory` by a
`TraceMemory`, which transformations ask in three places: `Primitive.bind` for the result of an
operation under an eager transformation, `transforms.transpose.backward_pass` for a whole backward
pass, and `transforms.staged` for the program of a branch or loop body.  Functions of the
libraries opt in to being replayed with the decorator `recalled`.

| module | what it remembers |
|---|---|
| `trace_cache` | the table of programs, and of keys that were seen once |
| `recalled` | functions and operations that are replayed from the second call on |
| `replay` | how a program is replayed under each kind of trace |
| `numpy_program` | programs as Python functions over NumPy arrays |
| `linear_steps` | derivatives of replayed programs, and backward passes |
| `functions` | programs of branches and loop bodies |
| `identity` | when two function objects are the same function, for keys |
| `caches` | the register of all caches: clear it, report on it |
"""

from namoo.core.trace import Memory, Trace
from namoo.memo.functions import program_of
from namoo.memo.linear_steps import backward
from namoo.memo.recalled import operation


class TraceMemory(Memory):
    """A memory of operations, backward passes and programs of functions."""

    operation = staticmethod(operation)
    backward = staticmethod(backward)
    program_of = staticmethod(program_of)


Trace.memory = TraceMemory()
