"""Library functions of several operations, which `eager.repeated` makes fast where calls repeat."""

from __future__ import annotations

from collections.abc import Iterator

from namoo.eager.repeated import repeated
from namoo.eager.shortcuts import Entries, Shortcut

FUNCTIONS: dict[str, str] = {
    "nn.activations": "gelu silu elu celu selu hard_tanh leaky_relu",
    "nn.normalize": "log_softmax logsumexp one_hot softmax",
    "numpy.arithmetic": "divmod float_power floor_divide fmod remainder power",
    "numpy.calculus": "convolve correlate gradient trapezoid",
    "numpy.comparing": "allclose array_equal",
    "numpy.contraction": "cross inner kron outer trace vdot",
    "numpy.covariance": "corrcoef cov",
    "numpy.creation": "arange full full_like",
    "numpy.cumulative": "cumprod cumsum nancumsum",
    "numpy.differences": "diff ediff1d",
    "numpy.editing": "choose delete insert repeat",
    "numpy.einstein": "einsum",
    "numpy.elementary": "deg2rad hypot rad2deg sinc",
    "numpy.fft.frequencies": "fftfreq rfftfreq fftshift ifftshift",
    "numpy.fft.transforms": "fft ifft rfft irfft fft2 ifft2 fftn ifftn",
    "numpy.float_parts": "frexp gcd heaviside lcm modf nextafter spacing",
    "numpy.grids": "indices meshgrid tril triu vander",
    "numpy.histograms": "bincount histogram",
    "numpy.joining": "append column_stack dstack hstack vstack",
    "numpy.linalg.decompositions": "cholesky eig eigh eigvalsh matrix_rank qr svd",
    "numpy.linalg.determinants": "det slogdet",
    "numpy.linalg.norms": "cond norm",
    "numpy.linalg.products": "matrix_power multi_dot",
    "numpy.linalg.systems": "inv lstsq pinv solve",
    "numpy.logic": "left_shift right_shift",
    "numpy.manipulation": "array_split atleast_2d atleast_3d flip fliplr flipud hsplit resize roll "
    "rot90 split squeeze swapaxes tile moveaxis",
    "numpy.nanfunctions": "nanmax nanmean nanmin nanprod nanstd nansum nanvar",
    "numpy.number_parts": "angle imag isclose iscomplex isneginf isposinf isreal round",
    "numpy.padding": "pad",
    "numpy.polynomial": "polyval",
    "numpy.quantiles": "median nanmedian percentile quantile nanquantile nanpercentile",
    "numpy.reductions": "all any average count_nonzero mean prod ptp var sum",
    "numpy.searching": "nanargmax nanargmin",
    "numpy.selection": "clip nan_to_num select where",
    "numpy.sets": "isin",
    "numpy.sorting": "argsort lexsort partition sort",
    "numpy.spaces": "linspace logspace",
    "numpy.taking": "take take_along_axis",
    "random.continuous": "exponential",
    "random.discrete": "choice permutation",
    "random.keys": "fold_in split",
    "random.uniforms": "bernoulli randint",
}
"""The functions by their module."""


class _Composed(Entries):
    """The entries, made module by module: a process uses few of them."""

    def of(self, module: str) -> list[Shortcut]:
        names = FUNCTIONS.get(module, "").split()
        when = "calls that were made before with the same types"
        return [Shortcut(module, name, None, when, repeated) for name in names]

    def __iter__(self) -> Iterator[Shortcut]:
        return (entry for module in FUNCTIONS for entry in self.of(module))


ENTRIES = _Composed()
