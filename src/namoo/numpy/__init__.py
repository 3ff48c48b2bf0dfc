"""Arrays and functions of arrays, with NumPy's names: JAX's `jax.numpy`.

Example:
    >>> import namoo.numpy as jnp
    >>> jnp.sum(jnp.arange(4.0) ** 2)
    Array(14., dtype=float32)
"""

from namoo._base.lazy import lazy as _lazily

_TABLE = {
    # Asking for the class itself loads its operators and methods.
    "numpy._methods": "ndarray=Array",
    "numpy.arithmetic": (
        "abs absolute add divide divmod fabs float_power floor_divide fmod mod multiply negative "
        "positive pow power reciprocal remainder sign square subtract true_divide"
    ),
    "numpy.calculus": "convolve correlate gradient interp trapezoid unwrap",
    "numpy.comparing": "allclose array_equal array_equiv iscomplexobj isrealobj isscalar iterable",
    "numpy.contraction": (
        "cross dot inner kron matmul matvec outer tensordot trace vdot vecdot vecmat"
    ),
    "numpy.covariance": "corrcoef cov",
    "numpy.creation": (
        "arange array asarray astype copy empty empty_like from_dlpack frombuffer fromfile "
        "fromiter fromstring full full_like ones ones_like zeros zeros_like"
    ),
    "numpy.cumulative": "cumprod cumsum cumulative_prod cumulative_sum nancumprod nancumsum",
    "numpy.differences": "diff ediff1d",
    "numpy.dtypes_ns": (
        "bfloat16 bool bool_ can_cast cdouble character complex128 complex64 complex_ "
        "complexfloating ComplexWarning csingle double dtype e euler_gamma finfo flexible float16 "
        "float32 float4_e2m1fn float64 float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 "
        "float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
        "float8_e8m0fnu float_ floating generic get_printoptions iinfo inexact inf int1 int16 "
        "int2 int32 int4 int64 int8 int_ integer isdtype issubdtype nan newaxis number object_ pi "
        "printoptions promote_types result_type set_printoptions signedinteger single uint uint1 "
        "uint16 uint2 uint32 uint4 uint64 uint8 unsignedinteger"
    ),
    "numpy.editing": (
        "choose compress delete extract insert packbits place ravel_multi_index repeat trim_zeros "
        "unpackbits unravel_index"
    ),
    "numpy.einstein": "einsum einsum_path",
    "numpy.elementary": (
        "acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 "
        "atanh cbrt cos cosh deg2rad degrees exp exp2 expm1 hypot i0 log log10 log1p log2 "
        "logaddexp logaddexp2 rad2deg radians sin sinc sinh sqrt tan tanh"
    ),
    "numpy.fft": ".",
    "numpy.float_parts": "copysign frexp gcd heaviside lcm ldexp modf nextafter signbit spacing",
    "numpy.grids": (
        "c_ diag diag_indices diag_indices_from diagflat diagonal eye fill_diagonal fromfunction "
        "identity index_exp indices ix_ mask_indices meshgrid mgrid ogrid r_ s_ tri tril "
        "tril_indices tril_indices_from triu triu_indices triu_indices_from vander"
    ),
    "numpy.histograms": "bincount histogram histogram2d histogram_bin_edges histogramdd",
    "numpy.joining": "append block column_stack concat concatenate dstack hstack stack vstack",
    "numpy.linalg": ".",
    "numpy.logic": (
        "bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or "
        "bitwise_right_shift bitwise_xor equal greater greater_equal invert left_shift less "
        "less_equal logical_and logical_not logical_or logical_xor maximum minimum not_equal "
        "right_shift"
    ),
    "numpy.manipulation": (
        "array_split atleast_1d atleast_2d atleast_3d dsplit expand_dims flip fliplr flipud "
        "hsplit matrix_transpose moveaxis ndim permute_dims ravel reshape resize roll rollaxis "
        "rot90 shape size split squeeze swapaxes tile transpose unstack vsplit"
    ),
    "numpy.mapping": "apply_along_axis apply_over_axes vectorize",
    "numpy.nanfunctions": "nanmax nanmean nanmin nanprod nanstd nansum nanvar",
    "numpy.number_parts": (
        "angle around ceil conj conjugate floor imag isclose iscomplex isfinite isinf isnan "
        "isneginf isposinf isreal real rint round trunc"
    ),
    "numpy.padding": "pad",
    "numpy.polynomial": (
        "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots"
    ),
    "numpy.printing": "array_repr array_str",
    "numpy.promote": "broadcast_arrays broadcast_shapes broadcast_to",
    "numpy.quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
    "numpy.reductions": "all amax amin any average count_nonzero max mean min prod ptp std sum var",
    "numpy.saving": "load save savez",
    "numpy.searching": (
        "argmax argmin argwhere digitize flatnonzero nanargmax nanargmin nonzero searchsorted"
    ),
    "numpy.selection": "clip fmax fmin nan_to_num piecewise select where",
    "numpy.sets": (
        "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts "
        "unique_inverse unique_values"
    ),
    "numpy.sorting": "argpartition argsort lexsort partition sort sort_complex",
    "numpy.spaces": "geomspace linspace logspace",
    "numpy.array_api": "__array_api_version__ __array_namespace_info__",
    "numpy.taking": "put put_along_axis take take_along_axis",
    "numpy.ufuncs": "frompyfunc ufunc",
    "numpy.windows": "bartlett blackman hamming hanning kaiser",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE, guarded=True)
