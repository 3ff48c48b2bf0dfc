"""Linear algebra: stacks of small matrices, single large ones, and programs made of both."""

from functools import partial

import numpy as np

from row import Goal, Row
from training import normal

STACK = 10_000
SIZES = (3, 8, 16, 32)
GOAL = Goal(jax=2.0, torch=1.0)
LARGE = Goal(jax=1.0, torch=1.0)


def matrices(tiny, n, count=STACK, columns=None):
    """Well-conditioned matrices, positive definite ones, and right sides."""
    count, n = (min(count, 3), min(n, 4)) if tiny else (count, n)
    shape = (count, n) if count > 1 else (n,)
    x = normal(0, *shape, n)
    definite = x @ np.swapaxes(x, -1, -2) / n + np.eye(n, dtype=np.float32)
    right = normal(1, *shape, columns or min(n, 4))
    return x + 2 * n**0.5 * np.eye(n, dtype=np.float32), definite, right


# Functions of (x, definite, right), written alike for the modules jax.numpy, torch and numpy.
SMALL = {
    "det": lambda lib: lambda x, p, b: lib.linalg.det(p),
    "inv": lambda lib: lambda x, p, b: lib.linalg.inv(x),
    "solve": lambda lib: lambda x, p, b: lib.linalg.solve(x, b),
    "cholesky": lambda lib: lambda x, p, b: lib.linalg.cholesky(p),
    "qr": lambda lib: lambda x, p, b: lib.linalg.qr(x),
    "eigh": lambda lib: lambda x, p, b: lib.linalg.eigh(p),
    "svd": lambda lib: lambda x, p, b: lib.linalg.svd(x),
}
SEEN = {
    "eigh": lambda out: out[0],  # vectors may have either sign
    "svd": lambda out: out[1],
}


def compiled(function):
    return lambda jax, jnp: jax.jit(function(jnp))


def torch_call(function):
    return lambda torch, compile, *args: partial(compile(function(torch)), *args)


def small(name, n):
    return Row(
        f"{name} of {STACK:,} {n}×{n}",
        partial(matrices, n=n),
        compiled(SMALL[name]),
        torch_call(SMALL[name]),
        SMALL[name](np),
        GOAL,
        seen=SEEN.get(name, lambda out: out),
        torch_compiles=False,
        tolerance=1e-3,
    )


def triangular(jax, jnp):
    solve = jax.lax.linalg.triangular_solve
    return jax.jit(lambda x, p, b: solve(jnp.tril(p), b, left_side=True, lower=True))


def torch_triangular(torch, compile, x, p, b):
    p = torch.tril(p)
    return lambda: torch.linalg.solve_triangular(p, b, upper=False)


def numpy_triangular(x, p, b):
    return np.linalg.solve(np.tril(p), b)


def gradient(name):
    """The gradient of a smooth number made of the result."""

    def total(lib, x, p, b):
        out = SMALL[name](lib)(x, p, b)
        parts = out if isinstance(out, tuple) else (out,)
        if name in SEEN:
            parts = (SEEN[name](parts),)
        return sum((part**3).sum() for part in parts)

    def program(jax, jnp):
        return jax.jit(jax.grad(partial(total, jnp), argnums=(0, 1, 2)))

    def torch_version(torch, compile, *args):
        args = [a.requires_grad_() for a in args]

        def run():
            loss = total(torch, *args)
            grads = torch.autograd.grad(loss, args, allow_unused=True)
            zeros = torch.zeros_like
            return [zeros(a) if g is None else g for g, a in zip(grads, args, strict=True)]

        return run

    return Row(
        f"gradient of {name} of {STACK:,} 8×8",
        partial(matrices, n=8),
        program,
        torch_version,
        None,
        GOAL,
        torch_compiles=False,
        tolerance=1e-2,
        # Eigenvectors of a triangle, or of both halves: the frameworks differ in that.
        seen=lambda out: [np.array(g) + np.swapaxes(np.array(g), -1, -2) for g in out[:2]],
    )


