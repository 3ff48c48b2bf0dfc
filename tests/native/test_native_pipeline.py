"""The passes of the native engine: their list, the verifier between them, the text of each."""

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo._base.config import config
from namoo.core.jaxpr import eval_jaxpr
from namoo.engines.native import pipeline
from namoo.engines.native.engine import native
from namoo.engines.native.graph.node import COMPUTE, DOT, Node
from namoo.engines.native.pipeline import NAMES, PASSES, Source, result_of
from namoo.engines.native.verify import InvalidProgram, run_passes, verify


def array(*shape):
    return jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)


def train_step(weights, x):
    def loss(weights):
        y = x
        for w, b in weights:
            y = jnp.tanh(y @ w + b)
        return (y * y).mean()

    value, gradients = namoo.value_and_grad(loss)(weights)
    return value, namoo.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)


def scanned(x, xs):
    def body(carry, x):
        carry = jnp.sin(carry @ x.T) @ x
        return carry.at[1].add(1.0), carry.sum()

    return lax.scan(body, x, xs)


def branches(x, n):
    x = lax.while_loop(lambda c: c[1] < n, lambda c: (c[0] * 2, c[1] + 1), (x, 0))[0]
    return lax.cond(x.sum() > 0, jnp.sort, jnp.cumsum, x)


PROGRAMS = {
    "layers": (train_step, [(array(20, 20), array(20))] * 5, array(8, 20)),
    "loops": (scanned, array(70, 80), array(3, 70, 80)),
    "branches": (branches, array(300), jnp.int32(4)),
    "transposed products": (lambda x, y: ((x @ y).T * 2).sum(0), array(40, 30), array(30, 20)),
    "several results": (lambda x: [x, x, x.argmax(1), x[::-1].sum(0), 3.0], array(90, 70)),
    "sorted": (lambda x: [jnp.sort(x), lax.top_k(x, 3)], array(9, 700)),
    "windows": (
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 1), "SAME").at[0].set(1.0),
        array(30, 30),
    ),
    "in place": (
        lambda x, u: lax.dynamic_update_slice(jnp.sin(x), u, (1, 2)) + 1,
        array(20, 30),
        array(3, 4),
    ),
}


@pytest.fixture
def verified():
    config.update("verify", True)
    yield
    config.update("verify", False)


def program(name):
    fun, *args = PROGRAMS[name]
    return namoo.make_jaxpr(fun)(*args), namoo.tree.leaves(args)


