"""The emitter, which `native` rules of primitives are called with.

It lists the forms that rules can use: each is a function in the file of its kernel, and a method
here. Forms that few programs use are loaded on first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from namoo.core.jaxpr import JaxprEqn
from namoo.engines.native.graph.builder import GraphBuilder
from namoo.engines.native.graph.node import Node
from namoo.engines.native.kernels import bitcast as bits
from namoo.engines.native.kernels import conv, indexing, pooling, random, reduction
from namoo.engines.native.kernels import loops as _loops  # noqa: F401, registers its kinds
from namoo.engines.native.kernels.matmul import dot


class Emitter(GraphBuilder):
    """Builds a graph: the forms of `GraphBuilder`, and those of the kernels."""

    bitcast = bits.bitcast
    reduce = reduction.reduce
    fold = reduction.fold
    sum = reduction.total
    extreme = reduction.extreme
    locate = reduction.locate
    contraction = dot.contraction
    product = dot.strided_product
    product_in_parts = dot.in_parts
    convolution = conv.convolution
    gather = indexing.gather
    scatter = indexing.scatter

    def window(self, name: str, *args: Any) -> Node:
        """Reductions over sliding windows, by a function of `pooling`."""
        return getattr(pooling, name)(self, *args)

    def random(self, name: str, *args: Any) -> Any:
        """Keys, or what is drawn with them, by a function of `random`."""
        return getattr(random, name)(self, *args)

    def concatenate(self, xs: Sequence[Node], axis: int) -> Node:
        """Arrays one after another along an axis."""
        from namoo.engines.native.kernels import concatenate

        return concatenate.concatenate(self, xs, axis)

    def pad(self, x: Node, value: Node, config) -> Node:
        """An array with `value` around and between its elements."""
        from namoo.engines.native.kernels import concatenate

        return concatenate.pad(self, x, value, tuple(map(tuple, config)))

    def update_slice(self, x: Node, update: Node, starts: Sequence[Node]) -> Node:
        """`x` with `update` written at `starts`, which are clamped so that it fits."""
        from namoo.engines.native.kernels import concatenate

        return concatenate.update_slice(self, x, update, starts)

    def sort(self, xs: Sequence[Node], axis: int, keys: int, top: int | None = None) -> list[Node]:
        """Operands sorted by the first `keys`; or the `top` greatest elements and their indices."""
        from namoo.engines.native.kernels.sort import sort

        return sort.sort(self, xs, axis, keys, top)

    def cumulative(self, x: Node, axis: int, reverse: bool, name: str) -> Node:
        """Elements combined up to each index along an axis, by an operation or "logsumexp"."""
        from namoo.engines.native.kernels import cumulative

        return cumulative.cumulative(self, x, axis, reverse, name)

    def gamma(self, keys: Node, alpha: Node, name: str, log_space: bool) -> Node:
        """Gamma numbers, drawn with the keys of a generator."""
        from namoo.engines.native.kernels import gamma

        return gamma.gamma(self, keys, alpha, name, log_space)

    def formula(self, name: str, rule: Any, *xs: Node) -> Node:
        """An elementwise function by a rule in terms of other operations."""
        from namoo.engines.native.kernels import formula

        return formula.formula(self, name, rule, *xs)

    def small_matrices(
        self, name: str, operands: Sequence[Node], params: dict[str, Any]
    ) -> list[Node] | None:
        """The results of an operation of linear algebra on small matrices; None for others."""
        from namoo.engines.native.kernels.linalg import table

        return table.small_matrices(self, name, operands, params)

    def lapack(self, name: str, *operands: Node, **options: Any) -> list[Node]:
        """The results of a LAPACK routine on stacks of matrices, and its `info`."""
        from namoo.engines.native.kernels.linalg import lapack

        return lapack.lapack(self, name, *operands, **options)

    def rotations(self, r: Node, w: Node) -> list[Node]:
        """Triangular factors, updated by a vector each."""
        from namoo.engines.native.kernels.linalg import update

        return self.call(update.Update(r), [r, w], [r])

    def fft(self, x: Node, kind: str, lengths: tuple[int, ...]) -> Node:
        """A discrete Fourier transform over the last axes."""
        from namoo.engines.native.kernels.fft import transform

        return transform.fft(self, x, kind, lengths)

    def scan(self, operands, **params) -> list[Node]:
        """The results of a scan."""
        from namoo.engines.native.kernels import control_flow

        return control_flow.scan(self, operands, **params)

    def while_loop(self, operands, *params) -> list[Node]:
        """The results of a while loop."""
        from namoo.engines.native.kernels import control_flow

        return control_flow.while_loop(self, operands, *params)

    def cond(self, index: Node, operands, branches) -> list[Node]:
        """The results of the branch with a number."""
        from namoo.engines.native.kernels import control_flow

        return control_flow.cond(self, index, operands, branches)

    def foreign(self, *args: Any) -> list[Node]:
        """The results of a compiled function of another library."""
        from namoo.engines.native.kernels import foreign

        return foreign.foreign(self, *args)

    def require(self, operands: Sequence[Node]) -> list[Node]:
        """Raise the error of the current equation unless its first operand holds."""
        from namoo.engines.native.kernels import checks

        return checks.require(self, operands)

    def check(self, eqn: JaxprEqn, operands: Sequence[Node]) -> None:
        """Add the checks of an equation's operands, in a strict program."""
        from namoo.engines.native.kernels import checks

        checks.check(self, eqn, operands)
