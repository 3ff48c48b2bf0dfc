"""`jit` as an operation: one equation that holds a whole program."""

from __future__ import annotations

from namoo.transforms.program import Call


class Jit(Call):
    """A call of a program that is compiled as one."""

    name = "jit"


jit_p = Jit()
