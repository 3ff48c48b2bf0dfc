"""Mistakes with transformations and control flow."""

PARAMS = """
params = {"enc": {"w": jnp.ones((3, 2)), "b": jnp.ones(2)}, "dec": {"w": jnp.ones((2, 1))}}
"""

TRANSFORMS = {
    "grad of an array": (
        """
def loss(w):
    return (w - 1) ** 2
jax.grad(loss)(jnp.ones(3))
""",
        "(3,)",
        ".sum()",
    ),
    "grad of a pair": (
        PARAMS
        + """
def loss(params):
    return params["enc"]["w"].sum(), params
jax.grad(loss)(params)
""",
        "loss",
        "has_aux=True",
    ),
    "grad without aux": (
        """
def loss(w):
    return w.sum()
jax.value_and_grad(loss, has_aux=True)(jnp.ones(3))
""",
        "loss",
        "has_aux",
    ),
    "grad by an integer": (
        """
jax.grad(lambda x: x ** 2)(3)
""",
        "int32",
        "3.0",
    ),
    "grad by the wrong argument": (
        """
def loss(labels, w):
    return (w * labels).sum()
jax.grad(loss)(jnp.array([1, 2]), jnp.ones(2))
""",
        "labels",
        "argnums",
    ),
    "grad of a model with integers": (
        """
def loss(p):
    return (p["w"] * p["step"]).sum()
jax.grad(loss)({"w": jnp.ones(2), "step": jnp.array(3)})
""",
        "['step']",
        "allow_int=True",
    ),
    "grad argnums too large": (
        """
jax.grad(lambda x: x, argnums=1)(1.0)
""",
        "argnums",
        "1 ",
    ),
    "grad of nothing": (
        """
def loss(w):
    w.sum()
jax.grad(loss)(jnp.ones(3))
""",
        "loss",
        "return",
    ),
    "grad of while_loop": (
        """
def f(x):
    return lax.while_loop(lambda v: v < 9, lambda v: v * 2, x)
jax.grad(f)(1.0)
""",
        "while_loop",
        "lax.scan",
    ),
    "grad of fori_loop with traced bounds": (
        """
@jax.jit
def f(x, n):
    return lax.fori_loop(0, n, lambda i, v: v * 2, x)
jax.grad(f)(1.0, 3)
""",
        "fori_loop",
        "lax.scan",
    ),
    "grad called at once": (
        """
def loss(w):
    return w.sum()
w = jnp.ones(3)
jax.grad(loss(w))
""",
        "grad",
        "grad(f)(x)",
    ),
    "jit called at once": (
        PARAMS
        + """
jax.jit(params)
""",
        "jit",
        "callable",
    ),
    "vmap called at once": (
        """
def f(x):
    return x * 2
jax.vmap(f(jnp.ones(3)))
""",
        "vmap",
        "callable",
    ),
    "jit with both names": (
        """
def f(x, n):
    return x * n
jax.jit(f, static_argnames="m")(1.0, n=2)
""",
        "'m'",
        "n",
    ),
    "static list": (
        """
def f(x, sizes):
    return x.reshape(sizes)
jax.jit(f, static_argnames="sizes")(jnp.ones(4), [2, 2])
""",
        "sizes",
        "tuple",
    ),
    "static array": (
        """
def f(x, w):
    return x * w
jax.jit(f, static_argnums=1)(1.0, jnp.ones(3))
""",
        "w",
        "static",
    ),
    "set as an argument": (
        """
@jax.jit
def f(config):
    return 0
f({"names": {1, 2}})
""",
        "config['names']",
        "frozenset",
    ),
    "object as an argument": (
        """
class Config:
    def __init__(self):
        self.width = 3
@jax.jit
def f(x, config):
    return x * config.width
f(1.0, Config())
""",
        "config",
        "static",
    ),
    "jit of a missing argument": (
        """
@jax.jit
def f(x, y):
    return x + y
f(1.0)
""",
        "y",
        "f()",
    ),
    "jit of an unknown keyword": (
        """
@jax.jit
def f(x, scale):
    return x * scale
f(1.0, scael=2.0)
""",
        "scael",
        "scale",
    ),
    "vmap sizes": (
        """
def predict(params, x):
    return x @ params["w"]
jax.vmap(predict)({"w": jnp.ones((4, 2, 3))}, jnp.ones((5, 2)))
""",
        "params['w']",
        "None in in_axes",
    ),
    "vmap of a scalar": (
        """
jax.vmap(lambda x, s: x * s)(jnp.ones(3), 2.0)
""",
        "argument s",
        "None",
    ),
    "vmap axes count": (
        """
jax.vmap(lambda x, y: x + y, in_axes=(0,))(jnp.ones(3), jnp.ones(3))
""",
        "in_axes",
        "2",
    ),
    "vmap nothing mapped": (
        """
jax.vmap(lambda x: x, in_axes=None)(jnp.ones(3))
""",
        "in_axes",
        "None",
    ),
    "vmap axis too large": (
        """
jax.vmap(lambda x: x, in_axes=2)(jnp.ones((3, 2)))
""",
        "axis 2",
        "(3, 2)",
    ),
    "vmap in_axes tree": (
        PARAMS
        + """
jax.vmap(lambda p: p, in_axes=({"enc": 0},))(params)
""",
        "'dec'",
        "in_axes",
    ),
    "vmap out_axes": (
        """
jax.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(jnp.ones(3))
""",
        "out_axes",
        "prefix",
    ),
    "pmap too many": (
        """
jax.pmap(lambda x: x * 2)(jnp.ones((64, 2)))
""",
        "64",
        "device",
    ),
    "psum without an axis": (
        """
lax.psum(jnp.ones(3), "batch")
""",
        "batch",
        "axis_name='batch'",
    ),
    "scan carry grows": (
        """
def body(carry, x):
    return jnp.concatenate([carry, x[None]]), x
lax.scan(body, jnp.zeros(1), jnp.ones(4))
""",
        "float32[2]",
        "body",
    ),
    "scan carry type": (
        """
def body(carry, x):
    return carry + x, x
lax.scan(body, jnp.int32(0), jnp.ones(4))
""",
        "int32[]",
        "body",
    ),
    "scan without a pair": (
        """
def body(carry, x):
    return carry + x
lax.scan(body, 0.0, jnp.ones(4))
""",
        "body",
        "(carry, y)",
    ),
    "scan without a return": (
        """
def body(carry, x):
    carry + x
lax.scan(body, 0.0, jnp.ones(4))
""",
        "body",
        "return",
    ),
    "scan carry renamed": (
        PARAMS
        + """
def body(carry, x):
    return {"enc": carry["enc"], "decoder": carry["dec"]}, x
lax.scan(body, params, jnp.ones(4))
""",
        "'decoder'",
        "did you mean 'dec'",
    ),
    "scan lengths": (
        """
lax.scan(lambda c, x: (c, x), 0, {"a": jnp.ones(4), "b": jnp.ones(5)})
""",
        "xs['b']",
        "5",
    ),
    "scan over a number": (
        """
lax.scan(lambda c, x: (c + 1, x), 0, 10)
""",
        "xs",
        "length=10",
    ),
    "scan with one argument": (
        """
def body(carry):
    return carry, None
lax.scan(body, 0.0, jnp.ones(4))
""",
        "body",
        "f(carry, x)",
    ),
    "scan without xs": (
        """
lax.scan(lambda c, x: (c, x), 0.0)
""",
        "xs",
        "length=",
    ),
    "fori_loop without a return": (
        """
def body(i, state):
    state = {"x": state["x"] + 1}
lax.fori_loop(0, 10, body, {"x": 0.0})
""",
        "fori_loop",
        "return",
    ),
    "fori_loop type": (
        """
lax.fori_loop(0, 10, lambda i, v: v / 2, jnp.int32(1))
""",
        "fori_loop",
        "float32[]",
    ),
    "fori_loop arguments": (
        """
lax.fori_loop(0, 10, lambda v: v * 2, 1.0)
""",
        "fori_loop",
        "body(i, value)",
    ),
    "fori_loop bounds": (
        """
lax.fori_loop(0, 10.0, lambda i, v: v * 2, 1.0)
""",
        "float",
        "integer",
    ),
    "while_loop without a condition": (
        """
lax.while_loop(lambda c: None, lambda c: c * 2, 1.0)
""",
        "None",
        "boolean scalar",
    ),
    "debug.print without the value": (
        """
jax.debug.print("{y}", x=1.0)
""",
        "{y}",
        "y=value",
    ),
    "debug.print of too few": (
        """
jax.debug.print("{} {}", 1.0)
""",
        "more {}",
        "are 1",
    ),
    "policy of checkpoint": (
        """
jax.checkpoint(jnp.sin, policy="dots")(1.0)
""",
        "'dots'",
        "checkpoint_policies",
    ),
    "vectorize sizes": (
        """
jnp.vectorize(jnp.dot, signature="(n),(n)->()")(jnp.ones(3), jnp.ones(4))
""",
        "4 vs 3",
        "'n'",
    ),
    "linearize tangent": (
        """
y, f = jax.linearize(jnp.sin, 1.0)
f(jnp.ones(3))
""",
        "f32[3]",
        "f32[]",
    ),
    "coroutine": (
        """
@jax.jit
async def f(x):
    return x
""",
        "coroutine",
        "def",
    ),
    "while_loop condition": (
        """
lax.while_loop(lambda c: c + 1.0, lambda c: c * 2, 1.0)
""",
        "float32[]",
        "bool",
    ),
    "while_loop condition array": (
        """
lax.while_loop(lambda c: c < 9, lambda c: c * 2, jnp.ones(3))
""",
        "bool[3]",
        "jnp.any",
    ),
    "while_loop carry": (
        """
lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1].sum()), (0, jnp.ones(3)))
""",
        "[1]",
        "float32[3]",
    ),
    "cond branches": (
        """
def train(x):
    return x * 2.0
def evaluate(x):
    return x.astype(int)
lax.cond(True, train, evaluate, jnp.ones(2))
""",
        "evaluate",
        "int32[2]",
    ),
    "cond structures": (
        """
def train(x):
    return x, x
def evaluate(x):
    return x
lax.cond(True, train, evaluate, jnp.ones(2))
""",
        "evaluate",
        "tuple",
    ),
    "cond one branch returns nothing": (
        """
def train(x):
    return x
def evaluate(x):
    pass
lax.cond(True, train, evaluate, jnp.ones(2))
""",
        "evaluate",
        "None",
    ),
    "cond with values": (
        PARAMS
        + """
lax.cond(True, params, params)
""",
        "lax.cond",
        "jnp.where",
    ),
    "cond on an array": (
        """
lax.cond(jnp.ones(2) > 0, lambda: 1, lambda: 2)
""",
        "(2,)",
        "jnp.where",
    ),
    "cond without operands": (
        """
lax.cond(True, lambda x: x + 1, lambda x: x - 1)
""",
        "'x'",
        "*operands",
    ),
    "switch index": (
        """
lax.switch(1.0, [lambda: 1, lambda: 2])
""",
        "float",
        "integer",
    ),
    "switch branches": (
        """
lax.switch(1, [lambda x: x, lambda x: (x, x), lambda x: x], jnp.ones(2))
""",
        "branches[1]",
        "branches[0]",
    ),
    "custom_vjp without rules": (
        """
@jax.custom_vjp
def f(x):
    return x * 2
jax.grad(f)(1.0)
""",
        "f",
        "defvjp",
    ),
    "custom_vjp too few": (
        """
@jax.custom_vjp
def f(x, y):
    return x * y
f.defvjp(lambda x, y: (x * y, (x, y)), lambda res, g: (g * res[1],))
jax.grad(f)(2.0, 3.0)
""",
        "f",
        "2",
    ),
    "custom_vjp no tuple": (
        PARAMS
        + """
@jax.custom_vjp
def f(p):
    return p["enc"]["w"].sum()
f.defvjp(lambda p: (p["enc"]["w"].sum(), p), lambda res, g: res)
jax.grad(f)(params)
""",
        "f",
        "tuple",
    ),
    "custom_vjp forward no pair": (
        """
@jax.custom_vjp
def f(x):
    return x * 2
f.defvjp(lambda x: x * 2, lambda res, g: (g,))
jax.grad(f)(2.0)
""",
        "f",
        "pair",
    ),
    "custom_vjp wrong shape": (
        """
@jax.custom_vjp
def f(x):
    return x.sum()
f.defvjp(lambda x: (x.sum(), x), lambda res, g: (g,))
jax.grad(f)(jnp.ones(3))
""",
        "f",
        "float32[3]",
    ),
    "jvp tangents": (
        """
jax.jvp(jnp.sin, (1.0,), (jnp.ones(2),))
""",
        "tangent",
        "(2,)",
    ),
    "jvp without tuples": (
        """
jax.jvp(jnp.sin, jnp.ones(2), jnp.ones(2))
""",
        "tuple",
        "jvp",
    ),
    "vjp cotangent": (
        """
y, pullback = jax.vjp(lambda x: x.sum(), jnp.ones(3))
pullback(jnp.ones(3))
""",
        "float32[3]",
        "float32[]",
    ),
    "tree.map keys": (
        """
jax.tree.map(lambda p, g: p - g, {"w": 1.0, "b": 2.0}, {"w": 1.0, "bias": 2.0})
""",
        "'bias'",
        "did you mean",
    ),
    "pure_callback shape": (
        """
@jax.jit
def f(x):
    shape = jax.ShapeDtypeStruct((), "float32")
    return jax.pure_callback(lambda v: np.ones(3, np.float32), shape, x)
f(1.0)
""",
        "f32[3]",
        "f32[]",
    ),
    "pure_callback error": (
        """
def lookup(i):
    return {}[int(i)]
@jax.jit
def f(x):
    return jax.pure_callback(lookup, jax.ShapeDtypeStruct((), "float32"), x)
f(1)
""",
        "lookup",
        "1",
    ),
    "error in the user's function": (
        """
@jax.jit
def f(x):
    return x["weights"]
f({"weight": jnp.ones(3)})
""",
        "KeyError",
        "weights",
    ),
    "error inside of grad of jit": (
        """
@jax.jit
def loss(w):
    return (w @ jnp.ones((4, 2))).sum()
jax.grad(loss)(jnp.ones((3, 3)))
""",
        "(3, 3)",
        "(4, 2)",
    ),
    "donated": (
        """
step = jax.jit(lambda x: x + 1, donate_argnums=0)
x = jnp.ones(3)
y = step(x)
print(x + 1)
""",
        "deleted",
        "donate",
    ),
}