def test_passes_are_a_list_of_named_functions():
    assert NAMES == (
        "build", "simplify", "fuse", "schedule", "allocate", "emit", "optimise", "link",
    )  # fmt: skip
    assert all(getattr(pipeline, step.__name__) is step for step in PASSES)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_pass_keeps_what_the_verifier_checks(name, verified, monkeypatch):
    monkeypatch.setenv("NAMOO_CACHE", "off")
    closed, args = program(name)
    got = native.compile(closed)([np.asarray(x) for x in args])
    want = eval_jaxpr(closed.jaxpr, closed.consts, *args)
    for x, y in zip(got, want, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_passes_leave_what_they_are_given_as_it_is(name):
    """No pass changes interned nodes or a graph: the texts are the same after later passes."""
    closed, _ = program(name)
    results = [Source(closed)]
    texts = []
    for step in PASSES[:6]:
        results.append(step(results[-1]))
        texts.append(results[-1].text())
    assert [result.text() for result in results[1:]] == texts
    verify(results[1])
    verify(results[2])


def test_the_text_after_each_pass():
    f = namoo.jit(lambda x, y: jnp.sin(x @ y).T.sum(0))
    compiled = f.lower(array(8, 9), array(9, 10)).compile()
    texts = {name: compiled.as_text(name) for name in NAMES}
    assert "dot" in texts["build"] and "reduce" in texts["build"]
    assert texts["fuse"].startswith("group 0: kernel") and "group" in texts["schedule"]
    assert "[out 0]" in texts["allocate"] and "define" in texts["emit"]
    assert "entry" in texts["optimise"] and "entry" in texts["link"]
    assert compiled.as_text("fused") == texts["allocate"]
    assert compiled.as_text("llvm") == texts["emit"]
    assert compiled.as_text("assembly") == texts["optimise"]
    with pytest.raises(ValueError, match="'build'.*not 'bilud'"):
        compiled.as_text("bilud")


def test_inspection_runs_each_pass_once(monkeypatch):
    counts = dict.fromkeys(NAMES, 0)

    def counted(step):
        def run(value):
            counts[step.__name__] += 1
            return step(value)

        run.__name__ = step.__name__
        return run

    f = namoo.jit(lambda x: jnp.sin(x) * 2)
    compiled = f.lower(array(8)).compile()
    monkeypatch.setattr(pipeline, "PASSES", tuple(map(counted, PASSES)))
    for name in ("fuse", "allocate", "emit", "fuse", "llvm", "fused"):
        compiled.as_text(name)
    compiled.cost_analysis()
    assert [counts[name] for name in NAMES] == [1] * 6 + [0] * 2


def test_a_transposition_of_a_product_becomes_a_product():
    closed, _ = program("transposed products")
    built = result_of("build", Source(closed))
    (before,) = [n for n in built.nodes if n.kind is COMPUTE and n.key[0] == "transpose"]
    simplified = run_passes([pipeline.simplify], built)
    assert before.kind is COMPUTE and simplified.nodes[before.number].kind is DOT


def test_operations_that_nothing_uses_are_not_counted():
    def costs(fun):
        compiled = namoo.jit(fun).lower(array(64, 48), array(48, 32)).compile()
        return (compiled.cost_analysis() or {})["flops"]

    assert costs(lambda x, y: (x @ y).T) == costs(lambda x, y: x @ y) == 2 * 64 * 48 * 32


def broken_order(graph):
    graph.nodes[0], graph.nodes[-1] = graph.nodes[-1], graph.nodes[0]
    for number, node in enumerate(graph.nodes):
        node.number = number


def broken_operand(graph):
    stranger = Node(COMPUTE, (), np.dtype(np.float32), fn=lambda k, index: None, key=("stranger",))
    stranger.number = 0
    graph.nodes[-1].operands = (stranger,)


def broken_shape(graph):
    (node,) = [n for n in graph.nodes if n.kind is DOT]
    node.shape = (1, *node.shape[1:])
    node.structure = graph.intern_structure(node.kind, node.key, node.shape, node.dtype)


def broken_structure(graph):
    graph.nodes[-1].structure += 1


def broken_dtype(graph):
    (node,) = [n for n in graph.nodes if n.kind is DOT]
    node.dtype = np.dtype(np.float64)
    node.structure = graph.intern_structure(node.kind, node.key, node.shape, node.dtype)


def lost_root(fusion):
    del fusion.home[next(iter(fusion.signatures))]


def unstored(fusion):
    for group in fusion.groups:
        group.stored = []


def not_waiting(fusion):
    fusion.groups[-1].ancestors = 0


def too_early(schedule):
    schedule.steps.reverse()


def twice(schedule):
    schedule.steps.append(schedule.steps[0])


def overlapping(plan):
    arena = [node for node, (kind, _) in plan.buffers.items() if kind == "arena"]
    assert len(arena) > 1
    for node in arena:
        plan.buffers[node] = ("arena", 0)


def beyond(plan):
    plan.arena_size = 64


BREAKS = [
    ("build", broken_order, "not before it"),
    ("build", broken_operand, "not before it"),
    ("build", broken_shape, "shape of its product"),
    ("build", broken_structure, "structure"),
    ("build", broken_dtype, "different types"),
    ("fuse", lost_root, "not at home"),
    ("fuse", unstored, "not stored"),
    ("fuse", not_waiting, "does not wait"),
    ("schedule", too_early, "before groups that it reads"),
    ("schedule", twice, "runs twice"),
    ("allocate", overlapping, "overlap"),
    ("allocate", beyond, "beyond the arena"),
]


@pytest.mark.parametrize("name, broken, message", BREAKS, ids=[b.__name__ for _, b, _ in BREAKS])
def test_the_verifier_finds_a_broken_program(name, broken, message, verified):
    def fun(x, y):
        z = x @ y
        return (jnp.sort(z, 0) + jnp.sort(z.sum(0)) @ jnp.cumsum(jnp.sin(z), 1).T).sum()

    closed = namoo.make_jaxpr(fun)(array(40, 40), array(40, 40))
    result = result_of(name, Source(closed))

    def breaks(result):
        broken(result)
        return result

    with pytest.raises(InvalidProgram, match=message) as caught:
        run_passes([breaks], result)
    assert "'breaks'" in caught.value.__notes__[0]
    config.update("verify", False)
    run_passes([lambda result: result], result)


def test_nobody_pays_for_the_verifier_who_does_not_ask(monkeypatch):
    assert not config.verify
    monkeypatch.setattr("namoo.engines.native.verify.verify", lambda value: pytest.fail("verified"))
    result_of("allocate", Source(program("layers")[0]))


@pytest.mark.parametrize(
    ("name", "program", "inlined"),
    [
        ("one kernel", lambda x: jnp.sin(x) * 2.0, True),
        ("two kernels", lambda x: jnp.tanh(x[:20] @ x.reshape(20, 15)).sum(), True),
        ("called by a loop", lambda x: lax.fori_loop(0, 9, lambda i, x: jnp.sort(x * i), x), False),
        ("several threads", lambda x: jnp.sin(jnp.broadcast_to(x, (3000, 300)) * 2.0), False),
    ],
)
def test_a_kernel_with_one_caller_is_inlined(name, program, inlined):
    x = array(300)
    closed = namoo.make_jaxpr(program)(x)
    module = result_of("emit", Source(closed))
    (part,) = module.parts(1)
    headers = [line for line in part.text.split("\n") if line.startswith("define") and "@k" in line]
    assert len(headers) == len(module.kernels) > 0
    assert all(("alwaysinline" in line) == ("internal" in line) == inlined for line in headers)
    found, wanted = namoo.jit(program)(x), eval_jaxpr(closed.jaxpr, closed.consts, x)[0]
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)
