"""Rows for convolutions."""

import numpy as np

from conformance.harness import Sample
from namoo.primitives.conv import conv_general_dilated_p
from namoo.primitives.conv_shapes import conv_dimension_numbers
from namoo.primitives.precision import DotAlgorithmPreset

rng = np.random.default_rng(5)


def array(*shape):
    return rng.normal(size=shape)


def row(x, w, layout, *, strides=None, padding=None, gaps=None, steps=None, **fields):
    n = x.ndim - 2
    params = {
        "window_strides": strides or (1,) * n,
        "padding": padding or ((0, 0),) * n,
        "lhs_dilation": gaps or (1,) * n,
        "rhs_dilation": steps or (1,) * n,
        "dimension_numbers": conv_dimension_numbers(x.shape, w.shape, layout),
        "feature_group_count": fields.pop("features", 1),
        "batch_group_count": fields.pop("batches", 1),
        "precision": fields.pop("precision", None),
        "preferred_element_type": fields.pop("preferred", None),
    }
    return Sample(conv_general_dilated_p, [x, w], params, **fields)


NCW, NWC = ("NCW", "OIW", "NCW"), ("NWC", "WIO", "NWC")
NHWC = ("NHWC", "HWIO", "NHWC")
narrow = ["float32", "float16", "bfloat16"]
integers = rng.integers(-100, 100, (2, 5, 3)).astype(np.int8)

SAMPLES = [
    row(array(2, 3), array(4, 3), None, name="no spatial axes"),
    row(array(2, 3, 5), array(4, 3, 2), NCW, name="plain", dtypes=narrow),
    row(array(2, 5, 3), array(2, 3, 4), NWC, name="features last", padding=((1, 2),)),
    row(array(1, 7, 2), array(3, 2, 2), NWC, name="strides", strides=(2,), padding=((1, 1),)),
    row(array(1, 4, 2), array(3, 2, 2), NWC, name="gaps", gaps=(2,), padding=((2, 1),)),
    row(array(1, 7, 2), array(3, 2, 2), NWC, name="wide kernel", steps=(2,), padding=((0, 1),)),
    row(
        array(1, 4, 5, 2),
        array(2, 3, 2, 3),
        NHWC,
        name="everything",
        strides=(2, 1),
        padding=((1, 2), (2, 0)),
        gaps=(2, 3),
        steps=(1, 2),
    ),
    row(array(1, 6, 2), array(2, 2, 2), NWC, name="negative padding", padding=((-1, -2),)),
    row(array(2, 5, 4), array(2, 2, 6), NWC, name="feature groups", features=2, strides=(2,)),
    row(array(1, 6, 6), array(2, 1, 6), NWC, name="one feature a group", features=6),
    row(array(4, 5, 2), array(2, 2, 6), NWC, name="batch groups", batches=2, padding=((1, 0),)),
    row(
        array(2, 3, 4, 5),
        array(3, 2, 2, 3),
        ("CNHW", "WHIO", "HNWC"),
        name="odd layouts",
        padding=((1, 0), (0, 1)),
        diff=(0, 1),
    ),
    row(array(1, 2, 3, 3, 2), array(2, 2, 2, 2, 1), None, name="three spatial axes"),
    row(array(1, 2, 2), array(4, 2, 2), NWC, name="kernel larger than input"),
    row(array(2, 5, 3) + 1j * array(2, 5, 3), array(2, 3, 2) - 1j, NWC, name="complex"),
    row(integers, integers[:, :3], NWC, name="int8 wraps", dtypes=()),
    row(
        integers,
        integers[:, :3],
        NWC,
        name="int8 to int32",
        preferred=np.dtype(np.int32),
        dtypes=(),
    ),
    row(integers > 0, integers[:, :3] > 0, NWC, name="booleans", dtypes=()),
    row(
        array(2, 5, 3),
        array(2, 3, 2),
        NWC,
        name="rounded operands",
        precision=DotAlgorithmPreset.BF16_BF16_F32,
        diff=(),
        dtypes=(),
    ),
]
