"""Mistakes with traced values: Python asks them for a value that they do not have yet."""

# Name: program, what the message must name, and the remedy that it must give.
TRACED = {
    "if": (
        """
@jax.jit
def absolute(x):
    if x > 0:
        return x
    return -x
absolute(1.0)
""",
        "argument x",
        "jnp.where",
    ),
    "if on a flag": (
        """
@jax.jit
def scaled(x, normalize):
    if normalize:
        x = x / x.sum()
    return x
scaled(jnp.ones(3), True)
""",
        "argument normalize",
        "static_argnames='normalize'",
    ),
    "if on a leaf": (
        """
@jax.jit
def loss(params):
    if params["w"][0].sum() > 0:
        return 1.0
    return 0.0
loss({"w": [jnp.ones(2)]})
""",
        "params['w'][0]",
        "lax.cond",
    ),
    "if under vmap": (
        """
def absolute(x):
    return x if x > 0 else -x
jax.vmap(absolute)(jnp.ones(3))
""",
        "vmap",
        "jnp.where",
    ),
    "if in a scan body": (
        """
def body(carry, x):
    if carry > 3:
        carry = carry - 1
    return carry + x, x
lax.scan(body, 0.0, jnp.ones(3))
""",
        "scan",
        "jnp.where",
    ),
    "while": (
        """
@jax.jit
def collatz(n):
    steps = 0
    while n > 1:
        n = jnp.where(n % 2 == 0, n // 2, 3 * n + 1)
        steps += 1
    return steps
collatz(6)
""",
        "argument n",
        "lax.while_loop",
    ),
    "assert": (
        """
@jax.jit
def f(x):
    assert x.sum() > 0, "the sum must be positive"
    return jnp.log(x)
f(jnp.ones(3))
""",
        "argument x",
        "checkify",
    ),
    "and": (
        """
@jax.jit
def inside(x):
    return x > 0 and x < 1
inside(0.5)
""",
        "argument x",
        "&",
    ),
    "chained comparison": (
        """
@jax.jit
def inside(x):
    return 0 < x < 1
inside(0.5)
""",
        "argument x",
        "&",
    ),
    "not": (
        """
@jax.jit
def outside(x):
    return not x > 0
outside(0.5)
""",
        "argument x",
        "~",
    ),
    "max of two": (
        """
@jax.jit
def larger(x, y):
    return max(x, y)
larger(1.0, 2.0)
""",
        "argument",
        "jnp.maximum",
    ),
    "min of two": (
        """
@jax.jit
def smaller(x, y):
    return min(x, y)
smaller(1.0, 2.0)
""",
        "argument",
        "jnp.minimum",
    ),
    "any of a list": (
        """
@jax.jit
def f(x):
    return any(v > 0 for v in x)
f(jnp.ones(3))
""",
        "argument x",
        "jnp.any",
    ),
    "sorted": (
        """
@jax.jit
def f(x):
    return sorted(x)
f(jnp.ones(3))
""",
        "argument x",
        "jnp.sort",
    ),
    "in a list": (
        """
@jax.jit
def f(x):
    return 1 if x in [1, 2] else 0
f(3)
""",
        "argument x",
        "jnp.isin",
    ),
    "math.sqrt": (
        """
@jax.jit
def f(x):
    return math.sqrt(x)
f(2.0)
""",
        "argument x",
        "jnp.sqrt",
    ),
    "math.floor": (
        """
@jax.jit
def f(x):
    return math.floor(x)
f(2.0)
""",
        "x",
        "jnp.floor",
    ),
    "float": (
        """
@jax.jit
def f(x):
    return float(x) * 2
f(2.0)
""",
        "argument x",
        "x.astype(float)",
    ),
    "int": (
        """
@jax.jit
def f(x):
    return int(x) * 2
f(2.0)
""",
        "argument x",
        "x.astype(int)",
    ),
    "item": (
        """
@jax.jit
def f(x):
    return x.sum().item()
f(jnp.ones(3))
""",
        "item()",
        "outside",
    ),
    "tolist": (
        """
@jax.jit
def f(x):
    return x.tolist()
f(jnp.ones(3))
""",
        "tolist()",
        "outside",
    ),
    "format": (
        """
@jax.jit
def f(x):
    print(f"loss {x:.2f}")
    return x
f(jnp.float32(2.0))
""",
        "argument x",
        "debug.print",
    ),
    "percent format": (
        """
@jax.jit
def f(x):
    print("loss %.2f" % x)
    return x
f(2.0)
""",
        "argument x",
        "debug.print",
    ),
    "key of a dict": (
        """
table = {0: "a", 1: "b"}
@jax.jit
def f(i):
    return table[i]
f(1)
""",
        "If i is a setting",
        "static_argnames='i'",
    ),
    "index of a list": (
        """
layers = [1.0, 2.0, 3.0]
@jax.jit
def f(i):
    return layers[i]
f(1)
""",
        "argument i",
        "jnp.array",
    ),
    "range": (
        """
@jax.jit
def f(x, steps):
    for _ in range(steps):
        x = x * 2
    return x
f(1.0, 3)
""",
        "argument steps",
        "lax.fori_loop",
    ),
    "shape": (
        """
@jax.jit
def f(n):
    return jnp.zeros(n)
f(3)
""",
        "argument n",
        "static_argnames='n'",
    ),
    "shape tuple": (
        """
@jax.jit
def f(x, n):
    return x.reshape(n, -1)
f(jnp.ones(6), 3)
""",
        "argument n",
        "static_argnames='n'",
    ),
    "arange": (
        """
@jax.jit
def f(n):
    return jnp.arange(n)
f(3)
""",
        "argument n",
        "static_argnames='n'",
    ),
    "linspace": (
        """
@jax.jit
def f(n):
    return jnp.linspace(0, 1, n)
f(3)
""",
        "argument n",
        "static_argnames='n'",
    ),
    "one_hot classes": (
        """
@jax.jit
def f(labels, classes):
    return jax.nn.one_hot(labels, classes)
f(jnp.array([0, 1]), 3)
""",
        "argument classes",
        "static_argnames='classes'",
    ),
    "slice": (
        """
@jax.jit
def f(x, n):
    return x[:n]
f(jnp.ones(5), 3)
""",
        "argument n",
        "lax.dynamic_slice",
    ),
    "axis": (
        """
@jax.jit
def f(x, axis):
    return x.sum(axis)
f(jnp.ones((2, 3)), 1)
""",
        "argument axis",
        "static_argnames='axis'",
    ),
    "random shape": (
        """
@jax.jit
def noise(key, n):
    return random.normal(key, (n,))
noise(random.key(0), 3)
""",
        "argument n",
        "static_argnames='n'",
    ),
    "width of a pad": (
        """
@jax.jit
def f(x, n):
    return jnp.pad(x, n)
f(jnp.ones(3), 2)
""",
        "argument n",
        "static_argnames='n'",
    ),
    "NumPy function": (
        """
@jax.jit
def f(x):
    return np.sin(x)
f(1.0)
""",
        "argument x",
        "jnp.sin",
    ),
    "np.asarray": (
        """
@jax.jit
def f(x):
    return np.asarray(x)
f(jnp.ones(3))
""",
        "argument x",
        "jnp.asarray",
    ),
    "np.array of a list": (
        """
@jax.jit
def f(x, y):
    return np.array([x, y])
f(1.0, 2.0)
""",
        "argument x",
        "jnp.stack",
    ),
    "assignment to a NumPy array": (
        """
@jax.jit
def f(x):
    out = np.zeros(3)
    out[0] = x
    return out
f(1.0)
""",
        "argument x",
        ".at[0].set",
    ),
    "mask": (
        """
@jax.jit
def positive(x):
    return x[x > 0]
positive(jnp.ones(3))
""",
        "argument x",
        "jnp.where(mask",
    ),
    "nonzero": (
        """
@jax.jit
def f(x):
    return jnp.nonzero(x)
f(jnp.ones(3))
""",
        "jnp.nonzero",
        "size=",
    ),
    "unique": (
        """
@jax.jit
def f(x):
    return jnp.unique(x)
f(jnp.ones(3))
""",
        "jnp.unique",
        "size=",
    ),
    "where with one argument": (
        """
@jax.jit
def f(x):
    return jnp.where(x > 0)
f(jnp.ones(3))
""",
        "jnp.where",
        "size=",
    ),
    "repeat": (
        """
@jax.jit
def f(x, n):
    return jnp.repeat(x, n)
f(jnp.ones(3), jnp.array([1, 2, 3]))
""",
        "jnp.repeat",
        "total_repeat_length",
    ),
    "bincount": (
        """
@jax.jit
def f(x):
    return jnp.bincount(x)
f(jnp.array([0, 1]))
""",
        "jnp.bincount",
        "length=",
    ),
    "leak by a list": (
        """
history = []
@jax.jit
def step(x):
    history.append(x * 2)
    return x
step(1.0)
print(history[0] + 1)
""",
        "step",
        "return",
    ),
    "leak by self": (
        """
class Model:
    def step(self, x):
        self.hidden = jnp.tanh(x)
        return self.hidden
model = Model()
jax.jit(model.step)(1.0)
jnp.exp(model.hidden)
""",
        "step",
        "return",
    ),
    "leak from scan": (
        """
seen = []
def body(carry, x):
    seen.append(carry * x)
    return carry, x
lax.scan(body, 1.0, jnp.ones(3))
print(seen[0] + 1)
""",
        "body",
        "return",
    ),
    "leak from grad": (
        """
seen = []
def loss(w):
    h = w ** 2
    seen.append(h)
    return h.sum()
jax.grad(loss)(jnp.ones(3))
print(float(seen[0].sum()))
""",
        "made by grad",
        "has_aux",
    ),
    "length of a loop": (
        """
@jax.jit
def f(x, n):
    return lax.scan(lambda c, _: (c * 2, None), x, None, length=n)
f(1.0, 3)
""",
        "argument n",
        "lax.fori_loop",
    ),
    "static but traced outside": (
        """
@jax.jit
def outer(x, n):
    return inner(x, n)
def power(x, n):
    return x ** n
inner = jax.jit(power, static_argnames="n")
outer(2.0, 3)
""",
        "argument n",
        "outer",
    ),
    "sharding of a traced value": (
        """
@jax.jit
def spread(x):
    return jax.device_put(2 * x, x.sharding)
spread(jnp.ones(4))
""",
        "sharding",
        "typeof(x).sharding",
    ),
}
