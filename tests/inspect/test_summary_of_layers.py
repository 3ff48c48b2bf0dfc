"""`tree.summary(model, *example)`: a line for each call of a layer."""

import pytest

import namoo
import namoo.numpy as jnp
from namoo import nn, tree
from namoo.module.layers import called_layers


class Net(namoo.Module):
    enc: nn.Linear
    body: nn.MLP
    head: nn.Linear

    def __init__(self, key):
        a, b, c = namoo.random.split(key, 3)
        self.enc = nn.Linear(16, 32, key=a)
        self.body = nn.MLP(32, 32, 64, 1, key=b)
        self.head = nn.Linear(32, 4, key=c)

    def __call__(self, x):
        return self.head(self.body(self.body(self.enc(x))))


class InLoop(namoo.Module):
    layer: nn.Linear

    def __call__(self, x):
        return namoo.lax.scan(lambda h, _: (self.layer(h), None), x, None, length=3)[0]


NET = Net(namoo.random.key(0))
MLP = [("body", "f32[32]"), ("body/layers/0", "f32[64]"), ("body/layers/1", "f32[32]")]


@pytest.mark.parametrize("x", [jnp.ones(16), namoo.ShapeDtypeStruct((16,), jnp.float32)])
def test_layers_in_the_order_of_their_calls(x):
    found = called_layers(NET, (x,))
    calls = [("", "f32[4]"), ("enc", "f32[32]"), *MLP, *MLP, ("head", "f32[4]")]
    assert [(layer.path, layer.output) for layer in found] == calls
    assert [layer.depth for layer in found] == [0, 1, 1, 2, 2, 1, 2, 2, 1]
    assert sum(layer.parameters for layer in found if layer.depth == 1 and not layer.repeated) == (
        found[0].parameters
    ) == tree.count(NET)  # fmt: skip
    measured = isinstance(x, namoo.Array)
    assert all((layer.seconds is not None) is measured for layer in found)


def test_operations_of_layers():
    with_flops = {layer.path: layer.flops for layer in called_layers(NET, (jnp.ones(16),))}
    assert with_flops["enc"] == 2 * 16 * 32 + 32
    assert with_flops["head"] == 2 * 32 * 4 + 4


def test_a_layer_in_a_loop_has_no_time():
    outer, inner, *_ = called_layers(
        InLoop(nn.Linear(4, 4, key=namoo.random.key(0))), (jnp.ones(4),)
    )
    assert outer.seconds is not None and inner.seconds is None
    assert (inner.path, inner.output) == ("layer", "f32[4]")


def test_classes_are_as_before():
    before = [vars(kind).get("__call__") for kind in (Net, nn.Linear, nn.MLP)]
    called_layers(NET, (jnp.ones(16),))
    with pytest.raises(ValueError, match="Linear"):
        called_layers(NET, (jnp.ones((3, 16)),))
    assert [vars(kind).get("__call__") for kind in (Net, nn.Linear, nn.MLP)] == before


@pytest.mark.parametrize(("depth", "lines"), [(None, 10), (1, 6), (0, 2)])
def test_the_table(depth, lines):
    table = tree.summary(NET, jnp.ones(16), depth=depth)
    assert len(table.splitlines()) == lines == len(table.rows)
    assert table.splitlines()[0].split() == [*"layer kind output parameters FLOPs time".split()]
    html = table._repr_html_()
    assert html.count("<tr>") == lines and "f32[4]" in html


def test_many_layers_are_no_retraces(caplog):
    layers = [nn.Linear(n, n + 1, key=namoo.random.key(n)) for n in range(2, 12)]
    tree.summary(nn.Sequential(layers), jnp.ones(2))
    assert not caplog.records
