"""Train one model in four ways: on one device, and data-parallel in three ways.

Each device gets its share of every batch, and the gradients are averaged. With `pmap` and
`shard_map` the program does this explicitly; with `jit` only the batch is sharded, and XLA does it.

    python examples/data_parallel.py                                        # 8 simulated devices
    python -m namoo.launch -n 4 --cpu-devices 2 examples/data_parallel.py   # in 4 processes

On a machine with GPUs it uses these; on several machines, start it with Slurm's srun or mpirun.
"""

import argparse
from pathlib import Path

import numpy as np
from mnist_mlp import SIZES, batch_loss, init_mlp, load_digits

import namoo as jax
from namoo import P, distributed, lax, random, train
from namoo.devices.distributed.clusters import detect
from namoo.sharding import AxisType, NamedSharding

HERE = Path(__file__).parent


def step(params, images, labels):
    """Take one training step on a batch; return the new parameters and the loss."""
    loss, grads = jax.value_and_grad(batch_loss)(params, images, labels)
    return jax.tree.map(lambda p, g: p - 0.2 * g, params, grads), loss


def mean_loss(params, images, labels):
    return lax.pmean(batch_loss(params, images, labels), "data")


def step_of_share(params, images, labels):
    """Take the same step on one device's share of the batch."""
    loss, grads = jax.value_and_grad(mean_loss)(params, images, labels)
    # Under shard_map, they are already summed over devices; under pmap, they are this device's.
    grads = lax.pmean(grads, "data")
    return jax.tree.map(lambda p, g: p - 0.2 * g, params, grads), loss


def run(train_step, params, batches, place):
    """Return the losses of all steps."""
    losses = []
    for batch in batches:
        params, loss = train_step(params, *map(place, batch))
        losses.append(loss)
    return np.array([float(loss) for loss in losses])


def on_one_device(params, batches):
    return run(jax.jit(step), params, batches, lambda x: x)


def with_pmap(params, batches):
    """Train with `pmap`: arrays have one more axis, that of this process' devices."""
    mapped = jax.pmap(step_of_share, "data", in_axes=(None, 0, 0), out_axes=None)
    shape = (jax.local_device_count(), -1)
    return run(mapped, params, batches, lambda x: share(x).reshape(*shape, *x.shape[1:]))


def with_jit(params, batches):
    """Train with `jit`: the program is that of one device; only the data are sharded."""
    whole, place = layouts()
    compiled = jax.jit(step, out_shardings=whole)
    return run(compiled, jax.device_put(params, whole), batches, place)


def with_shard_map(params, batches):
    """Train with `shard_map`: each device runs the function on its shard; `P()` is replicated."""
    whole, place = layouts()
    specs = {"in_specs": (P(), P("data"), P("data")), "out_specs": (P(), P())}
    mapped = jax.jit(jax.shard_map(step_of_share, mesh=whole.mesh, **specs))
    return run(mapped, jax.device_put(params, whole), batches, place)


def layouts():
    """Return the shardings that replicate an array, and that split its first axis."""
    mesh = jax.make_mesh((jax.device_count(),), ("data",), (AxisType.Auto,))
    split = NamedSharding(mesh, P("data"))
    put = jax.make_array_from_process_local_data
    return NamedSharding(mesh, P()), lambda x: put(split, share(x), x.shape)


def share(x):  # this process' share of a batch
    return np.split(x, jax.process_count())[jax.process_index()]


def main(steps=200, batch_size=256, seed=0, *, picture):
    """Train in each way, and draw the losses, which are the same."""
    (images, labels), _ = load_digits()
    key, init_key = random.split(random.PRNGKey(seed))
    chosen = np.asarray(random.randint(key, (steps, batch_size), 0, len(images)))
    batches = [(images[i], labels[i]) for i in chosen]
    params = jax.device_get(init_mlp(init_key, SIZES))
    spellings = [on_one_device, with_pmap, with_jit, with_shard_map]
    losses = {spelling.__name__: spelling(params, batches) for spelling in spellings}
    difference = max(abs(each - losses["on_one_device"]).max() for each in losses.values())
    if jax.process_index() == 0:
        print(f"{jax.device_count()} devices, {jax.process_count()} processes")
        for name, each in losses.items():
            print(f"{name}: loss {each[0]:.4f} to {each[-1]:.4f}")
        curves = {f"{name}/loss": list(each) for name, each in losses.items()}
        train.plot(curves, picture, title="Digits: the loss in four spellings")
        print(f"largest difference: {difference:.7f}; {picture}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train over many devices, in three spellings.")
    parser.add_argument("--short", action="store_true", help="20 steps")
    parser.add_argument("--out", default=HERE / "out" / "data_parallel.svg", help="the picture")
    args = parser.parse_args()
    jax.config.update("jax_engine", "xla")
    if detect():
        distributed.initialize()
    elif jax.device_count() == 1:
        jax.cpu_devices(8)
    main(**({"steps": 20} if args.short else {}), picture=args.out)
