"""Convolutions against JAX, and against a loop over every product."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import namoo
from jax_oracle import OURS, THEIRS, agree, agree_with_vjp, fail_alike
from namoo.primitives import conv
from namoo.primitives.conv import conv_general_dilated
from namoo.primitives.conv_shapes import ConvDimensionNumbers

rng = np.random.default_rng(0)
NHWC = ("NHWC", "HWIO", "NHWC")


def array(*shape):
    return rng.normal(size=shape).astype(np.float32)


@st.composite
def convolutions(draw):
    """Shapes and parameters that fit together, with the axes in any order."""
    n = draw(st.integers(0, 2))
    features, batches = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (1, 2), (3, 1)]))
    many = lambda low, high: draw(st.tuples(*[st.integers(low, high)] * n))  # noqa: E731
    sizes, kernel, gaps, steps = many(1, 5), many(1, 3), many(1, 3), many(1, 3)
    strides = draw(st.sampled_from([(1,) * n, many(1, 3)]))
    padding = tuple(zip(many(-1, 3), many(-1, 3), strict=True))
    spread = [(s - 1) * g + 1 + sum(p) for s, g, p in zip(sizes, gaps, padding, strict=True)]
    padding = tuple(p if size >= 0 else (0, 0) for p, size in zip(padding, spread, strict=True))
    i, o = draw(st.integers(1, 2)), draw(st.integers(1, 2)) * features * batches
    specs = [draw(st.permutations(range(n + 2))) for _ in range(3)]
    lhs = (draw(st.integers(1, 2)) * batches, i * features, *sizes)

    def placed(shape, spec):
        out = [0] * len(shape)
        for size, place in zip(shape, spec, strict=True):
            out[place] = size
        return tuple(out)

    params = {
        "window_strides": strides,
        "padding": padding,
        "lhs_dilation": gaps,
        "rhs_dilation": steps,
        "feature_group_count": features,
        "batch_group_count": batches,
    }
    return placed(lhs, specs[0]), placed((o, i, *kernel), specs[1]), tuple(specs), params


def by_loop(x, w, specs, params):
    """The definition: for every place, kernel element and feature, one product."""
    x, w = x.transpose(specs[0]), w.transpose(specs[1])
    gaps, steps, strides = params["lhs_dilation"], params["rhs_dilation"], params["window_strides"]
    features, batches = params["feature_group_count"], params["batch_group_count"]
    sizes, kernel = x.shape[2:], w.shape[2:]
    places = [
        max(0, ((s - 1) * g + 1 + sum(p) - (k - 1) * d - 1) // stride + 1)
        for s, k, g, d, stride, p in zip(
            sizes, kernel, gaps, steps, strides, params["padding"], strict=True
        )
    ]
    batch, outs = x.shape[0] // batches, w.shape[0]
    out = np.zeros((batch, outs, *places))
    for o in range(outs):
        group = o // (outs // (features * batches))
        inputs = x[group * batch : (group + 1) * batch] if batches > 1 else x
        start = group * w.shape[1] if features > 1 else 0
        for place in itertools.product(*map(range, places)):
            for k in itertools.product(*map(range, kernel)):
                at = [
                    p * stride + i * step - low
                    for p, stride, i, step, (low, _) in zip(
                        place, strides, k, steps, params["padding"], strict=True
                    )
                ]
                if all(
                    a % g == 0 and 0 <= a // g < s for a, g, s in zip(at, gaps, sizes, strict=True)
                ):
                    index = tuple(a // g for a, g in zip(at, gaps, strict=True))
                    row = inputs[:, start : start + w.shape[1], *index]
                    out[:, o, *place] += row @ w[o, :, *k]
    return out.transpose(np.argsort(specs[2]))


def run(x, w, specs, params):
    return conv_general_dilated(x, w, dimension_numbers=ConvDimensionNumbers(*specs), **params)


@given(convolutions())
@settings(max_examples=150)
def test_any_convolution(case):
    x, w, specs, params = case
    x, w = array(*x), array(*w)
    found = np.asarray(run(x, w, specs, params))
    np.testing.assert_allclose(found, by_loop(x, w, specs, params), rtol=1e-4, atol=1e-4)


@given(convolutions())
@settings(max_examples=60)
def test_derivatives_by_the_inner_product(case):
    """⟨c, dy⟩ in one direction is ⟨pullback(c), dx⟩: a convolution is linear in each operand."""
    x, w, specs, params = case
    x, w = array(*x), array(*w)
    out, pullback = namoo.vjp(lambda x, w: run(x, w, specs, params), x, w)
    ct, dx, dw = array(*out.shape), array(*x.shape), array(*w.shape)
    cts = [np.asarray(c) for c in pullback(ct)]
    pairs = [
        (cts[0], dx, by_loop(dx, w, specs, params)),
        (cts[1], dw, by_loop(x, dw, specs, params)),
    ]
    for pulled, direction, change in pairs:
        assert pulled.shape == direction.shape
        np.testing.assert_allclose(
            (pulled * direction).sum(), (ct * change).sum(), rtol=1e-3, atol=1e-3
        )


@given(convolutions(), st.sampled_from([(0, None), (None, 0), (0, 0), (-1, 1), (None, -1)]))
@settings(max_examples=60)
def test_batched(case, axes):
    x, w, specs, params = case
    x = array(*x) if axes[0] is None else np.stack([array(*x) for _ in range(2)], axes[0])
    w = array(*w) if axes[1] is None else np.stack([array(*w) for _ in range(2)], axes[1])
    out = np.asarray(namoo.vmap(lambda x, w: run(x, w, specs, params), axes)(x, w))
    for i in range(2):
        xs = x if axes[0] is None else x.take(i, axes[0])
        ws = w if axes[1] is None else w.take(i, axes[1])
        np.testing.assert_allclose(out[i], by_loop(xs, ws, specs, params), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("padding", ["SAME", "VALID", "SAME_LOWER", [(1, 2), (0, 3)]])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
def test_against_jax(padding, strides):
    x, w = array(2, 8, 9, 3), array(2, 3, 3, 4)
    options = {"rhs_dilation": (2, 1), "dimension_numbers": NHWC}
    agree_with_vjp(
        lambda lib, x, w: lib.lax.conv_general_dilated(x, w, strides, padding, **options), x, w
    )
    agree(lambda lib: lib.lax.conv_general_dilated_patches(x, (2, 3), strides, padding, **options))


def test_many_windows_in_parts(monkeypatch):
    """A large convolution is computed a few examples at a time."""
    x, w = array(5, 8, 8, 3), array(3, 3, 3, 4)
    whole = namoo.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC)
    monkeypatch.setattr("namoo.primitives.conv._CHUNK_BYTES", 20_000)
    parts = namoo.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC)
    np.testing.assert_allclose(parts, whole, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", "bool int8 uint8 int32 float16 bfloat16 complex64".split())
def test_types(dtype):
    def small(*shape):
        return rng.integers(0, 3, shape).astype(np.int8).astype(dtype)

    x, w = small(2, 5, 4, 3), small(2, 2, 3, 4)
    agree(lambda lib: lib.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC))
    for preferred in ("int32", "float32", "complex64", "int8"):
        program = lambda lib, p=preferred: lib.eval_shape(  # noqa: E731
            lambda x, w: lib.lax.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=NHWC, preferred_element_type=p
            ),
            x,
            w,
        )
        try:
            wanted = program(THEIRS).dtype
        except TypeError:
            fail_alike(program)
        else:
            assert program(OURS).dtype == wanted


def test_wider_results_have_derivatives():
    """Where JAX has no rule, because its convolution takes operands of one type only."""
    x, w = array(1, 4, 2).astype("bfloat16"), array(2, 2, 3).astype("bfloat16")
    layout = ("NWC", "WIO", "NWC")

    def total(x, w, **options):
        return namoo.lax.conv_general_dilated(
            x, w, (1,), "VALID", dimension_numbers=layout, **options
        ).sum()

    wide = namoo.grad(lambda x, w: total(x, w, preferred_element_type="float32"), (0, 1))(x, w)
    plain = namoo.grad(total, (0, 1))(x.astype(np.float32), w.astype(np.float32))
    for a, b in zip(wide, plain, strict=True):
        assert a.dtype == "bfloat16"
        np.testing.assert_allclose(a.astype(np.float32), b, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(0, 0), (0, 0)], [(1, 2), (0, 1)]])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3), (3, 1)])
def test_transposed(padding, strides):
    x = array(2, 5, 4, 3)
    for swapped, consistent in [(False, False), (True, True)]:
        w = array(2, 3, 4, 3) if swapped else array(2, 3, 3, 4)
        agree(
            lambda lib, w=w, s=swapped, c=consistent: lib.lax.conv_transpose(
                x, w, strides, padding, (2, 1), transpose_kernel=s, use_consistent_padding=c
            )
        )


def test_transposed_is_the_derivative():
    x, w = array(2, 8, 3), array(3, 3, 5)
    layout = ("NWC", "WIO", "NWC")
    forward = lambda x: namoo.lax.conv_general_dilated(  # noqa: E731
        x, w, (2,), [(1, 1)], dimension_numbers=layout
    )
    out, pullback = namoo.vjp(forward, x)
    back = namoo.lax.conv_transpose(
        out, w, (2,), [(1, 1)], transpose_kernel=True, use_consistent_padding=True
    )
    (ct,) = pullback(out)
    np.testing.assert_allclose(back, np.asarray(ct)[:, : back.shape[1]], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layout", [NHWC, ("NHWC", "HWIO", "NCHW"), ("NHWC", "OHIW", "WNHC")])
def test_unshared_kernels(layout):
    x = array(2, 5, 6, 3)
    sizes = {"H": 5, "W": 3, "I": 18, "O": 4}
    w = array(*(sizes[letter] for letter in layout[1]))
    agree_with_vjp(
        lambda lib, x, w: lib.lax.conv_general_dilated_local(
            x, w, (1, 2), "SAME", (2, 3), dimension_numbers=layout
        ),
        x,
        w,
    )


def test_shorter_names():
    x, w = array(2, 3, 5, 6), array(4, 3, 2, 2)
    agree(lambda lib: lib.lax.conv(x, w, (1, 2), "SAME"))
    agree(
        lambda lib: lib.lax.conv_with_general_padding(
            x, w, (1, 1), [(1, 0), (2, 1)], (2, 1), (1, 2)
        )
    )
    agree(lambda lib: lib.lax.conv_general_dilated(array(2, 3) * 0, array(4, 3), (), "SAME"))


X, W = array(2, 3, 8, 9), array(4, 3, 2, 3)
ERRORS = {
    "strides": lambda conv: conv(X, W, (1,), "SAME"),
    "padding word": lambda conv: conv(X, W, (1, 1), "FULL"),
    "padding rank": lambda conv: conv(X, W, (1, 1), [(0, 0)]),
    "padding shape": lambda conv: conv(X, W, (1, 1), ((1, 1), (1,))),
    "no padding": lambda conv: conv(X, W, (1, 1), None),
    "stride zero": lambda conv: conv(X, W, (0, 1), [(0, 0), (0, 0)]),
    "features": lambda conv: conv(X, W[:, :2], (1, 1), "SAME"),
    "rank": lambda conv: conv(X[0], W, (1, 1), "SAME"),
    "types": lambda conv: conv(X, W.astype(np.float16), (1, 1), "SAME"),
    "feature groups": lambda conv: conv(X, W, (1, 1), "SAME", feature_group_count=2),
    "no feature groups": lambda conv: conv(X, W, (1, 1), "SAME", feature_group_count=0),
    "batch groups": lambda conv: conv(X, W, (1, 1), "SAME", batch_group_count=3),
    "outputs in groups": lambda conv: conv(X, W[:, :1], (1, 1), "SAME", feature_group_count=3),
    "outputs in batch groups": lambda conv: conv(X, W[:3], (1, 1), "SAME", batch_group_count=2),
    "kernel steps": lambda conv: conv(X, W, (1, 1), "SAME", rhs_dilation=(0, 1)),
    "gaps": lambda conv: conv(X, W, (1, 1), [(0, 0), (0, 0)], lhs_dilation=(0, 2)),
    "number of gaps": lambda conv: conv(X, W, (1, 1), "SAME", lhs_dilation=(1,)),
    "gaps and a word": lambda conv: conv(X, W, (1, 1), "SAME", lhs_dilation=(2, 2)),
    "cut away": lambda conv: conv(X, W, (1, 1), [(-1, 0), (0, -20)]),
    "narrow result": lambda conv: conv(X, W, (1, 1), "SAME", preferred_element_type="bfloat16"),
    **{
        f"layout {layout}": lambda conv, layout=layout: conv(
            X, W, (1, 1), "SAME", dimension_numbers=layout
        )
        for layout in [
            ("NHW", "HWIO", "NHWC"),
            ("NHXC", "HWIO", "NHWC"),
            ("NHHC", "HWIO", "NHWC"),
            ("XHWC", "HWIO", "NHWC"),
            "NHWC",
            (1, 2, 3),
            ("NCHW", "OIHW"),
        ]
    },
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    fail_alike(lambda lib: ERRORS[name](lib.lax.conv_general_dilated))


def test_shapes_and_layouts():
    calls = [
        ("conv_dimension_numbers", ((2, 3, 8, 9), (4, 3, 2, 3), NHWC)),
        ("conv_dimension_numbers", ((2, 3, 8, 9), (4, 3, 2, 3), None)),
        ("conv_general_permutations", (("NHWC", "HWIO", "NCWH"),)),
        ("padtype_to_pads", ((8, 9), (3, 2), (2, 3), "SAME")),
        ("padtype_to_pads", ((8, 9), (4, 2), (1, 1), "same_lower")),
        ("conv_shape_tuple", ((2, 3, 8, 9), (4, 3, 2, 3), (1, 1), [(0, 0), (1, 1)])),
        ("conv_shape_tuple", ((4, 3, 8), (4, 3, 2), (2,), "SAME", 2)),
        ("conv_general_shape_tuple", ((2, 8, 9, 3), (2, 3, 3, 4), (1, 2), "SAME", NHWC)),
        ("conv_transpose_shape_tuple", ((2, 8, 9, 3), (2, 3, 3, 4), (1, 2), "SAME", NHWC)),
        ("conv_transpose_shape_tuple", ((2, 8, 9, 3), (2, 3, 3, 4), (1, 2), "VALID", NHWC)),
    ]
    for name, args in calls:
        found, wanted = (getattr(lib.lax, name)(*args) for lib in (OURS, THEIRS))
        assert tuple(found) == tuple(wanted), name
    arrays = np.array((8, 9)), np.array((3, 2)), np.array((2, 3))
    assert all(type(n) is int for pair in OURS.lax.padtype_to_pads(*arrays, "SAME") for n in pair)
    for args in [((8,), (3,), (1,), "FULL"), ((8,), (3,), (1,), 3)]:
        fail_alike(lambda lib, args=args: lib.lax.padtype_to_pads(*args))


def test_gradient_of_a_strided_convolution_skips_the_zeros(monkeypatch):
    """The cotangent with gaps is never written out."""
    x, w = array(1, 9, 9, 2), array(3, 3, 2, 2)
    pad, gaps = conv._pad, []
    monkeypatch.setattr(conv, "_pad", lambda x, pads, gap: gaps.append(gap) or pad(x, pads, gap))

    def forward(x):
        return namoo.lax.conv_general_dilated(x, w, (3, 2), "SAME", dimension_numbers=NHWC)

    out, pullback = namoo.vjp(forward, x)
    gaps.clear()
    pullback(np.ones_like(out))
    assert len(gaps) == 3 * 2 and set(gaps) == {(1, 1)}
