"""Loops whose steps update a few elements of an array, or run a few small kernels each."""

import numpy as np

from row import Goal, Row
from training import normal


def integers(seed, high, *shape):
    """Return reproducible integers below `high`."""
    return np.random.default_rng(seed).integers(0, high, shape).astype(np.int32)


def row(name, inputs, program, torch=None, numpy=None, **more) -> Row:
    """Return a row whose PyTorch version, if any, is written with Python's loops."""
    return Row(name, inputs, program, torch, numpy, Goal(jax=1.0), torch_compiles=False, **more)


# Updates of elements.


def sieve(jax, jnp):
    """Return a function that marks the primes below n: strike the multiples of each prime."""

    def run(flags):
        n = flags.shape[0]

        def outer(state):
            flags, p = state

            def strike(state):
                flags, multiple = state
                return flags.at[multiple].set(False), multiple + p

            def strike_all(flags):
                return jax.lax.while_loop(lambda s: s[1] < n, strike, (flags, p * p))[0]

            return jax.lax.cond(flags[p], strike_all, lambda flags: flags, flags), p + 1

        return jax.lax.while_loop(lambda s: s[1] * s[1] < n, outer, (flags, 2))[0]

    return jax.jit(run)


def sieve_numpy(flags):
    flags = flags.copy()
    for p in range(2, int(len(flags) ** 0.5) + 1):
        if flags[p]:
            flags[p * p :: p] = False
    return flags


def union_find(jax, jnp):
    """Return the roots of a forest in which edges were joined, with paths halved on the way."""

    def find(parent, x):
        def step(state):
            parent, x = state
            parent = parent.at[x].set(parent[parent[x]])
            return parent, parent[x]

        return jax.lax.while_loop(lambda s: s[0][s[1]] != s[1], step, (parent, x))

    def join(parent, edge):
        parent, a = find(parent, edge[0])
        parent, b = find(parent, edge[1])
        return parent.at[a].set(b), None

    return jax.jit(lambda parent, edges: jax.lax.scan(join, parent, edges)[0])


def union_find_numpy(parent, edges):
    parent = parent.tolist()

    def find(x):
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    for a, b in edges.tolist():
        a, b = find(a), find(b)
        parent[a] = b
    return np.array(parent, "i4")


def insertion_sort(jax, jnp):
    """Return a function that sorts by insertion: swaps of neighbours, with two updates each."""

    def insert(i, x):
        def swap(state):
            x, j = state
            a, b = x[j - 1], x[j]
            return x.at[j].set(a).at[j - 1].set(b), j - 1

        def out_of_order(state):
            x, j = state
            return (j > 0) & (x[j - 1] > x[j])

        return jax.lax.while_loop(out_of_order, swap, (x, i))[0]

    return jax.jit(lambda x: jax.lax.fori_loop(1, x.shape[0], insert, x))


def shuffle(jax, jnp):
    """Return the shuffle of Fisher and Yates: element i changes places with an earlier one."""

    def swap(i, x, places):
        pair = jnp.array([i, places[i]])
        return x.at[pair].set(x[pair[::-1]])

    def run(x, places):
        return jax.lax.fori_loop(0, x.shape[0], lambda i, x: swap(i, x, places), x)

    return jax.jit(run)


def shuffle_numpy(x, places):
    x = x.tolist()
    for i, j in enumerate(places.tolist()):
        x[i], x[j] = x[j], x[i]
    return np.array(x, "f4")


def shuffle_torch(torch, compile, x, places):
    def run():
        y = x.clone()
        for i, j in enumerate(places.tolist()):
            y[[i, j]] = y[[j, i]]
        return y

    return run


def replay_buffer(jax, jnp):
    """Return a buffer of transitions after steps, of which some are stored."""

    def step(state, item):
        buffer, rewards, at = state
        value, keep = item

        def store(buffer, rewards, at):
            buffer = buffer.at[at].set(value)
            return buffer, rewards.at[at].set(value.sum()), (at + 1) % buffer.shape[0]

        return jax.lax.cond(keep, store, lambda *s: s, buffer, rewards, at), None

    def run(buffer, rewards, items, keep):
        return jax.lax.scan(step, (buffer, rewards, 0), (items, keep))[0]

    return jax.jit(run)


