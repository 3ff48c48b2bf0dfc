"""Convolutions as products: windows are not copied (no im2col), they are axes with strides.

y[n, o, p] = Σ x[n, c, p·stride + k·step] · w[o, c, k] over c and k, with x padded.  Vectors run
along the output features if these are contiguous in the result, or along its last spatial axis.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from namoo.engines.native import tuning
from namoo.engines.native.ir import ops
from namoo.engines.native.ir.types import elem_of
from namoo.engines.native.kernels.matmul.matrix_layout import (
    Axis,
    Product,
    contiguous,
    length,
    parts,
    split,
)


class Window(NamedTuple):
    """One spatial axis: sizes of input, kernel and result, and how they are related."""

    size: int
    kernel: int
    out: int
    stride: int
    gap: int
    """Input dilation: the distance of elements, with zeros in between."""
    step: int
    """Kernel dilation: the distance of elements."""
    low: int
    """Zeros before the input."""

    @property
    def needed(self) -> int:
        """Length of the padded input, as far as it is read."""
        return (self.out - 1) * self.stride + (self.kernel - 1) * self.step + 1


class Spread(NamedTuple):
    """One spatial axis of a dilated input, as one without dilation: see `Convolution.spread`."""

    window: Window
    classes: int
    first: int
    """The position of the first result among those that are computed."""


def _sparse(window: Window) -> bool:
    return window.gap > 1 and window.stride == 1 and window.step == 1


def _spread(window: Window) -> Spread:
    """With gap g, result p = g·v + low - r sees the elements r, r + g, … of the kernel, and these
    meet the inputs v, v + 1, …, for r from 0 to g - 1."""
    if not _sparse(window):
        return Spread(window, 1, 0)
    gap, low = window.gap, window.low
    begin = -(low // gap)
    end = (window.out - 1 - low + gap - 1) // gap
    taps = -(-window.kernel // gap)
    plain = Window(window.size, taps, end - begin + 1, 1, 1, 1, -begin)
    return Spread(plain, gap, gap - 1 - low - gap * begin)


class Convolution:
    """A convolution of two nodes, in the layouts they have."""

    def __init__(self, emit: Any, x, w, params: dict[str, Any]):
        self.emit = emit
        self.lhs, self.rhs, self.out = params["dimension_numbers"]
        self.shape = tuple(emit.avals[0].shape)
        self.feature_groups = params["feature_group_count"]
        self.batch_groups = params["batch_group_count"]
        self.groups = self.feature_groups * self.batch_groups
        self.windows = [
            Window(x.shape[i], w.shape[j], self.shape[k], stride, gap, step, low)
            for i, j, k, stride, gap, step, (low, _) in zip(
                self.lhs[2:], self.rhs[2:], self.out[2:], params["window_strides"],
                params["lhs_dilation"], params["rhs_dilation"], params["padding"], strict=True,
            )
        ]  # fmt: skip
        self.batch = x.shape[self.lhs[0]] // self.batch_groups
        self.features = w.shape[self.rhs[1]]
        self.outs = w.shape[self.rhs[0]] // self.groups
        self.x, self.w = x, w

    def node(self):
        """The result."""
        emit = self.emit
        if 0 in self.shape or 0 in self.x.shape or 0 in self.w.shape:
            return emit.filled(0, self.x.dtype, self.shape)
        floats, few = self.x.elem in ("f32", "f64"), self.groups > 1 and self.outs < 4
        if floats and not few and any(_sparse(w) for w in self.windows):
            return self.spread()
        x = self.padded(self.windows)
        places = math.prod(w.out for w in self.windows)
        terms = self.features * math.prod(w.kernel for w in self.windows)
        lanes = 64 // self.x.dtype.itemsize
        if not floats:
            return self.sums_of_products(x)
        rows = self.groups * self.batch * places
        by_features = rows * -(-self.outs // lanes) * terms
        if self.out[1] != len(self.shape) - 1:
            by_features += rows * self.outs * tuning.SCATTERED_STORE
        choices = [(by_features, -1)]
        for i, (axis, window) in enumerate(zip(self.lhs[2:], self.windows, strict=True)):
            if axis == len(x.shape) - 1 and window.stride == 1:
                others = self.groups * self.batch * places // window.out
                cost = others * -(-window.out // lanes) * self.outs * terms
                if self.out[2 + i] != len(self.shape) - 1:
                    cost += rows * self.outs * tuning.SCATTERED_STORE
                choices.append((cost, i))
        cost, chosen = min(choices)
        # A vector with few lanes in use is slower than sums along other axes.
        if cost > 6 * rows * self.outs * terms / lanes:
            return self.sums_of_products(x)
        return self.product(x, chosen)

    def padded(self, windows: list[Window]):
        """The input with its padding, as far as it is read."""
        x, emit, spatial = self.x, self.emit, self.lhs[2:]
        if all(w.gap == 1 and w.low == 0 and w.needed == w.size for w in windows):
            return x
        if all(w.gap == 1 and w.low <= 0 and w.needed - w.low <= w.size for w in windows):
            zero = None
        else:
            zero = emit.literal(0, x.dtype)
        shape = list(x.shape)
        for axis, window in zip(spatial, windows, strict=True):
            shape[axis] = window.needed
        axes = tuple(zip(spatial, windows, strict=True))
        key = tuple((axis, w.low, w.gap, w.needed) for axis, w in axes)

        def element(k, index, x, zero=None):
            at, inside = list(index), None
            for axis, window in axes:
                i = index[axis] - window.low
                checks = [k.within(i, 0, (window.size - 1) * window.gap + 1)]
                if window.gap > 1:
                    between = k.integer(k.clamp(i, 0, (window.size - 1) * window.gap) % window.gap)
                    checks.append(k.f.compare("eq", between, ops.number(between, 0)))
                for check in checks:
                    if check is not None:
                        inside = check if inside is None else k.f.and_(inside, check)
                at[axis] = k.clamp(i, 0, (window.size - 1) * window.gap) // window.gap
            value = k.at(x, at)
            return value if inside is None else k.choose(inside, value, k.at(zero, []))

        operands = [x] if zero is None else [x, zero]
        return emit.compute(
            operands, element, shape=tuple(shape), dtype=x.dtype, key=("windows", key), cost=2
        )

    def product(self, x, chosen: int):
        """By a kernel whose vectors run along the output features, or a spatial axis."""
        return self._product(x, *self.kernel(chosen), self.windows, self.shape, chosen)

    def _product(self, x, w, w_strides, windows, shape, chosen: int, classes=()):
        """`classes` are axes of the kernel and of the result; see `spread`."""
        xs, ys = contiguous(x.shape), contiguous(shape)
        n, c, *space = (xs[i] for i in self.lhs)
        o, i, *taps = w_strides
        y_n, y_o, *places = (ys[j] for j in self.out)
        by_batch = self.batch_groups > 1
        group = n * self.batch if by_batch else c * self.features
        axes = {
            "group": (self.groups, group, o * self.outs, y_o * self.outs),
            "batch": (self.batch, n, 0, y_n),
            "outs": (self.outs, 0, o, y_o),
            "features": (self.features, c, i, 0),
        }
        for d, (count, stride) in enumerate(classes):
            axes[f"class{d}"] = (count, 0, stride, places[d])
            places[d] *= count
        for d, window in enumerate(windows):
            axes[f"place{d}"] = (window.out, space[d] * window.stride, 0, places[d])
            axes[f"tap{d}"] = (window.kernel, space[d] * window.step, taps[d], 0)
        spatial = range(len(windows))
        inner = ["features", *(f"tap{d}" for d in spatial)]
        if chosen < 0:
            operands = (x, w)
            columns, batch = "outs", ["group", *(f"class{d}" for d in range(len(classes)))]
            rows = ["batch", *(f"place{d}" for d in spatial)]
            strided = {name: Axis(*numbers) for name, numbers in axes.items()}
        else:
            operands = (w, x)
            columns, rows = f"place{chosen}", ["outs"]
            batch = ["group", "batch", *(f"place{d}" for d in spatial if d != chosen)]
            strided = {
                name: Axis(size, right, left, out)
                for name, (size, left, right, out) in axes.items()
            }

        def ordered(names, side):
            return sorted((strided[n] for n in names), key=lambda a: -getattr(a, side))

        parts = ordered(batch, "out"), ordered(rows, "out"), strided[columns]
        return self._in_parts(operands, (*parts, ordered(inner, "right")), shape)

    def spread(self):
        """A convolution of a dilated input, without multiplying by the zeros in its gaps.

        Results that are `gap` apart are products with the same elements of the kernel; the other
        elements meet zeros.  So the kernel is divided into `gap` classes of elements, one for each
        class of results.
        """
        emit, w, rank = self.emit, self.w, len(self.windows)
        cuts = [_spread(window) for window in self.windows]
        windows = [c.window for c in cuts]
        counts = [c.classes for c in cuts]
        taps = [c.window.kernel for c in cuts]
        zero = emit.literal(0, w.dtype)

        def element(k, index, w, zero):
            at: list[Any] = [None] * len(w.shape)
            at[self.rhs[1]], at[self.rhs[0]] = index[2 * rank :]
            inside = None
            for d, window in enumerate(self.windows):
                i = index[rank + d] * counts[d] + (counts[d] - 1 - index[d])
                check = k.within(i, 0, window.kernel)
                if check is not None:
                    inside = check if inside is None else k.f.and_(inside, check)
                at[self.rhs[2 + d]] = k.clamp(i, 0, window.kernel - 1)
            value = k.at(w, at)
            return value if inside is None else k.choose(inside, value, k.at(zero, []))

        shape = (*counts, *taps, self.features, self.outs * self.groups)
        kernel = emit.compute(
            [w, zero], element, shape=shape, dtype=w.dtype, cost=2,
            key=("classes", self.rhs, tuple(counts)),
        )  # fmt: skip
        strides = contiguous(shape)
        wide = list(self.shape)
        for axis, count, window in zip(self.out[2:], counts, windows, strict=True):
            wide[axis] = count * window.out
        out = self._product(
            self.padded(windows), kernel, [strides[-1], strides[-2], *strides[rank:-2]], windows,
            tuple(wide), -1, list(zip(counts, strides[:rank], strict=True)),
        )  # fmt: skip
        first = [0] * len(wide)
        for axis, cut in zip(self.out[2:], cuts, strict=True):
            first[axis] = cut.first
        if out.shape == self.shape and not any(first):
            return out
        return emit.reindex(
            out,
            lambda index: [i + f for i, f in zip(index, first, strict=True)],
            key=("from", tuple(first)),
            shape=self.shape,
        )

    def kernel(self, chosen: int):
        """The kernel in memory and its strides, for the axis that becomes the vector."""
        w, emit = self.w, self.emit
        strides = contiguous(w.shape)
        if chosen >= 0 or strides[self.rhs[0]] == 1 or self.outs == 1:
            return w, [strides[i] for i in self.rhs]
        order = sorted(range(len(w.shape)), key=lambda i: (i == self.rhs[0], i))
        places = [order.index(i) for i in range(len(order))]
        w = emit.reindex(
            w,
            lambda index: [index[i] for i in places],
            key=("transpose", tuple(order)),
            shape=tuple(w.shape[i] for i in order),
        )
        strides = contiguous(w.shape)
        return w, [strides[places[i]] for i in self.rhs]

    def _in_parts(self, operands, axes, shape):
        """A product; its sums are split if they are few and long."""
        emit, elem = self.emit, self.x.elem
        batch, rows, columns, inner = axes
        results = length(batch) * length(rows) * columns.size
        if (count := parts(results, length(inner), inner[0].size)) > 1:
            cut, *inner = split(count, inner, math.prod(shape))
            product = Product(elem, [cut, *batch], rows, columns, inner)
            return emit.sum(emit.product(*operands, product, (count, *shape)), (0,))
        product = Product(elem, batch, rows, columns, inner)
        return emit.product(*operands, product, shape)

    def sums_of_products(self, x):
        """Element by element: for integers, and where each group has few features."""
        emit, w = self.emit, self.w
        rank, spatial = len(self.shape), range(len(self.windows))

        def element(k, index, x, w):
            feature, *taps = index[rank:]
            o = index[self.out[1]]
            group = o // self.outs
            at_x: list[Any] = [None] * rank
            at_w: list[Any] = [None] * rank
            at_x[self.lhs[0]] = index[self.out[0]]
            at_x[self.lhs[1]] = feature
            if self.batch_groups > 1:
                at_x[self.lhs[0]] = at_x[self.lhs[0]] + group * self.batch
            elif self.groups > 1:
                at_x[self.lhs[1]] = feature + group * self.features
            at_w[self.rhs[0]], at_w[self.rhs[1]] = o, feature
            for d in spatial:
                window = self.windows[d]
                place = index[self.out[2 + d]] * window.stride
                at_x[self.lhs[2 + d]] = place + taps[d] * window.step
                at_w[self.rhs[2 + d]] = taps[d]
            return ops.mul(k.f, k.at(x, at_x), k.at(w, at_w))

        terms = (self.features, *(w.kernel for w in self.windows))
        key = ("convolution", self.lhs, self.rhs, self.out, self.groups, self.batch_groups)
        products = emit.compute(
            [x, w], element, shape=self.shape + terms, dtype=x.dtype, cost=2,
            key=(*key, tuple(self.windows)),
        )  # fmt: skip
        return emit.sum(products, range(rank, rank + len(terms)))


def convolution(emit: Any, x, w, **params: Any):
    """The result of `conv_general_dilated`."""
    dtype = np.dtype(emit.avals[0].dtype)
    elem = elem_of(dtype)
    if not x.elem or not w.elem or not elem or elem == "i1":
        raise emit.unsupported()
    wide = np.dtype(np.float32) if elem in ("f16", "bf16") else dtype
    x, w = emit.convert(x, wide), emit.convert(w, wide)
    return emit.convert(Convolution(emit, x, w, params).node(), dtype)
