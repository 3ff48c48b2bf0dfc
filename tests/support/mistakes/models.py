"""Mistakes with layers, optimisers, losses, data, checkpoints and shardings."""

PARAMS = """
params = {"enc": {"w": jnp.ones((3, 2)), "b": jnp.ones(2)}, "dec": {"w": jnp.ones((2, 1))}}
"""
KEY = "\nkey = random.key(0)\n"

MODELS = {
    "update lacks a gradient": (
        PARAMS
        + """
tx = optim.adam(1e-3)
state = tx.init(params)
grads = {"enc": {"w": jnp.ones((3, 2))}, "dec": {"w": jnp.ones((2, 1))}}
tx.update(grads, state, params)
""",
        "the gradients lack ['enc']['b']",
        "tx.init",
    ),
    "update with an extra gradient": (
        PARAMS
        + """
tx = optim.adam(1e-3)
state = tx.init({"enc": params["enc"]})
tx.update(params, state)
""",
        "['dec']",
        "tx.init",
    ),
    "update with another shape": (
        PARAMS
        + """
tx = optim.adam(1e-3)
state = tx.init(params)
grads = jax.tree.map(lambda p: p.T, params)
tx.update(grads, state, params)
""",
        "['dec']['w']",
        "(2, 1)",
    ),
    "update before init": (
        PARAMS + "optim.adam(1e-3).update(params, None, params)",
        "None",
        "tx.init(params)",
    ),
    "update with the parameters for the state": (
        PARAMS + "optim.adam(1e-3).update(params, params)",
        "state",
        "tx.init(params)",
    ),
    "update without parameters": (
        PARAMS + "tx = optim.adamw(1e-3)\ntx.update(params, tx.init(params))",
        "params",
        "tx.update(gradients, state, params)",
    ),
    "apply_updates of the pair": (
        PARAMS
        + """
tx = optim.sgd(0.1)
optim.apply_updates(params, tx.update(params, tx.init(params)))
""",
        "apply_updates",
        "updates, state = tx.update",
    ),
    "adam lr": ("optim.adam(lr=1e-3)", "lr", "learning_rate"),
    "adam betas": ("optim.adam(1e-3, betas=(0.9, 0.99))", "betas", "b1"),
    "adam of params": (PARAMS + "optim.adam(params, 1e-3)", "learning_rate", "tx.init(params)"),
    "misspelt optimiser": ("optim.admw(1e-3)", "admw", "adamw"),
    "Adam class": ("optim.Adam(1e-3)", "Adam", "optim.adam"),
    "optimizer step": ("optim.adam(1e-3).step()", "step", "update"),
    "zero_grad": ("optim.adam(1e-3).zero_grad()", "zero_grad", "namoo.grad"),
    "chain of a list": (
        "optim.chain([optim.clip(1.0), optim.adam(1e-3)])",
        "got [",
        "optim.chain(a, b)",
    ),
    "schedule keyword": ("optim.cosine_decay_schedule(0.1, steps=10)", "steps", "decay_steps"),
    "clip keyword": ("optim.clip_by_global_norm(norm=1.0)", "norm", "max_norm"),
    "cross entropy with integers": (
        "optim.softmax_cross_entropy(jnp.ones((4, 10)), jnp.array([1, 2, 3, 4]))",
        "(4,)",
        "softmax_cross_entropy_with_integer_labels",
    ),
    "integer cross entropy with one-hot": (
        "optim.softmax_cross_entropy_with_integer_labels(jnp.ones((4, 10)), jnp.ones((4, 10)))",
        "float32",
        "softmax_cross_entropy",
    ),
    "loss shapes": ("optim.l2_loss(jnp.ones((4, 1)), jnp.ones(4))", "(4, 1)", "(4,)"),
    "linear without a key": ("nn.Linear(3, 4)", "key", "key=random.key(0)"),
    "linear with a key by position": (KEY + "nn.Linear(3, 4, key)", "'key'", "key=key"),
    "linear bias": (KEY + "nn.Linear(3, 4, bias=False, key=key)", "bias", "use_bias"),
    "linear with a seed": ("nn.Linear(3, 4, key=0)", "0", "random.key(0)"),
    "linear with features": (KEY + "nn.Linear(3, features=4, key=key)", "features", "out_features"),
    "linear shapes": (KEY + "nn.Linear(3, 4, key=key)(jnp.ones(5))", "Linear", "3"),
    "linear batch": (KEY + "nn.Linear(3, 4, key=key)(jnp.ones((8, 3)))", "(8, 3)", "vmap"),
    "linear in a model": (
        KEY
        + """
class Net(jax.Module):
    encoder: nn.Linear
    decoder: nn.Linear
    def __call__(self, x):
        return self.decoder(self.encoder(x))
net = Net(nn.Linear(3, 4, key=key), nn.Linear(5, 2, key=key))
net(jnp.ones(3))
""",
        "decoder",
        "5",
    ),
    "mlp shapes": (KEY + "nn.MLP(3, 2, 8, 2, key=key)(jnp.ones(4))", "layers[0]", "3"),
    "sequential of layers": (
        KEY + "nn.Sequential(nn.Linear(3, 4, key=key), nn.Linear(4, 2, key=key))",
        "Sequential",
        "Sequential([a, b])",
    ),
    "sequential shapes": (
        KEY + "nn.Sequential([nn.Linear(3, 4, key=key), nn.Linear(5, 2, key=key)])(jnp.ones(3))",
        "layers[1]",
        "5",
    ),
    "conv channels": (
        KEY + "nn.Conv2d(3, 8, 3, key=key)(jnp.ones((32, 32, 3)))",
        "(32, 32, 3)",
        "channels first",
    ),
    "conv batch": (
        KEY + "nn.Conv2d(3, 8, 3, key=key)(jnp.ones((16, 3, 32, 32)))",
        "(16, 3, 32, 32)",
        "vmap",
    ),
    "conv without a kernel": (KEY + "nn.Conv2d(3, 8, key=key)", "kernel_size", "Conv2d"),
    "embedding of floats": (
        KEY + "nn.Embedding(10, 4, key=key)(jnp.array(1.0))",
        "float32",
        "integer",
    ),
    "embedding of many": (KEY + "nn.Embedding(10, 4, key=key)(jnp.array([1, 2]))", "(2,)", "vmap"),
    "layer norm shape": ("nn.LayerNorm(4)(jnp.ones((2, 5)))", "(2, 5)", "4"),
    "dropout without a key": ("nn.Dropout(0.5)(jnp.ones(3))", "key", "inference"),
    "batch norm without state": (
        "nn.BatchNorm(3, axis_name='batch')(jnp.ones(3))",
        "BatchNorm() missing",
        "BatchNorm(x, state",
    ),
    "lstm state": (
        KEY + "nn.LSTMCell(3, 4, key=key)(jnp.ones(3), jnp.ones(4))",
        "LSTMCell",
        "pair",
    ),
    "misspelt layer": ("nn.Liner(3, 4)", "Liner", "Linear"),
    "Dense": ("nn.Dense(3)", "Dense", "nn.Linear"),
    "ReLU": ("nn.ReLU()", "ReLU", "nn.relu"),
    "CrossEntropyLoss": ("nn.CrossEntropyLoss()", "CrossEntropyLoss", "softmax_cross_entropy"),
    "nn.Module": ("class Net(nn.Module):\n    pass", "Module", "namoo.Module"),
    "module attribute": (
        KEY
        + """
layer = nn.Linear(3, 4, key=key)
layer.weight = jnp.ones((4, 3))
""",
        "Linear.weight",
        "model.replace(weight=",
    ),
    "module misspelt attribute": (KEY + "nn.Linear(3, 4, key=key).wieght", "wieght", "weight"),
    "model parameters": (KEY + "nn.Linear(3, 4, key=key).parameters()", "parameters", "tree"),
    "model state_dict": (
        KEY + "nn.Linear(3, 4, key=key).state_dict()",
        "state_dict",
        "checkpoints",
    ),
    "model train": (KEY + "nn.Linear(3, 4, key=key).train()", "train", "inference_mode"),
    "model to a device": (KEY + "nn.Linear(3, 4, key=key).to('cuda')", "to", "device_put"),
    "filter_jit": ("jax.filter_jit(lambda x: x)", "filter_jit", "jit takes models"),
    "filter_grad": ("jax.filter_grad(lambda x: x)", "filter_grad", "grad takes models"),
    "no_grad": ("with jax.no_grad():\n    pass", "no_grad", "lax.stop_gradient"),
    "Module field missing": (
        """
class Net(jax.Module):
    width: int
    depth: int
Net(3)
""",
        "depth",
        "Net",
    ),
    "load another structure": (
        PARAMS
        + """
checkpoints.save("params.ckpt", {"enc": params["enc"]})
checkpoints.load("params.ckpt", like=params)
""",
        "'dec'",
        "missing=",
    ),
    "load another shape": (
        PARAMS
        + """
checkpoints.save("shapes.ckpt", params)
like = {**params, "dec": {"w": jnp.ones((2, 5))}}
checkpoints.load("shapes.ckpt", like=like)
""",
        "['dec']['w']",
        "float32[2,5]",
    ),
    "load a missing file": ("checkpoints.load('nowhere.ckpt')", "nowhere.ckpt", "checkpoint"),
    "load a broken file": (
        "open('broken.ckpt', 'w').write('hello')\ncheckpoints.load('broken.ckpt')",
        "broken.ckpt",
        "checkpoint",
    ),
    "save with arguments swapped": (
        PARAMS + "checkpoints.save(params, 'params.ckpt')",
        "path",
        "save(path, tree)",
    ),
    "loader lengths": (
        "data.Loader((np.ones((10, 3)), np.ones(9)), 2)",
        "9",
        "10",
    ),
    "loader shuffle without a key": (
        "data.Loader(np.ones(10), 2, shuffle=True)",
        "key",
        "random.key(0)",
    ),
    "loader keyword": ("data.Loader(np.ones(10), batchsize=2)", "batchsize", "batch_size"),
    "loader num_workers": ("data.Loader(np.ones(10), 2, num_workers=2)", "num_workers", "workers"),
    "mesh devices": ("jax.make_mesh((64,), ('data',))", "64", "device"),
    "mesh names": ("jax.make_mesh((1, 1), ('data',))", "('data',)", "2"),
    "sharding axis": (
        """
mesh = jax.make_mesh((1,), ("data",))
jax.device_put(jnp.ones(4), jax.NamedSharding(mesh, jax.P("model")))
""",
        "model",
        "data",
    ),
    "sharding rank": (
        """
mesh = jax.make_mesh((1,), ("data",))
jax.device_put(jnp.ones(4), jax.NamedSharding(mesh, jax.P(None, "data")))
""",
        "(4,)",
        "P(None,)",
    ),
    "sharding division": (
        """
jax.cpu_devices(4)
mesh = jax.make_mesh((4,), ("data",))
jax.device_put(jnp.ones(6), jax.NamedSharding(mesh, jax.P("data")))
""",
        "6",
        "4",
    ),
    "sharding of a string": ("jax.device_put(jnp.ones(4), 'data')", "'data'", "a sharding"),
    "shard_map specs": (
        """
mesh = jax.make_mesh((1,), ("data",))
jax.shard_map(lambda x, y: x, mesh=mesh, in_specs=(jax.P("data"),), out_specs=jax.P("data"))(
    jnp.ones(4), jnp.ones(4)
)
""",
        "in_specs",
        "2",
    ),
    "TrainState": (
        PARAMS + "train.TrainState.create(params=params)",
        "tx",
        "create",
    ),
}