def replay_buffer_numpy(buffer, rewards, items, keep):
    buffer, rewards, at = buffer.copy(), rewards.copy(), 0
    for value, stored in zip(items, keep, strict=True):
        if stored:
            buffer[at], rewards[at] = value, value.sum()
            at = (at + 1) % len(buffer)
    return buffer, rewards, at


def ring_buffer(jax, jnp):
    """Return moving averages of a signal, from sums that a ring of the last samples updates."""

    def run(ring, x):
        def step(state, x):
            ring, total, i = state
            total = total + x - ring[i]
            ring = jax.lax.dynamic_update_slice(ring, x[None], (i,))
            return (ring, total, (i + 1) % ring.shape[0]), total / ring.shape[0]

        return jax.lax.scan(step, (ring, jnp.zeros(()), 0), x)[1]

    return jax.jit(run)


def kv_cache(jax, jnp):
    """Return the outputs of attention, one token after another, with caches of keys and values."""

    def run(keys, values, qkv):
        def step(state, item):
            keys, values = state
            at, (q, k, v) = item
            keys = jax.lax.dynamic_update_slice(keys, k[None], (at, 0))
            values = jax.lax.dynamic_update_slice(values, v[None], (at, 0))
            scores = jnp.where(jnp.arange(keys.shape[0]) <= at, keys @ q / 8, -jnp.inf)
            return (keys, values), jax.nn.softmax(scores) @ values

        return jax.lax.scan(step, (keys, values), (jnp.arange(keys.shape[0]), qkv))[1]

    return jax.jit(run)


def kv_cache_numpy(keys, values, qkv):
    keys, values, out = keys.copy(), values.copy(), []
    for at, (q, k, v) in enumerate(qkv):
        keys[at], values[at] = k, v
        scores = keys[: at + 1] @ q / 8
        weights = np.exp(scores - scores.max())
        out.append(weights @ values[: at + 1] / weights.sum())
    return np.stack(out)


def histogram(jax, jnp):
    """Return counts, totals and the greatest of values by key: three carries."""

    def step(state, item):
        counts, totals, greatest = state
        key, value = item
        counts = counts.at[key].add(1)
        totals = totals.at[key].add(value)
        return (counts, totals, greatest.at[key].max(value)), None

    def run(counts, totals, greatest, keys, values):
        return jax.lax.scan(step, (counts, totals, greatest), (keys, values))[0]

    return jax.jit(run)


# Tables of dynamic programming.


def edit_distance(jax, jnp):
    """Return the distance of two strings, by a table whose elements are filled one by one."""

    def run(a, b):
        n, m = a.shape[0], b.shape[0]
        table = jnp.zeros((n + 1, m + 1), "int32")
        table = table.at[:, 0].set(jnp.arange(n + 1)).at[0].set(jnp.arange(m + 1))

        def cell(i, j, table):
            change = table[i, j] + (a[i] != b[j])
            best = jnp.minimum(jnp.minimum(table[i, j + 1], table[i + 1, j]) + 1, change)
            return table.at[i + 1, j + 1].set(best)

        def line(i, table):
            return jax.lax.fori_loop(0, m, lambda j, table: cell(i, j, table), table)

        return jax.lax.fori_loop(0, n, line, table)[n, m]

    return jax.jit(run)


def knapsack(jax, jnp):
    """Return the best values for each capacity, item after item."""

    def run(weights, values, best):
        def step(best, item):
            weight, value = item
            places = jnp.arange(best.shape[0])
            taken = jnp.where(places >= weight, best[jnp.maximum(places - weight, 0)] + value, 0)
            return jnp.maximum(best, taken), None

        return jax.lax.scan(step, best, (weights, values))[0]

    return jax.jit(run)


def knapsack_numpy(weights, values, best):
    best = best.copy()
    for weight, value in zip(weights.tolist(), values, strict=True):
        best[weight:] = np.maximum(best[weight:], best[:-weight] + value)
    return best


