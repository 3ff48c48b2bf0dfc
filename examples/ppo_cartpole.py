"""Balance a pole on a cart: the environment and the whole training are one compiled program.

Sixteen carts run at once by `vmap`, a rollout is a `scan`, and so are the updates (Schulman et al.,
2017, "Proximal Policy Optimization Algorithms"; the cart is Barto, Sutton and Anderson's, 1983).

    python examples/ppo_cartpole.py    # with --short, ten updates instead of 150
"""

import argparse
from pathlib import Path

import namoo
import namoo.numpy as jnp
from namoo import lax, nn, optim, random, train

CARTS, LENGTH, EPOCHS, BATCHES = 16, 128, 4, 4
GAMMA, LAMBDA, CLIP, ENTROPY, LIMIT = 0.99, 0.95, 0.2, 0.01, 500


def reset(key):
    """Return a cart near the middle, its pole nearly upright: (x, speed, angle, spin) and time."""
    return random.uniform(key, (4,), minval=-0.05, maxval=0.05), jnp.int32(0)


def move(state, action, key):
    """Push left or right for 0.02 s; if the pole falls, or time is up, start over."""
    (body, t), (_, speed, angle, turn) = state, state[0]
    sin, cos = jnp.sin(angle), jnp.cos(angle)
    force = (jnp.where(action == 1, 10.0, -10.0) + 0.05 * turn**2 * sin) / 1.1
    turning = (9.8 * sin - cos * force) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
    body = body + 0.02 * jnp.stack([speed, force - 0.05 * turning * cos / 1.1, turn, turning])
    done = (jnp.abs(body[0]) > 2.4) | (jnp.abs(body[2]) > 0.2095) | (t + 1 >= LIMIT)
    return namoo.tree.map(lambda a, b: jnp.where(done, a, b), reset(key), (body, t + 1)), done


def agents(params, bodies):
    """Return, for each cart, the log-probabilities of both actions and the expected return."""
    return nn.log_softmax(namoo.vmap(params[0])(bodies)), namoo.vmap(params[1])(bodies)


def rollout(params, carts, key):
    """Run all carts for LENGTH steps; return what they observed and did."""

    def step(carts, key):
        (act, restart), (scores, values) = random.split(key), agents(params, carts[0])
        actions = random.categorical(act, scores)
        seen = {"body": carts[0], "action": actions, "scores": scores, "value": values}
        carts, seen["done"] = namoo.vmap(move)(carts, actions, random.split(restart, CARTS))
        return carts, seen

    return lax.scan(step, carts, random.split(key, LENGTH))


def advantages(steps, last_value):
    """Return how much better each action was than expected; a step earns 1."""

    def back(carry, step):
        ahead, value = carry
        ahead = 1.0 + GAMMA * (value + LAMBDA * ahead) * ~step["done"] - step["value"]
        return (ahead, step["value"]), ahead

    return lax.scan(back, (jnp.zeros(CARTS), last_value), steps, reverse=True)[1]


def loss(params, batch):
    scores, values = agents(params, batch["body"])
    change = jnp.take_along_axis(scores - batch["scores"], batch["action"][:, None], axis=1)[:, 0]
    ratio, gain = jnp.exp(change), nn.standardize(batch["gain"])
    policy = jnp.minimum(ratio * gain, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * gain).mean()
    error = jnp.mean((values - batch["value"] - batch["gain"]) ** 2)
    return 0.5 * error - policy + ENTROPY * (jnp.exp(scores) * scores).sum(-1).mean()


@namoo.jit(static_argnames="updates")
def learn(key, updates):
    """Train; return the parameters, and how many episodes ended during each update."""

    def descend(state, batch):
        return state.apply_gradients(grads=namoo.grad(loss)(state.params, batch)), None

    def update(carry, key):
        (state, carts), (run, *shuffles) = carry, random.split(key, 1 + EPOCHS)
        carts, steps = rollout(state.params, carts, run)
        steps["gain"] = advantages(steps, agents(state.params, carts[0])[1])
        order = jnp.concatenate([random.permutation(k, CARTS * LENGTH) for k in shuffles])
        at = order.reshape(EPOCHS * BATCHES, -1)
        batches = namoo.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[at], steps)
        return (lax.scan(descend, state, batches)[0], carts), steps["done"].sum()

    first, second, start, run = random.split(key, 4)
    actor = nn.MLP(4, 2, 64, depth=2, activation=nn.tanh, key=first)
    critic = nn.MLP(4, "scalar", 64, depth=2, activation=nn.tanh, key=second)
    state = train.TrainState.create(params=(actor, critic), tx=optim.adam(1e-3))
    carry = state, namoo.vmap(reset)(random.split(start, CARTS))
    (state, _), ended = lax.scan(update, carry, random.split(run, updates))
    return state.params, ended


@namoo.jit
def judge(params, keys):
    """Return for how many steps some poles stay up if the likelier action is taken."""

    def step(carry, _):
        carts, standing = carry
        carts, done = namoo.vmap(move)(carts, agents(params, carts[0])[0].argmax(-1), keys)
        return (carts, standing & ~done), standing

    start = namoo.vmap(reset)(keys), jnp.ones(len(keys), bool)
    return lax.scan(step, start, None, length=LIMIT)[1].sum(axis=0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Balance a pole on a cart.")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--out", default=Path(__file__).parent / "out" / "ppo_cartpole.svg")
    args = parser.parse_args()
    params, ended = learn(random.key(0), updates=10 if args.short else 150)
    train.plot({"poles that fell": ended}, args.out, x="update", title="Learning to balance")
    stood = judge(params, random.split(random.key(1), 100)).mean()
    print(f"a pole stands for {stood:.0f} of {LIMIT} steps; {args.out}")