def kalman_inputs(tiny, n=6, m=3, steps=500):
    steps = 5 if tiny else steps
    a = np.eye(n, dtype=np.float32) + 0.05 * normal(0, n, n)
    return a * 0.9, normal(1, m, n), normal(2, steps, m)


def kalman(jax, jnp):
    """A Kalman filter: means of the state after each observation."""

    def run(a, h, ys):
        n, m = a.shape[0], h.shape[0]
        q, r = 0.1 * jnp.eye(n), 0.5 * jnp.eye(m)

        def step(carry, y):
            mean, cov = carry
            mean, cov = a @ mean, a @ cov @ a.T + q
            s = h @ cov @ h.T + r
            gain = jnp.linalg.solve(s, h @ cov).T
            mean = mean + gain @ (y - h @ mean)
            cov = cov - gain @ h @ cov
            return (mean, cov), mean

        return jax.lax.scan(step, (jnp.zeros(n), jnp.eye(n)), ys)[1]

    return jax.jit(run)


def numpy_kalman(a, h, ys):
    n, m = a.shape[0], h.shape[0]
    q, r = 0.1 * np.eye(n, dtype=a.dtype), 0.5 * np.eye(m, dtype=a.dtype)
    mean, cov, out = np.zeros(n, a.dtype), np.eye(n, dtype=a.dtype), []
    for y in ys:
        mean, cov = a @ mean, a @ cov @ a.T + q
        s = h @ cov @ h.T + r
        gain = np.linalg.solve(s, h @ cov).T
        mean = mean + gain @ (y - h @ mean)
        cov = cov - gain @ h @ cov
        out.append(mean)
    return np.stack(out)


def torch_kalman(torch, compile, a, h, ys):
    n, m = a.shape[0], h.shape[0]
    q, r = 0.1 * torch.eye(n), 0.5 * torch.eye(m)

    def run():
        mean, cov, out = torch.zeros(n), torch.eye(n), []
        for y in ys:
            mean, cov = a @ mean, a @ cov @ a.T + q
            s = h @ cov @ h.T + r
            gain = torch.linalg.solve(s, h @ cov).T
            mean = mean + gain @ (y - h @ mean)
            cov = cov - gain @ h @ cov
            out.append(mean)
        return torch.stack(out)

    return run


def exponent_inputs(tiny, n=64):
    return (normal(0, *((4, 4) if tiny else (n, n))) / 4,)


def exponent(jax, jnp):
    return jax.jit(lambda x: jax.scipy.linalg.expm(x))


def exponential_scipy(x):
    # Imported by those who call it: the rows of peak memory would count it.
    import scipy.linalg

    return scipy.linalg.expm(x)


def torch_exponent(torch, compile, x):
    return lambda: torch.linalg.matrix_exp(x)


def process_inputs(tiny, count=500):
    count = 6 if tiny else count
    return normal(0, count, 3), normal(1, count), np.zeros(3, np.float32)


def process_loss(lib, logs, x, y):
    """Minus the log-likelihood of a Gaussian process: length, amplitude and noise in logs."""
    z = x / lib.exp(logs[0])
    squares = ((z[:, None] - z[None]) ** 2).sum(-1)
    noise = lib.exp(logs[2]) + 1e-3
    k = lib.exp(logs[1]) * lib.exp(-0.5 * squares) + noise * lib.eye(x.shape[0])
    factor = lib.linalg.cholesky(k)
    alpha = lib.linalg.solve(k, y)
    return 0.5 * (y * alpha).sum() + lib.log(lib.diagonal(factor)).sum()


def process(jax, jnp):
    return jax.jit(lambda x, y, logs: jax.value_and_grad(partial(process_loss, jnp))(logs, x, y))


def torch_process(torch, compile, x, y, logs):
    logs.requires_grad_()

    def run():
        loss = process_loss(torch, logs, x, y)
        return loss, torch.autograd.grad(loss, logs)[0]

    return run


ONE = {
    "cholesky": SMALL["cholesky"],
    "solve": SMALL["solve"],
    "inv": SMALL["inv"],
    "qr": SMALL["qr"],
    "eigh": SMALL["eigh"],
    "svd": SMALL["svd"],
    "lstsq": lambda lib: lambda x, p, b: lib.linalg.lstsq(x, b)[0],
}