def viterbi(jax, jnp):
    """Return the most likely states of a hidden Markov model."""

    def run(transitions, scores):
        def forward(best, score):
            paths = best[:, None] + transitions
            return jnp.max(paths, 0) + score, jnp.argmax(paths, 0)

        best, back = jax.lax.scan(forward, scores[0], scores[1:])

        def follow(state, pointers):
            return pointers[state], state

        first, states = jax.lax.scan(follow, jnp.argmax(best), back, reverse=True)
        return jnp.concatenate([first[None], states])

    return jax.jit(run)


def viterbi_numpy(transitions, scores):
    best, back = scores[0], []
    for score in scores[1:]:
        paths = best[:, None] + transitions
        back.append(paths.argmax(0))
        best = paths.max(0) + score
    states = [best.argmax()]
    for pointers in reversed(back):
        states.append(pointers[states[-1]])
    return np.array(states[::-1])


def life(jax, jnp):
    """Return the board of the Game of Life after 50 generations."""

    def step(_, board):
        lines = board + jnp.roll(board, 1, 0) + jnp.roll(board, -1, 0)
        count = lines + jnp.roll(lines, 1, 1) + jnp.roll(lines, -1, 1)
        return ((count == 3) | ((count == 4) & (board == 1))).astype(board.dtype)

    return jax.jit(lambda board: jax.lax.fori_loop(0, 50, step, board))


def life_numpy(board):
    for _ in range(50):
        lines = board + np.roll(board, 1, 0) + np.roll(board, -1, 0)
        count = lines + np.roll(lines, 1, 1) + np.roll(lines, -1, 1)
        board = ((count == 3) | ((count == 4) & (board == 1))).astype(board.dtype)
    return board


# Sums of rows, and what follows them.


def logistic_loss(jax, jnp):
    return jax.jit(lambda x, y, w: jax.nn.softplus(-y * (x @ w)))


def logistic_loss_numpy(x, y, w):
    return np.logaddexp(0, -y * (x @ w)).astype("f4")


def logistic_loss_torch(torch, compile, x, y, w):
    softplus = torch.nn.functional.softplus
    return lambda: softplus(-y * (x @ w))


def row_sums(jax, jnp):
    return jax.jit(lambda x: jnp.exp(-jnp.sum(x * x, 1)))


def hamiltonian(jax, jnp):
    """Return the end of trajectories through the posterior of a logistic regression."""

    def run(q, momenta, x, y):
        def energy(q):
            return jnp.sum(jax.nn.softplus(-y * (x @ q))) + 0.5 * jnp.sum(q * q)

        slope = jax.grad(energy)

        def trajectory(q, p):
            def leap(state, _):
                q, p = state
                p = p - 0.005 * slope(q)
                q = q + 0.01 * p
                return (q, p - 0.005 * slope(q)), None

            new, end = jax.lax.scan(leap, (q, p), None, length=10)[0]
            change = energy(q) + 0.5 * jnp.sum(p * p) - energy(new) - 0.5 * jnp.sum(end * end)
            return jnp.where(change > -1, new, q), change

        return jax.lax.scan(trajectory, q, momenta)[0]

    return jax.jit(run)


# Several small kernels in an iteration.


def particles(jax, jnp):
    """Return the means of a particle filter that resamples systematically."""

    def run(x, noise, observed):
        n = x.shape[0]

        def step(x, item):
            noise, y = item
            x = 0.5 * x + 25 * x / (1 + x * x) + noise
            logs = -0.5 * (y - x * x / 20) ** 2
            weights = jnp.exp(logs - jnp.max(logs))
            weights = weights / jnp.sum(weights)
            mean = jnp.sum(weights * x)
            places = jnp.searchsorted(jnp.cumsum(weights), (jnp.arange(n) + 0.5) / n)
            return x[jnp.clip(places, 0, n - 1)], mean

        return jax.lax.scan(step, x, (noise, observed))[1]

    return jax.jit(run)


def decision_trees(jax, jnp):
    """Return the predictions of a forest: each example walks down each tree."""

    def run(features, thresholds, left, right, values, x):
        def walk(feature, threshold, left, right, value, example):
            def step(node):
                low = example[feature[node]] < threshold[node]
                return jnp.where(low, left[node], right[node])

            node = jax.lax.while_loop(lambda node: left[node] >= 0, step, 0)
            return value[node]

        trees = jax.vmap(walk, (0, 0, 0, 0, 0, None))
        every = jax.vmap(lambda e: trees(features, thresholds, left, right, values, e))
        return jnp.mean(every(x), 1)

    return jax.jit(run)


