"""Functions defined in `__main__`, pickled for another process.

`python main_functions.py save FILE` writes the functions and their results, and `load FILE` reads
them in a process that has imported nothing else, and compares.
"""

import pickle
import sys


def save(path):
    import cloudpickle
    import numpy as np

    import namoo
    import namoo.numpy as jnp
    from namoo import config, lax, nn

    @namoo.custom_jvp
    def clip(x):
        return jnp.clip(x, -1.0, 1.0)

    clip.defjvps(lambda t, out, x: 3.0 * t)

    @namoo.custom_vjp
    def halved(x):
        return x

    halved.defvjp(lambda x: (x, None), lambda residual, ct: (ct / 2.0,))

    def plain(x):
        return namoo.numpy.tanh(x) + lax.exp(x) * nn.relu(x)

    @namoo.jit
    def compiled(x):
        return plain(x) + clip(x) * halved(x)

    def mentions_settings(x):
        return x * (2.0 if config.enable_x64 else 3.0)

    def looped(x):
        return lax.fori_loop(0, 3, lambda i, c: lax.cond(i > 1, jnp.sin, compiled, c), x)

    mlp = nn.MLP(3, 1, 4, 1, key=namoo.random.key(0))
    x = np.linspace(-2.0, 2.0, 6, dtype=np.float32).reshape(2, 3)
    functions = {
        "plain": plain,
        "jit": compiled,
        "jit of a lambda": namoo.jit(lambda x: compiled(x) + 1.0),
        "static": namoo.jit(lambda x, n=2: x * n, static_argnames="n"),
        "custom_jvp": clip,
        "custom_vjp": halved,
        "grad": namoo.grad(lambda x: compiled(x).sum()),
        "jit of grad": namoo.jit(namoo.grad(lambda x: looped(x).sum())),
        "vmap": namoo.vmap(lambda row: namoo.numpy.cumsum(row) + compiled(row)),
        "checkpoint": namoo.checkpoint(compiled),
        "vectorize": jnp.vectorize(compiled),
        "settings": mentions_settings,
        "loop": looped,
        "vjp": namoo.vjp(compiled, x)[1],
        "linearize": namoo.linearize(namoo.jit(plain), x)[1],
        "Compiled": compiled.lower(x).compile(),
        "Compiled, donated": namoo.jit(lambda x: x + 1.0, donate_argnums=0).lower(x).compile(),
        "program": namoo.core.jaxpr_as_fun(namoo.make_jaxpr(looped)(x)),
        "module": namoo.vmap(mlp),
        "module, jit": namoo.jit(namoo.vmap(mlp)),
        "primitive": namoo.lax.sin_p.bind,
    }
    outputs = {name: np.asarray(namoo.tree.leaves(f(x))[0]) for name, f in functions.items()}
    gradients = {
        name: np.asarray(namoo.grad(lambda x, f=f: namoo.tree.leaves(f(x))[0].sum())(x))
        for name, f in functions.items()
        if not name.startswith("Compiled")
    }
    with open(path, "wb") as file:
        cloudpickle.dump((x, functions, outputs, gradients, namoo, jnp, lax), file)


def load(path):
    with open(path, "rb") as file:
        x, functions, outputs, gradients, namoo, jnp, lax = pickle.load(file)
    import numpy as np

    assert namoo is sys.modules["namoo"] and jnp is namoo.numpy and lax is namoo.lax
    for name, f in functions.items():
        found = namoo.tree.leaves(f(x))[0]
        np.testing.assert_array_equal(found, outputs[name], name)
        if name in gradients:
            total = lambda x, f=f: namoo.tree.leaves(f(x))[0].sum()  # noqa: E731
            for gradient in (namoo.grad(total), namoo.jit(namoo.grad(total))):
                np.testing.assert_allclose(gradient(x), gradients[name], 1e-6, 1e-6, err_msg=name)
    print("equal:", *functions, sep="\n")


if __name__ == "__main__":
    {"save": save, "load": load}[sys.argv[1]](sys.argv[2])
