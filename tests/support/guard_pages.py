"""Run native code with guard pages around its arrays: run this file as a script.

Every operand and result ends right before a protected page and, in a second run, starts right after
one: code that reads or writes outside of its arrays crashes the process.
"""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

import namoo
import namoo.numpy as jnp
from namoo import lax, random
from namoo.core.array import to_numpy
from namoo.engines.native import tuning
from namoo.engines.native.engine import Program, native

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)


class Guarded:
    """Memory with a protected page before and after it."""

    def __init__(self, size: int):
        self.size = -(-max(size, 1) // PAGE) * PAGE
        self.memory = mmap.mmap(-1, self.size + 2 * PAGE)
        self.start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory)) + PAGE
        for page in (self.start - PAGE, self.start + self.size):
            if _libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), 0):
                raise OSError(ctypes.get_errno(), "mprotect")

    def place(self, size: int, at_end: bool) -> int:
        """Return the address of `size` bytes next to a protected page."""
        return self.start + (self.size - size if at_end else 0)


def run(program: Program, values: list[np.ndarray], at_end: bool) -> list[np.ndarray]:
    """Return the results of a program whose arrays are all guarded."""
    table, kept = [], []
    outs = [np.empty(shape, dtype) for shape, dtype in program.outputs]
    given = [*map(np.ascontiguousarray, values), *program.consts]
    for array in (*given, *outs):
        guarded = Guarded(array.nbytes)
        kept.append((guarded, guarded.place(array.nbytes, at_end)))
        table.append(kept[-1][1])
    for array, (_, address) in zip(given, kept, strict=False):
        ctypes.memmove(address, array.ctypes.data, array.nbytes)
    arena = Guarded(program.arena_size)
    # Offsets in the arena are multiples of 64 bytes.
    start = (
        arena.start if not at_end else arena.start + (arena.size - program.arena_size) // 64 * 64
    )
    pointers = (ctypes.c_void_p * len(table))(*table)
    if program.entry(ctypes.addressof(pointers), start, program.host.callback):
        raise RuntimeError("native code failed")
    for array, (_, address) in zip(outs, kept[len(given) :], strict=True):
        ctypes.memmove(array.ctypes.data, address, array.nbytes)
    return outs


def places(x, i, u):
    return [
        x[i],
        x[:, i % 7],
        jnp.take_along_axis(x, i[:, None] % 7, 1),
        x.at[i].add(u),
        x.at[i].set(u, mode="clip"),
        jnp.zeros_like(x).at[i].max(u),
        jnp.full((11, 40), 1.0).at[i, 3:36].multiply(jnp.ones((11, 33))),
        x.at[i, i].add(1.0),
        x[::2, ::2],
        x[::-1, 3:],
    ]


def strides(x, i, u):
    flat = x.reshape(-1)
    parts = [flat[:n] for n in (5, 16, 17, 28, 33, 77)]
    return [
        *(v[::2] for v in parts),
        *(v[1::2] for v in parts),
        *(jnp.repeat(v, 2) for v in parts),
        *(jnp.repeat(v, 4) for v in parts),
        *((v > 0)[::-2] for v in parts),
        *(v.astype(jnp.bfloat16)[::2] for v in parts),
        *(v[::2].sum() for v in parts),
    ]


def scans(x, i, u):
    return [lax.cumsum(x, a, r) for a in (0, 1) for r in (False, True)] + [
        lax.cumprod(x, 1),
        lax.cummax(x.astype(jnp.bfloat16), 0),
        lax.cumlogsumexp(u, 1),
        lax.cumsum(i),
    ]


def sorts(x, i, u):
    long = jnp.tile(x.reshape(-1), 5)
    return [
        lax.sort(x),
        lax.sort(x, 0),
        lax.sort(i),
        *lax.sort((x, u), 1),
        *lax.sort((long, -long)),
        lax.sort(long),
        lax.sort(jnp.tile(x, (3, 1))),
        *lax.top_k(x, 3),
        *lax.top_k(long, 5),
        lax.sort((x * 30).astype(jnp.int8)),
    ]


def windows(x, i, u):
    x = jnp.tile(x, (2, 1)).reshape(2, 11, 7, 1) * jnp.ones((1, 1, 1, 5))

    def pooled(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 2, 1), (1, 2, 2, 1), "SAME")

    return [pooled(x), namoo.grad(lambda x: (pooled(x) ** 2).sum())(x)]


def draws(x, i, u):
    key = random.key(i[0])
    first, second = random.split(key)
    return [
        random.normal(first, (13, 3)),
        random.bits(second, (17,), jnp.uint8),
        random.key_data(random.split(key, 5))[1:],
        random.permutation(first, 19),
        lax.bitcast_convert_type(x, jnp.uint8),
        jnp.exp(x + 1j * u),
    ]


def factors(x, i, u):
    square = x[:7] + 5 * jnp.eye(7)
    stack = jnp.stack([square, square.T, 2 * square])
    definite = stack @ stack.transpose(0, 2, 1)
    small, right = stack[:, :3, :3], u[:9].reshape(3, 3, 7)
    return [
        lax.linalg.cholesky(definite),
        lax.linalg.cholesky(definite[:, :3, :3]),
        *lax.linalg.lu(stack),
        *lax.linalg.lu(small),
        *lax.linalg.qr(stack[:, :5]),
        *lax.linalg.qr(small + 0j),
        *lax.linalg.eigh(definite),
        *lax.linalg.svd(small),
        lax.linalg.triangular_solve(small, right, left_side=True, lower=True),
        lax.linalg.triangular_solve(stack, right[:, :2], lower=False),
    ]


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((11, 7)).astype(np.float32)
    i = rng.integers(-13, 13, 11).astype(np.int32)
    u = rng.standard_normal((11, 7)).astype(np.float32)
    for fun in (places, strides, scans, sorts, windows, draws, factors):
        check(fun, x, i, u)
    tuning.PARALLEL_ROW = 50
    check(sorts, x, i, u)


def check(fun, *args: np.ndarray) -> None:
    program = native.compile(namoo.make_jaxpr(fun)(*args))
    wanted = [to_numpy(y) for y in fun(*map(jnp.asarray, args))]
    for at_end in (False, True):
        for y, z in zip(run(program, list(args), at_end), wanted, strict=True):
            y, z = (v.astype(np.float32) if v.dtype.kind == "V" else v for v in (y, z))
            np.testing.assert_allclose(y, z, 1e-5, 1e-5, err_msg=fun.__name__)


if __name__ == "__main__":
    main()