def forest(tiny):
    """Return 20 full trees of depth 8, and examples."""
    trees, depth, examples = (2, 3, 5) if tiny else (20, 8, 1000)
    nodes = 2 ** (depth + 1) - 1
    inner = np.arange(nodes) < 2**depth - 1
    left = np.where(inner, 2 * np.arange(nodes) + 1, -1).astype("i4")
    right = np.where(inner, 2 * np.arange(nodes) + 2, -1).astype("i4")
    return (
        integers(0, 10, trees, nodes),
        normal(1, trees, nodes),
        np.tile(left, (trees, 1)),
        np.tile(right, (trees, 1)),
        normal(2, trees, nodes),
        normal(3, examples, 10),
    )


def forest_numpy(features, thresholds, left, right, values, x):
    tree, example = np.arange(len(features)), np.arange(len(x))[:, None]
    node = np.zeros((len(x), len(features)), int)
    while (left[tree, node] >= 0).any():
        low = x[example, features[tree, node]] < thresholds[tree, node]
        node = np.where(low, left[tree, node], right[tree, node])
    return values[tree, node].mean(1)


def binary_search(jax, jnp):
    """Return where values belong in a sorted array, each by halving."""

    def run(table, values):
        def find(value):
            def step(state):
                low, high = state
                middle = (low + high) // 2
                before = table[middle] < value
                return jnp.where(before, middle + 1, low), jnp.where(before, high, middle)

            return jax.lax.while_loop(lambda s: s[0] < s[1], step, (0, table.shape[0]))[0]

        return jax.vmap(find)(values)

    return jax.jit(run)


def pinn(jax, jnp):
    """Return the gradient of a network's residual in the heat equation."""

    def network(params, t, x):
        h = jnp.stack([t, x])
        for w, b in params[:-1]:
            h = jnp.tanh(w @ h + b)
        ((w, b),) = params[-1:]
        return (w @ h + b)[0]

    def residual(params, t, x):
        first = jax.grad(network, 1)(params, t, x)
        second = jax.grad(jax.grad(network, 2), 2)(params, t, x)
        return first - 0.1 * second

    def loss(params, points):
        r = jax.vmap(residual, (None, 0, 0))(params, points[:, 0], points[:, 1])
        return jnp.mean(r * r)

    def run(params, points):
        def step(params, _):
            grads = jax.grad(loss)(params, points)
            return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), None

        return jax.lax.scan(step, params, None, length=5)[0]

    return jax.jit(run)


def pinn_inputs(tiny):
    width = 4 if tiny else 32
    sizes = [2, width, width, 1]
    params = [
        (normal(i, m, n, scale=0.5), normal(10 + i, m, scale=0.1))
        for i, (n, m) in enumerate(zip(sizes[:-1], sizes[1:], strict=True))
    ]
    return params, normal(9, 8 if tiny else 256, 2)


def kepler(jax, jnp):
    """Return eccentric anomalies: Newton's method for each planet, until it converges."""

    def solve(mean, e):
        def step(state):
            x, _, i = state
            change = (x - e * jnp.sin(x) - mean) / (1 - e * jnp.cos(x))
            return x - change, change, i + 1

        def go(state):
            return (jnp.abs(state[1]) > 1e-5) & (state[2] < 50)

        return jax.lax.while_loop(go, step, (mean, jnp.float32(1), 0))[0]

    return jax.jit(jax.vmap(solve))


def gru(jax, jnp):
    """Return the states of a GRU."""

    def run(w, u, b, h, xs):
        def step(h, x):
            z, r, c = jnp.split(w @ x + b, 3)
            uz, ur, uc = jnp.split(u @ h, 3)
            z, r = jax.nn.sigmoid(z + uz), jax.nn.sigmoid(r + ur)
            h = z * h + (1 - z) * jnp.tanh(c + r * uc)
            return h, h

        return jax.lax.scan(step, h, xs)[1]

    return jax.jit(run)