def one(name, n):
    return Row(
        f"{name} {n}",
        partial(matrices, n=n, count=1),
        compiled(ONE[name]),
        torch_call(ONE[name]),
        (lambda x, p, b: np.linalg.lstsq(x, b, rcond=None)[0])
        if name == "lstsq"
        else ONE[name](np),
        LARGE,
        seen=SEEN.get(name, lambda out: out),
        torch_compiles=False,
        tolerance=2e-3,
    )


def eager(name):
    function = {**SMALL, "slogdet": lambda lib: lambda x, p, b: tuple(lib.linalg.slogdet(x))}[name]
    return Row(
        f"eager {name} 4×4",
        partial(matrices, n=4, count=1),
        lambda jax, jnp: function(jnp),
        lambda torch, compile, *args: partial(function(torch), *args),
        function(np),
        Goal(jax=1.0, torch=0.5, numpy=0.5),
        seen=SEEN.get(name, lambda out: out),
        pipelined=True,
        torch_compiles=False,
    )


def heat(jax, jnp):
    """Return the temperatures after steps that each solve a tridiagonal system."""

    def run(x):
        beside = jnp.full(x.shape[0], -1.0)
        lower, upper = beside.at[0].set(0), beside.at[-1].set(0)
        solve = jax.lax.linalg.tridiagonal_solve
        return jax.lax.fori_loop(0, 100, lambda i, x: solve(lower, 3 - 0 * beside, upper, x), x)

    return jax.jit(run)


def heat_numpy(x):
    import scipy.linalg

    bands = np.stack([np.full(len(x), v, np.float32) for v in (-1, 3, -1)])
    for _ in range(100):
        x = scipy.linalg.solve_banded((1, 1), bands, x)
    return x


def updates(jax, jnp):
    """Return an upper triangular factor after rank-one updates."""
    update = jax.lax.linalg.cholesky_update
    return jax.jit(lambda r, ws: jax.lax.scan(lambda r, w: (update(r, w), None), r, ws)[0])


def updates_numpy(r, ws):
    return np.linalg.cholesky(r.T @ r + ws.T @ ws).T


ROWS = [
    *(small(name, n) for name in SMALL for n in SIZES),
    *(
        Row(
            f"triangular solve of {STACK:,} {n}×{n}",
            partial(matrices, n=n),
            triangular,
            torch_triangular,
            numpy_triangular,
            GOAL,
            torch_compiles=False,
        )
        for n in SIZES
    ),
    *(gradient(name) for name in ("det", "inv", "solve", "cholesky", "qr", "eigh", "svd")),
    Row(
        "Kalman filter, 500 steps",
        kalman_inputs,
        kalman,
        torch_kalman,
        numpy_kalman,
        Goal(jax=2.0),
        torch_compiles=False,
        tolerance=1e-3,
    ),
    Row(
        "expm 64",
        exponent_inputs,
        exponent,
        torch_exponent,
        exponential_scipy,
        LARGE,
        torch_compiles=False,
        tolerance=1e-3,
    ),
    Row(
        "Gaussian process of 500 points, value and gradient",
        process_inputs,
        process,
        torch_process,
        None,
        LARGE,
        torch_compiles=False,
        tolerance=1e-3,
    ),
    *(one(name, n) for name in ONE for n in (500, 1000)),
    *(one(name, 2000) for name in ("cholesky", "solve")),
    *(eager(name) for name in ("det", "slogdet", "inv", "solve", "cholesky", "qr", "eigh", "svd")),
    Row(
        "implicit heat equation, 200 points, 100 steps",
        lambda tiny: (normal(0, 5 if tiny else 200, 1),),
        heat,
        None,
        heat_numpy,
        LARGE,
        tolerance=1e-3,
    ),
    Row(
        "Cholesky factors of 200 x 200, updated by 20 vectors",
        lambda tiny: (
            np.eye(4 if tiny else 200, dtype=np.float32),
            normal(0, 20, 4 if tiny else 200),
        ),
        updates,
        None,
        updates_numpy,
        LARGE,
        tolerance=1e-3,
    ),
]
