"""Fit a differential equation to real data: hares and lynxes in Canada, 1900 to 1920.

The Lotka-Volterra equations are solved by the Runge-Kutta method in `lax.scan`. The gradient comes
from a second equation, the adjoint, solved backwards in time: no intermediate states are stored,
however many there are (Chen et al., 2018, "Neural Ordinary Differential Equations").

    da/dt = -a·∂f/∂y,    dg/dt = -a·∂f/∂θ

    python examples/ode_fit.py            # --short: 50 steps of Adam instead of 500
"""

import argparse
from pathlib import Path

import numpy as np

import namoo
import namoo.numpy as jnp
from namoo import lax, optim, train

HERE = Path(__file__).parent
SUBSTEPS = 20


def lotka_volterra(y, params):
    """Return the change of hares and lynxes per year."""
    (hare, lynx), (birth, hunted, fed, death) = y, jnp.exp(params["rates"])
    return jnp.stack([hare * (birth - hunted * lynx), lynx * (fed * hare - death)])


def runge_kutta(field, y, duration):
    """Return the state, any tree, after a time, by SUBSTEPS steps of fourth order."""
    h = duration / SUBSTEPS

    def move(y, by, slope):
        return namoo.tree.map(lambda y, s: y + by * s, y, slope)

    def step(y, _):
        k2 = field(move(y, h / 2, k1 := field(y)))
        k3 = field(move(y, h / 2, k2))
        k4 = field(move(y, h, k3))
        total = namoo.tree.map(lambda a, b, c, d: a + 2 * (b + c) + d, k1, k2, k3, k4)
        return move(y, h / 6, total), None

    return lax.scan(step, y, None, length=SUBSTEPS)[0]


def solve_by_scan(params, y):
    """Return the state a year later; its gradient stores all intermediate states."""
    return runge_kutta(lambda y: lotka_volterra(y, params), y, 1.0)


def solve_forward(params, y):
    end = solve_by_scan(params, y)
    return end, (params, end)


def solve_backward(kept, cotangent):
    """Solve the adjoint equation a year back, recomputing the states on the way."""
    params, end = kept

    def field(now):
        y, adjoint, _ = now
        slope, pull = namoo.vjp(lotka_volterra, y, params)
        return slope, *pull(-adjoint)

    start = end, cotangent, namoo.tree.map(jnp.zeros_like, params)
    _, adjoint, grads = runge_kutta(field, start, -1.0)
    return grads, adjoint


solve = namoo.custom_vjp(solve_by_scan)
solve.defvjp(solve_forward, solve_backward)


def trajectory(params, years, solve=solve):
    """Return hares and lynxes in each year, starting with the first."""
    start = jnp.exp(params["start"])
    _, rest = lax.scan(lambda y, _: (solve(params, y),) * 2, start, None, length=years - 1)
    return jnp.concatenate([start[None], rest])


def loss(params, seen, solve=solve):
    """Return the mean squared error of the logarithms, which measures relative errors."""
    return jnp.mean((jnp.log(trajectory(params, len(seen), solve)) - jnp.log(seen)) ** 2)


@namoo.jit(static_argnames="steps")
def fit(params, seen, steps):
    def step(state, _):
        value, grads = namoo.value_and_grad(loss)(state.params, seen)
        return state.apply_gradients(grads=grads), value

    start = train.TrainState.create(params=params, tx=optim.adam(0.01))
    return lax.scan(step, start, None, length=steps)


def main(steps=500, *, picture):
    """Compare both gradients, fit, and draw the data and the fit."""
    table = np.loadtxt(HERE / "data" / "lynx_hare.csv", delimiter=",", skiprows=1)
    seen = table[:, 1:].astype(np.float32)
    params = {"rates": jnp.log(jnp.array([0.5, 0.025, 0.025, 0.8])), "start": jnp.log(seen[0])}
    for name, solver in [("adjoint", solve), ("scan", solve_by_scan)]:
        print(name, "gradient:", namoo.grad(loss)(params, seen, solver)["rates"])
    state, losses = fit(params, seen, steps)
    birth, hunted, fed, death = np.exp(state.params["rates"]).tolist()
    fitted = trajectory(state.params, len(seen))
    curves = {"seen/hares": seen[:, 0], "fitted/hares": fitted[:, 0]}
    curves |= {"seen/lynxes": seen[:, 1], "fitted/lynxes": fitted[:, 1]}
    train.plot({"year": table[:, 0], **curves}, picture, x="year", title="Thousands of pelts")
    print(f"hares' = {birth:.3f} h - {hunted:.4f} h l,  lynxes' = {fed:.4f} h l - {death:.3f} l")
    print(f"error: {losses[-1] ** 0.5:.3f} of the logarithm; {picture}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Fit a differential equation.")
    parser.add_argument("--short", action="store_true", help="50 steps")
    parser.add_argument("--out", default=HERE / "out" / "ode_fit.svg", help="the picture")
    args = parser.parse_args()
    main(**({"steps": 50} if args.short else {}), picture=args.out)