def gru_numpy(w, u, b, h, xs):
    out = []
    for x in xs:
        z, r, c = np.split(w @ x + b, 3)
        uz, ur, uc = np.split(u @ h, 3)
        z, r = 1 / (1 + np.exp(-z - uz)), 1 / (1 + np.exp(-r - ur))
        h = z * h + (1 - z) * np.tanh(c + r * uc)
        out.append(h)
    return np.stack(out)


def kalman(jax, jnp):
    """Return the means of a Kalman filter."""

    def run(a, c, q, r, ys):
        def step(state, y):
            m, p = state
            m, p = a @ m, a @ p @ a.T + q
            s = c @ p @ c.T + r
            gain = jnp.linalg.solve(s, c @ p).T
            return (m + gain @ (y - c @ m), p - gain @ c @ p), m

        return jax.lax.scan(step, (jnp.zeros(a.shape[0]), jnp.eye(a.shape[0])), ys)[1]

    return jax.jit(run)


def kalman_inputs(tiny):
    n, m, steps = (4, 2, 3) if tiny else (6, 3, 500)
    a = np.eye(n, dtype="f4") + 0.1 * np.eye(n, k=1, dtype="f4")
    eye = np.eye(n, dtype="f4")
    return 0.95 * a, eye[:m], 0.1 * eye, np.eye(m, dtype="f4"), normal(0, steps, m)


def kalman_numpy(a, c, q, r, ys):
    m, p, out = np.zeros(len(a), "f4"), np.eye(len(a), dtype="f4"), []
    for y in ys:
        m, p = a @ m, a @ p @ a.T + q
        gain = np.linalg.solve(c @ p @ c.T + r, c @ p).T
        out.append(m)
        m, p = m + gain @ (y - c @ m), p - gain @ c @ p
    return np.stack(out)


def rejection(jax, jnp):
    """Return points in a disc, each drawn until one is inside."""

    def draw(key):
        def step(state):
            key, _ = state
            key, now = jax.random.split(key)
            return key, jax.random.uniform(now, (2,), minval=-1.0)

        start = (key, jnp.full(2, 2.0))
        return jax.lax.while_loop(lambda s: jnp.sum(s[1] ** 2) > 1, step, start)[1]

    return jax.jit(lambda seed, n: jax.vmap(draw)(jax.random.split(jax.random.key(seed), n)),
                   static_argnums=1)  # fmt: skip


ROWS = [
    row(
        "sieve of 10^5 numbers",
        lambda tiny: (np.ones(50 if tiny else 100_000, bool),),
        sieve,
        numpy=sieve_numpy,
    ),
    row(
        "union-find, 10^5 nodes, 10^4 edges",
        lambda tiny: (np.arange(20 if tiny else 100_000, dtype="i4"),
                      integers(0, 20 if tiny else 100_000, 10 if tiny else 10_000, 2)),
        union_find,
        numpy=union_find_numpy,
    ),
    row(
        "insertion sort of 1000 numbers",
        lambda tiny: (normal(0, 9 if tiny else 1000),),
        insertion_sort,
        numpy=np.sort,
    ),
    row(
        "Fisher-Yates of 10^5 numbers",
        lambda tiny: (normal(0, 9 if tiny else 100_000), integers(0, 9 if tiny else 100_000,
                                                                  9 if tiny else 100_000)),
        shuffle,
        shuffle_torch,
        shuffle_numpy,
    ),
    row(
        "replay buffer, 10^4 x 16, 1000 steps with cond",
        lambda tiny: (normal(0, *((6, 3) if tiny else (10_000, 16))),
                      normal(1, 6 if tiny else 10_000),
                      normal(2, *((9, 3) if tiny else (1000, 16))),
                      normal(3, 9 if tiny else 1000) > 0),
        replay_buffer,
        numpy=replay_buffer_numpy,
    ),
    row(
        "ring buffer of 4096 samples, 10^4 steps",
        lambda tiny: (np.zeros(4 if tiny else 4096, "f4"), normal(0, 9 if tiny else 10_000)),
        ring_buffer,
    ),
    row(
        "attention with caches, 512 tokens of 64",
        lambda tiny: (np.zeros((4, 3) if tiny else (512, 64), "f4"),) * 2
        + (normal(0, *((4, 3, 3) if tiny else (512, 3, 64))),),
        kv_cache,
        numpy=kv_cache_numpy,
    ),
    row(
        "counts, sums, maxima by key, 10^4 steps",
        lambda tiny: (np.zeros(9 if tiny else 100_000, "i4"),
                      *[np.zeros(9 if tiny else 100_000, "f4")] * 2,
                      integers(0, 9 if tiny else 100_000, 9 if tiny else 10_000),
                      normal(1, 9 if tiny else 10_000)),
        histogram,
    ),
    row(
        "edit distance 300 x 300",
        lambda tiny: (integers(0, 4, 5 if tiny else 300), integers(1, 4, 4 if tiny else 300)),
        edit_distance,
    ),
    row(
        "knapsack, 100 items, capacity 10^4",
        lambda tiny: (1 + integers(0, 3 if tiny else 500, 4 if tiny else 100),
                      np.abs(normal(1, 4 if tiny else 100)),
                      np.zeros(20 if tiny else 10_000, "f4")),
        knapsack,
        numpy=knapsack_numpy,
    ),
    row(
        "Viterbi, 64 states, 500 steps",
        lambda tiny: (normal(0, *([3] * 2 if tiny else [64] * 2)),
                      normal(1, *((4, 3) if tiny else (500, 64)))),
        viterbi,
        numpy=viterbi_numpy,
    ),
    row(
        "Game of Life 256 x 256, 50 generations",
        lambda tiny: (integers(0, 2, *([6] * 2 if tiny else [256] * 2)),),
        life,
        numpy=life_numpy,
    ),
    row(
        "losses of a logistic model, 10^5 x 20",
        lambda tiny: (normal(0, 9 if tiny else 100_000, 20),
                      np.sign(normal(1, 9 if tiny else 100_000)), normal(2, 20)),
        logistic_loss,
        logistic_loss_torch,
        logistic_loss_numpy,
    ),
    row(
        "exp of row sums 10^5 x 10",
        lambda tiny: (normal(0, 9 if tiny else 100_000, 10),),
        row_sums,
        numpy=lambda x: np.exp(-(x * x).sum(1)),
    ),
    row(
        "HMC of a logistic regression, 500 x 10",
        lambda tiny: (np.zeros(10, "f4"), normal(0, 2 if tiny else 20, 10),
                      normal(1, 9 if tiny else 500, 10),
                      np.sign(normal(2, 9 if tiny else 500))),
        hamiltonian,
    ),
    row(
        "particle filter, 1000 particles, 100 steps",
        lambda tiny: (normal(0, 8 if tiny else 1000),
                      normal(1, *((3, 8) if tiny else (100, 1000))),
                      normal(2, 3 if tiny else 100)),
        particles,
        seen=lambda out: out[:5],  # rounding decides which particles survive: later means differ
    ),
    row("forest of 20 trees, 1000 examples", forest, decision_trees, numpy=forest_numpy),
    row(
        "binary search of 10^4 values in 10^5",
        lambda tiny: (np.sort(normal(0, 50 if tiny else 100_000)),
                      normal(1, 9 if tiny else 10_000)),
        binary_search,
        numpy=lambda table, values: np.searchsorted(table, values).astype("i4"),
    ),
    row("PINN, 5 gradient steps, 256 points", pinn_inputs, pinn),
    row(
        "Kepler's equation, 10^4 planets",
        lambda tiny: (np.abs(normal(0, 9 if tiny else 10_000)),
                      np.linspace(0, 0.6, 9 if tiny else 10_000, dtype="f4")),
        kepler,
    ),
    row(
        "GRU scan, state of 32, 500 steps",
        lambda tiny: (normal(0, 96, 16, scale=0.2), normal(1, 96, 32, scale=0.2), normal(2, 96),
                      np.zeros(32, "f4"), normal(3, 3 if tiny else 500, 16)),
        gru,
        numpy=gru_numpy,
    ),
    row("Kalman filter, state of 6, 500 steps", kalman_inputs, kalman, numpy=kalman_numpy),
    row(
        "rejection sampling of 10^4 points",
        lambda tiny: (3, 4 if tiny else 10_000),
        rejection,
    ),
]  # fmt: skip
