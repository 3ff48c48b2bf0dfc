"""The table of derivatives: a call of every differentiable public function, and exceptions.

A line of a table is an expression whose derivative by all of its arrays is checked; `{a,b}` stands
for one line with `a` and one with `b`. It tests the first function of a namespace that it names.
An indented line continues the previous one. Words after `#` say what is not checked, or how
accurately:

    once      no second derivative
    forward   only in forward mode
    1e-6      relative tolerance

Arrays are float64 (`c`, `d` complex128). A name that ends in `_` is the same array as a constant.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

_rng = np.random.RandomState(0)


def _normal(*shape: int) -> np.ndarray:
    return _rng.randn(*shape)


_m = _normal(4, 4) + 3 * np.eye(4)

ARRAYS: dict[str, np.ndarray] = {
    "x": _normal(3, 4),
    "y": _normal(3, 4),
    "p": _rng.uniform(0.3, 2.5, (3, 4)),
    "r": _rng.uniform(0.3, 2.5, (3, 4)),
    "q": _rng.uniform(-0.9, 0.9, (3, 4)),
    "u": _rng.uniform(0.1, 0.9, (3, 4)),
    "v": _normal(4),
    "w": _rng.uniform(0.3, 2.5, 4),
    "s": np.asarray(0.75),
    "z": _normal(2, 3, 4),
    "m": _m,
    "n": _normal(4, 4) + 3 * np.eye(4),
    "h": _m @ _m.T / 4 + np.eye(4),
    "a": _normal(1, 2, 5, 4),
    "k": _normal(3, 2, 2, 3),
    "c": _normal(3, 4) + 1j * _normal(3, 4),
    "d": _normal(4, 4) + 1j * _normal(4, 4) + 3 * np.eye(4),
}
CONSTANTS: dict[str, Any] = {
    **{f"{name}_": x for name, x in ARRAYS.items()},
    "np": np,
    "i": np.array([2, 0, 1, 2]),
    "t": np.array([[1, 0, 1, 1], [1, 1, 0, 0], [0, 1, 1, 1]], bool),
    "o": np.array([3.0, 1.0, 4.0, 2.0]),
}
# The names of the namespaces in the tables.
SPACES = {
    "jnp": "numpy",
    "lax": "lax",
    "nn": "nn",
    "special": "scipy.special",
    "linalg": "scipy.linalg",
    "stats": "scipy.stats",
    "signal": "scipy.signal",
    "ndimage": "scipy.ndimage",
    "trapezoid": "scipy.integrate",
    "vq": "scipy.cluster.vq",
    "solvers": "scipy.sparse.linalg",
    "dct": "scipy.fft",
    "image": "image",
    "ops": "ops",
    "random": "random",
}

NUMPY = """
jnp.{abs,absolute,fabs,angle,ceil,floor,trunc,rint,sign,positive,negative,around,round}(x)
jnp.nan_to_num(x)
jnp.{asinh,arcsinh,atan,arctan,cos,cosh,deg2rad,degrees,exp,exp2,expm1,i0,rad2deg,radians}(x)
jnp.{sin,sinc,sinh,square,tan,tanh,copy,array,asarray,atleast_1d,atleast_2d,atleast_3d,ravel}(x)
jnp.{acos,arccos,asin,arcsin,atanh,arctanh}(q)
jnp.{cbrt,log,log10,log1p,log2,reciprocal,sqrt}(p)
jnp.{acosh,arccosh}(p + 1)
jnp.{real,imag,conj,conjugate,angle,abs,exp,log,sin,cosh,tanh,sqrt,square,reciprocal,sinc}(c)
jnp.{arcsin,arccos,arctan,arcsinh,arccosh,arctanh,log1p,expm1,exp2,log2,log10}(c)
jnp.{add,subtract,multiply,maximum,minimum,fmax,fmin,hypot,logaddexp,logaddexp2,copysign}(x, y)
jnp.{divide,true_divide,arctan2,atan2,mod,remainder,fmod,floor_divide,heaviside}(x, p)
jnp.{power,pow,float_power}(p, x)
jnp.{add,subtract,multiply,divide,power,logaddexp}(c, c + 2)
jnp.divmod(x, p)
x + y
x - p
x * y
x / p
p ** 2
p ** -2
p ** 0.5
p ** x
2.0 ** x
x % p
x // p
x[::2, 1:3]
x[i[:3] % 3]
x.at[0].set(v)
x.at[i % 3].{add,multiply,min,max}(y[i[:4]])
x.at[1].apply(jnp.sin)
x.at[t].set(s)
jnp.ldexp(x, i)
jnp.frexp(p)[0]
jnp.modf(x)[0]
jnp.astype(x, 'complex128')
jnp.clip(x, -0.5, 0.5)
jnp.clip(x, p - 1, p)
jnp.where(t, x, y)
jnp.select([x > 1, x < 0], [x * 2, y])
jnp.piecewise(x, [x < 0, x > 1], [lambda x: x * x, lambda x: x ** 3])
jnp.choose(i % 2, [v, v * 10], mode='clip')
jnp.{sum,mean,prod,max,min,amax,amin,var,std,ptp,median,sort,cumsum,cumprod}(x, axis=1)
jnp.{nansum,nanmean,nanprod,nanmax,nanmin,nanvar,nanstd,nanmedian,nancumsum,nancumprod}(x, axis=1)
jnp.{sum,mean,prod,std,var,cumsum,cumprod}(c, axis=0)
jnp.{sum,prod,mean,var,std}(x, where=t, axis=0)
jnp.max(x, axis=0, initial=0.3)
jnp.{cumulative_sum,cumulative_prod}(v, include_initial=True)
jnp.average(x, axis=1, weights=p)
jnp.{quantile,nanquantile}(x, s, axis=0)
jnp.{percentile,nanpercentile}(x, 40 * s, axis=1)
jnp.quantile(x, 0.3, method='{inverted_cdf,lower,higher,midpoint,nearest}')
jnp.partition(x, 2, axis=1)
jnp.{cov,corrcoef}(x)
jnp.cov(x, aweights=w)
jnp.cov(x, y, rowvar=False)
jnp.trapezoid(y, x)
jnp.interp(x, np.linspace(-3, 3, 4), v)
jnp.interp(x, w.cumsum() - 3, v)
jnp.interp(x, o.cumsum() - 5, v, period=5.0)
jnp.interp(4 * x, w.cumsum() - 3, v, 'extrapolate', 'extrapolate')
jnp.{histogram,histogram_bin_edges}(v, bins=3)[-1]
jnp.histogram(v_, bins=3, weights=v)[0]
jnp.histogram2d(v_, o, bins=3, weights=v)[0]
jnp.histogramdd(y_.T, bins=2, weights=v)[0]
jnp.bincount(i, weights=v, length=5)
jnp.{diff,ediff1d}(x)
jnp.gradient(x, s, axis=1)
jnp.gradient(v, w.cumsum())
jnp.unwrap(3 * x)
jnp.{convolve,correlate}(v, w)
jnp.{convolve,correlate}(c[0], v, 'full')
jnp.{polyadd,polysub,polymul}(v, w)
jnp.polydiv(v, w[:2])
jnp.polyder(v, 1)
jnp.polyint(v, 2, w[:2])
jnp.polyval(jnp.concatenate([v] * 6), q)
jnp.polyval(v, x)
jnp.polyfit(w, v, 2)
jnp.poly(v)
jnp.roots(w)
jnp.vander(v, 3)
jnp.kaiser(5, s)
jnp.{reshape,resize}(x, (2, 6))
jnp.reshape(x, (4, 3), order='F')
jnp.{transpose,permute_dims}(z, (1, 2, 0))
jnp.{flip,fliplr,flipud,rot90,matrix_transpose,diagonal,tril,triu,trace,diagflat}(x)
jnp.{moveaxis,swapaxes,rollaxis}(z, 2, 0)
jnp.squeeze(x[:, :1])
jnp.expand_dims(x, 1)
jnp.roll(x, (1, 2), (0, 1))
jnp.{concatenate,concat,hstack,vstack,stack,dstack,column_stack,block}([x, y])
jnp.{split,array_split,hsplit,vsplit,dsplit}(jnp.stack([z, z * z], 3).reshape(2, 4, 6), 2)
jnp.unstack(x)
jnp.tile(x, (2, 1))
jnp.repeat(x, 2, axis=1)
jnp.repeat(v, i, total_repeat_length=6)
jnp.append(x, y, axis=0)
jnp.insert(x, 1, v, axis=0)
jnp.delete(x, 1, axis=0)
jnp.pad(x, 1, mode='{edge,reflect,symmetric,wrap,mean,maximum,minimum,median}')
jnp.pad(x, 1, mode='linear_ramp', end_values=2.0)
jnp.pad(x, 1, constant_values=s)
jnp.broadcast_to(v, (2, 4))
jnp.broadcast_arrays(v, x)
jnp.diag(v, 1)
jnp.fill_diagonal(m, s, inplace=False)
jnp.meshgrid(v, w)
jnp.ix_(v, w)
jnp.{linspace,logspace}(v, w, 3)
jnp.geomspace(w, w + 2, 3)
jnp.full((2, 3), s)
jnp.full_like(x_, s)
jnp.fromfunction(lambda i, j: s * i + j, (2, 3))
jnp.take(x, i % 3, axis=0)
jnp.take_along_axis(x, i[None] % 3, axis=0)
jnp.put(v, i[:2], w[:2], inplace=False)
jnp.put_along_axis(x, i[None] % 3, w[None], axis=0, inplace=False)
jnp.place(x, t, v, inplace=False)
jnp.compress(t[0], x, axis=1, size=3)
jnp.extract(t, x)
jnp.trim_zeros(v)
jnp.{unique,unique_values,sort_complex}(v)
jnp.{unique_all,unique_counts,unique_inverse}(v)[0]
jnp.union1d(v, w)
jnp.{intersect1d,setdiff1d,setxor1d}(v, o)
jnp.{dot,matmul}(x, m)
jnp.matmul(z, m)
jnp.matmul(c, d)
jnp.{vdot,vecdot}(x, y)
jnp.{vdot,vecdot}(c, c * c)
jnp.inner(x, m)
jnp.{outer,kron}(v, w)
jnp.{matvec}(x, v)
jnp.{vecmat}(v, m)
jnp.tensordot(z, x, ([1, 2], [0, 1]))
jnp.cross(x[:, :3], y[:, 1:])
jnp.einsum('ij,jk,lk->il', x, m, x)
jnp.einsum('ii->i', m)
jnp.vectorize(jnp.vdot, signature='(n),(n)->()')(x, v)
jnp.frompyfunc(lambda a, b: a * jnp.sin(b), 2, 1)(x, y)
jnp.apply_along_axis(lambda row: row * row[0], 1, x)
jnp.apply_over_axes(jnp.sum, x, [0])
jnp.{logaddexp,maximum,multiply}.reduce(x, axis=1)
jnp.{add,maximum}.accumulate(x, axis=1)
jnp.multiply.outer(v, w)
jnp.add.at(x, (i % 3, i), v, inplace=False)
jnp.linalg.{cholesky,inv,det,slogdet,pinv,trace,diagonal,matrix_transpose,svdvals}(h)
jnp.linalg.{inv,det,slogdet,pinv,qr,svdvals}(m)
jnp.linalg.{inv,det,slogdet,pinv,svdvals}(d)
jnp.linalg.qr(x.T)
jnp.linalg.svd(m)[1]
jnp.linalg.svd(x, full_matrices=False)
jnp.linalg.eigh(h)
jnp.linalg.eigvalsh(h)
jnp.linalg.eigvals(m)  # once
jnp.linalg.eigvals(d)  # once
jnp.linalg.{cond}(m)
jnp.linalg.{solve}(m, v)
jnp.linalg.solve(d, c.T)
jnp.linalg.lstsq(m[:, :2], v)[{0,1,3}]
jnp.linalg.lstsq(x, v[:3])[0]
jnp.linalg.cholesky(h, upper=True)
jnp.linalg.inv(z @ z.transpose(0, 2, 1))
jnp.linalg.solve(z @ z.transpose(0, 2, 1), x)
jnp.linalg.det(z[:, :2, :2])
jnp.linalg.det(z[:, :3, :3])
jnp.linalg.slogdet(m, method='qr')
jnp.linalg.pinv({x,x.T,c})
jnp.linalg.svd(h + h.T - 3 * np.eye(4), hermitian=True)[1]
jnp.linalg.cond(m, {1,np.inf})
jnp.linalg.matrix_power(m, {3,-2})
jnp.linalg.multi_dot([x, m, v])
jnp.linalg.{norm,vector_norm,matrix_norm}(x)
jnp.linalg.norm(x, {1,2,np.inf,'nuc'})
jnp.linalg.vector_norm(x, ord={1,3,-2})
jnp.linalg.{matmul,tensordot}(m, n)
jnp.linalg.tensordot(m, n, axes=1)
jnp.linalg.{outer}(v, w)
jnp.linalg.vecdot(x, y)
jnp.linalg.cross(x[:, :3], y[:, 1:])
jnp.linalg.tensorinv(m.reshape(4, 2, 2), ind=1)
jnp.linalg.tensorsolve(m.reshape(2, 2, 4), x[:2, :2])
jnp.fft.{fft,ifft}(c, n=5, norm='ortho')
jnp.fft.{rfft,ihfft}(x, n={3,4})
jnp.fft.{irfft,hfft}(c, n={5,6})
jnp.fft.fft{freq}(4, s)
jnp.fft.{fft,fftn,fft2,rfft,rfftn,rfft2,ihfft,ifft,ifftn,ifft2,fftshift,ifftshift}(x)
jnp.fft.{fft,fftn,fft2,ifft,ifftn,ifft2,irfft,irfftn,irfft2,hfft,fftshift}(c)
"""

NUMPY_NONE = {
    "its results are integers, booleans or indices": """
        all allclose any argmax argmin argpartition argsort argwhere array_equal array_equiv
        bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or
        bitwise_right_shift bitwise_xor count_nonzero digitize equal flatnonzero gcd greater
        greater_equal invert isclose iscomplex isfinite isin isinf isnan isneginf isposinf isreal
        lcm left_shift less less_equal lexsort logical_and logical_not logical_or logical_xor
        nanargmax nanargmin nonzero not_equal packbits ravel_multi_index right_shift searchsorted
        signbit unpackbits unravel_index linalg.matrix_rank""",
    "it makes arrays from no arrays": """
        arange bartlett blackman diag_indices diag_indices_from empty empty_like eye frombuffer
        fromfile fromiter fromstring hamming hanning identity indices mask_indices ones ones_like
        tri tril_indices tril_indices_from triu_indices triu_indices_from zeros zeros_like load
        from_dlpack fft.rfftfreq""",
    "it is about types, shapes or text": """
        array_repr array_str broadcast_shapes can_cast einsum_path get_printoptions iscomplexobj
        isdtype isrealobj isscalar issubdtype iterable ndim printoptions promote_types result_type
        save savez set_printoptions shape size""",
    "JAX has no derivative of it": "nextafter spacing linalg.eig",
}

LAX = """
lax.{abs,asinh,atan,ceil,cos,cosh,erf,erfc,exp,exp2,expm1,floor,logistic,neg,round,sign,sin}(x)
lax.{sinh,square,tan,tanh,bessel_i0e,bessel_i1e,optimization_barrier}(x)
lax.{acos,asin,atanh,erf_inv}(q)
lax.{cbrt,digamma,lgamma,log,log1p,reciprocal,rsqrt,sqrt}(p)
lax.acosh(p + 1)
lax.{conj,imag,real,exp,log,sqrt,tanh,sin}(c)
lax.{add,sub,mul,max,min,complex}(x, y)
lax.{div,atan2,rem}(x, p)
lax.pow(p, x)
lax.pow(c, c * c)
lax.integer_pow(x, 3)
lax.clamp(-0.5, x, 0.5)
lax.clamp(-p, x, r)
lax.{igamma,igammac}(p, r)  # 1e-6 once
lax.{igamma,igammac}(p_, r)
lax.betainc(p_, r_, u)
lax.polygamma(2.0, p)
lax.zeta(p_ + 1.5, r)
lax.random_gamma_grad(p_, r)  # once 1e-5
lax.reduce_precision(x, 11, 52)
lax.convert_element_type(x, 'complex128')
lax.bitcast_convert_type(lax.bitcast_convert_type(x_, 'int64'), 'float64') * x
lax.select(t, x, y)
lax.select_n(t, x, y)
lax.{cumsum,cumprod,cummax,cummin,cumlogsumexp}(x, axis=1)
lax.cumsum(x, axis=0, reverse=True)
lax.{reduce_sum,reduce_prod,reduce_max,reduce_min}(x, axes=(1,))
lax.reduce(x, 0.0, lambda a, b: a + b, (0,))
lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 1), 'VALID')
lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 2), 'SAME')
lax.{argmax,argmin}(x, 1, 'int32') + x[:, 0]
lax.sort(x, dimension=1)
lax.sort_key_val(v_, w)
lax.{top_k,approx_max_k,approx_min_k}(x, 2)[0]
lax.broadcast(x, (2,))
lax.broadcast_in_dim(v, (2, 4), (1,))
lax.broadcast_to_rank(v, 3)
lax.broadcast_like(v[None] + x, y_)
lax.collapse(z, 1)
lax.concatenate([x, y], 1)
lax.expand_dims(x, (1,))
lax.squeeze(x[:, :1], (1,))
lax.pad(x, s, ((1, -1, 0), (0, 2, 1)))
lax.reshape(x, (2, 6))
lax.rev(x, (0,))
lax.tile(x, (2, 1))
lax.transpose(z, (1, 2, 0))
lax.split(x, (1, 3), axis=1)
lax.stack([x, y], 1)
lax.unstack(x)
lax.{full}((2,), s)
lax.full_like(x_, s)
lax.slice(x, (0, 1), (3, 4), (2, 1))
lax.slice_in_dim(x, 1, 3)
lax.{index_in_dim,dynamic_index_in_dim}(x, 1)
lax.index_take(x, (i % 3,), (0,))
lax.dynamic_slice(x, (1, i[0]), (2, 2))
lax.dynamic_slice_in_dim(x, i[2], 2)
lax.dynamic_update_slice(x, y[:2, :2], (1, i[0]))
lax.dynamic_update_index_in_dim(x, v, i[2], 0)
lax.dynamic_update_slice_in_dim(x, y[:2], i[2], 0)
lax.gather(x, i[:, None] % 3, lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4))
lax.{scatter,scatter_add,scatter_sub,scatter_mul,scatter_min,scatter_max}(
    x, np.array([[2], [0]]), y[:2], lax.ScatterDimensionNumbers((1,), (0,), (0,)))
lax.scatter_apply(x, np.array([[2], [0]]), jnp.sin,
    lax.ScatterDimensionNumbers((1,), (0,), (0,)), update_shape=(2, 4))
lax.dot(x, m)
lax.batch_matmul(z, z.transpose(0, 2, 1))
lax.dot_general(z, z, (((1,), (1,)), ((0,), (0,))))
lax.ragged_dot(x, jnp.stack([m, n]), np.array([1, 2], 'int32'))
lax.ragged_dot_general(x, jnp.stack([m, n]), np.array([1, 2], 'int32'),
    lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,)))
lax.conv(a, k, (1, 2), 'SAME')
lax.conv_with_general_padding(a, k, (1, 1), ((1, 0), (0, 1)), None, (2, 1))
lax.conv_general_dilated(a, k, (1, 2), ((0, 1), (1, -1)), (2, 1), (1, 2))
lax.conv_general_dilated_patches(a, (2, 2), (1, 1), 'VALID')
lax.conv_general_dilated_local(
    a, jnp.sin(jnp.arange(64.0).reshape(2, 8, 2, 2) * s), (3, 2), 'VALID', (2, 2))
lax.conv_transpose(a, k.transpose(2, 3, 1, 0), (2, 1), 'SAME',
    dimension_numbers=('NCHW', 'HWIO', 'NCHW'))
lax.fft(c, 'FFT', (4,))
lax.cond(True, jnp.sin, jnp.cos, x)
lax.switch(i[0], [jnp.sin, jnp.cos, jnp.tanh], x)
lax.scan(lambda total, row: (total * row, jnp.sin(total)), v, x)
lax.map(jnp.sin, x)
lax.fori_loop(0, 3, lambda i, a: jnp.sin(a * s), x)
lax.while_loop(lambda a: a.sum() < 20, lambda a: a * 1.5, p)  # forward
lax.associative_scan(jnp.multiply, x)
lax.custom_root(lambda r: r ** 3 - p, p_,
    lambda f, r: jnp.cbrt(lax.stop_gradient(p)), lambda g, y: y / g(jnp.ones_like(y)))  # 1e-6
lax.custom_linear_solve(lambda a: m_ @ a, v,
    lambda mv, b: jnp.linalg.solve(m_, b), lambda mv, b: jnp.linalg.solve(m_.T, b))
lax.composite(lambda a: jnp.sin(a) * a, 'sine')(x)
lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos)
vmap(lambda a: lax.{psum,pmean,all_gather}(a * a, 'i'), axis_name='i')(x)
vmap(lambda a: lax.psum_scatter(a * a, 'i'), axis_name='i')(jnp.concatenate([x, v[None]]))
vmap(lambda a: lax.ppermute(a, 'i', [(0, 1), (1, 2), (2, 0)]), axis_name='i')(x)
vmap(lambda a: lax.pshuffle(a, 'i', [2, 0, 1]), axis_name='i')(x)
vmap(lambda a: lax.pswapaxes(a, 'i', 0), axis_name='i')(m)
vmap(lambda a: lax.all_to_all(a, 'i', 0, 0), axis_name='i')(m)
vmap(lambda a: lax.pbroadcast(a, 'i', 1), axis_name='i')(x)
lax.linalg.cholesky(h)
lax.linalg.eig(m, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]  # once
lax.linalg.{eigh,lu}(h)
lax.linalg.qr(x.T, full_matrices=False)
lax.linalg.qdwh(m)[:2]  # forward
lax.linalg.svd(x, full_matrices=False)
lax.linalg.symmetric_product(x.T, h)
lax.linalg.triangular_solve(m, x, lower=True)
lax.linalg.tridiagonal_solve(jnp.append(0.0, v[1:]), w + 3, jnp.append(v[:3], 0.0), x.T)
"""

LAX_NONE = {
    "its results are integers, booleans or tokens": """
        after_all axis_index axis_size bitwise_and bitwise_not bitwise_or bitwise_xor clz
        create_token eq ge gt is_finite le lt mulhi ne population_count reduce_and
        reduce_or reduce_xor shift_left shift_right_arithmetic shift_right_logical
        linalg.lu_pivots_to_permutation""",
    "it makes arrays from no arrays": """
        broadcasted_iota empty iota rng_bit_generator rng_uniform shape_as_value""",
    "it is about types and shapes": """
        DotDimensionNumbers broadcast_shapes conv_dimension_numbers conv_general_permutations
        conv_general_shape_tuple
        conv_shape_tuple conv_transpose_shape_tuple dtype padtype_to_pads
        reduce_window_shape_tuple""",
    "JAX has no derivative of it": """
        igamma_grad_a nextafter linalg.cholesky_update linalg.hessenberg
        linalg.householder_product linalg.ormqr linalg.schur
        linalg.tridiagonal pmax pmin""",
    "it is about what is known of a value": "pcast stage dce_sink stop_gradient",
    "it needs several devices": "ragged_all_to_all with_sharding_constraint",
    "it rounds to types of few bits": "scaled_dot",
}

NN = """
nn.{celu,elu,gelu,glu,hard_sigmoid,hard_silu,hard_swish,hard_tanh,identity,leaky_relu}(x)
nn.log_sigmoid(x)
nn.{log_softmax,logmeanexp,logsumexp,mish,relu,relu6,selu,sigmoid,silu,soft_sign,softmax}(x)
nn.{softplus,sparse_plus,sparse_sigmoid,squareplus,standardize,swish,tanh}(x)
nn.gelu(x, approximate=False)
nn.log1mexp(p)
nn.logsumexp(x, axis=1, b=p)
nn.{softmax,standardize}(x, axis=0, where=t | (np.arange(4) == 0))
nn.dot_product_attention(x.reshape(1, 3, 2, 2), y.reshape(1, 3, 2, 2), p.reshape(1, 3, 2, 2))
nn.dot_product_attention(x.reshape(1, 3, 2, 2), y.reshape(1, 3, 2, 2), p.reshape(1, 3, 2, 2),
    is_causal=True)
"""
NN_NONE = {
    "its results are constants": """
        one_hot initializers.constant initializers.delta_orthogonal initializers.glorot_normal
        initializers.glorot_uniform initializers.he_normal initializers.he_uniform
        initializers.kaiming_normal initializers.kaiming_uniform initializers.lecun_normal
        initializers.lecun_uniform initializers.normal initializers.ones initializers.orthogonal
        initializers.truncated_normal initializers.uniform initializers.variance_scaling
        initializers.xavier_normal initializers.xavier_uniform initializers.zeros""",
    "it rounds to types of few bits": """
        get_scaled_dot_general_config scaled_dot_general scaled_matmul""",
}

SPECIAL = """
special.{dawsn,erf,erfc,erfcx,expit,i0,i0e,i1,i1e,log_ndtr,ndtr,softmax,log_softmax,logsumexp}(x)
special.{digamma,exp1,expi,factorial,gamma,gammaln,loggamma,gammasgn,entr,spence,sici,fresnel}(p)
special.{erfinv}(q)
special.{logit,ndtri}(u)
special.{boxcox,boxcox1p}(p, x)
special.{beta,betaln,comb,poch,kl_div,rel_entr,xlogy,xlog1py}(p, r)
special.{gammainc,gammaincc}(p, r)  # 1e-6 once
special.betainc(p_, r_, u)
special.owens_t(x, y)
special.bessel_jn(w, v=3)
special.expn(2, p)
special.hyp1f1(p, r, x)  # 1e-6 once
special.hyp2f1(p, r, p_ + 1.5, q / 2)  # 1e-6 once
special.multigammaln(p + 1, 2)
special.polygamma(1, p)
special.zeta(p + 1.5, r)
special.wofz(c)
special.{expi}(x)
special.sph_harm_y(np.array([2, 3, 1]), np.array([1, -2, 0]), p[:, 0], x[:, 1])
"""
SPECIAL_NONE = {"its argument is an integer": "bernoulli"}

LINALG = """
linalg.cholesky(h + h.T)
linalg.cho_factor(h + h.T)[0]
linalg.{det,expm,inv,sqrtm,svd,lu_factor,lu,qr,polar}(h)
linalg.{det,expm,inv,sqrtm,qr,lu,polar}(m)
linalg.eigh(h)
linalg.block_diag(x, v)
linalg.cho_solve((jnp.tril(m), True), x.T)
linalg.{circulant,companion,fiedler,fiedler_companion,toeplitz,hankel}(w)
linalg.convolution_matrix(v, 3)
linalg.leslie(v, w[:3])
linalg.eigh_tridiagonal(v, w[:3], eigvals_only=True)
linalg.expm_frechet(m, n)
linalg.funm(m, lambda a: jnp.sin(a))
linalg.lu_solve(linalg.lu_factor(m), v)
linalg.qr_multiply(x.T, m)
linalg.{solve}(m, v)
linalg.solve_triangular(m, v)
linalg.solve_sylvester(m, n, h)
"""
LINALG_NONE = {
    "it makes arrays from no arrays": "dft hadamard helmert hilbert invhilbert invpascal pascal",
    "JAX has no derivative of it": "hessenberg rsf2csf schur",
}

STATS = """
stats.{norm,cauchy,logistic,laplace,gumbel_l,gumbel_r}.{pdf,logpdf,cdf}(x, y, p)
stats.{norm,cauchy,gumbel_l,gumbel_r}.{logcdf,sf,logsf}(x, y, p)
stats.logistic.sf(x, y, p)
stats.{norm,cauchy,logistic,gumbel_l,gumbel_r}.ppf(u, y, p)
stats.{norm,cauchy,logistic}.isf(u, y, p)
stats.expon.{pdf,logpdf,cdf,logcdf,sf,logsf}(p + 1, s, r)
stats.expon.ppf(u, s, r)
stats.uniform.{pdf,logpdf,cdf}(u, -p, 3 + r)
stats.uniform.ppf(u, -p, r)
stats.pareto.{pdf,logpdf,cdf,logcdf,sf,logsf}(p + 4, r, s, w)
stats.pareto.ppf(u, r, s, w)
stats.beta.{pdf,logpdf}(u, p, r)
stats.beta.{cdf,logcdf,sf,logsf}(u, p_, r_)
stats.gamma.{pdf,logpdf}(p, r, -0.1 * s, w)
stats.gamma.{cdf,logcdf,sf,logsf}(p, r, -0.1 * s, w)  # 1e-6 once
stats.chi2.{pdf,logpdf}(p, r + 1)
stats.chi2.{cdf,logcdf,sf,logsf}(p, r + 1)  # 1e-6 once
stats.gennorm.{pdf,logpdf}(x, p)
stats.gennorm.cdf(x, p)  # 1e-6 once
stats.t.{pdf,logpdf}(x, p, y, r)
stats.truncnorm.{pdf,logpdf,cdf,logcdf,sf,logsf}(q, -p - 1, r + 1)
stats.vonmises.{pdf,logpdf}(x, p)
stats.wrapcauchy.{pdf,logpdf}(p, u)
stats.dirichlet.{pdf,logpdf}(w / w.sum(), w + 1)
stats.multivariate_normal.{pdf,logpdf}(x, v, h)
stats.bernoulli.{pmf,logpmf}(i % 2, u[0])
stats.bernoulli.cdf(0.5, u)
stats.binom.{pmf,logpmf}(i, 3, u[0])
stats.nbinom.{pmf,logpmf}(i, w, u[0])
stats.betabinom.{pmf,logpmf}(i, 4, w, p[0])
stats.geom.{pmf,logpmf}(i + 1, u[0])
stats.poisson.{pmf,logpmf,cdf}(i, w)  # 1e-6
stats.poisson.entropy(w)
stats.multinomial.{pmf,logpmf}(i, 5, w / w.sum())
stats.sem(x)
stats.gaussian_kde(x_[:2], 0.5)(y[:2])
"""
STATS_NONE = {
    "its results are counts or ranks": "mode rankdata bernoulli.ppf",
}

REST = """
signal.{convolve,correlate,fftconvolve}(v, w)
signal.{convolve2d,correlate2d}(m, x)
signal.detrend(x)
signal.stft(jnp.sin(jnp.arange(32.0) * s), nperseg=8)[-1]
signal.istft(jnp.reshape(jnp.concatenate([c.ravel()] * 5), (5, 12)), nperseg=8)[-1]
signal.welch(jnp.sin(jnp.arange(32.0) * s), nperseg=8)[-1]
signal.csd(jnp.sin(jnp.arange(32.0) * s), jnp.cos(jnp.arange(32.0) * s), nperseg=8)[-1]
ndimage.map_coordinates(m, [u[0] * 2, u[1] * 2], 1)
trapezoid.trapezoid(y, x)
vq.vq(x, jnp.stack([v, w]))[1]
solvers.{cg}(lambda a: h_ @ a, v, tol=1e-13)[0]  # once
solvers.{bicgstab,gmres}(lambda a: m_ @ a, v, tol=1e-13)[0]  # once
dct.{dct,idct,dctn,idctn}(x)
image.resize(x, (5, 3), '{linear,cubic,lanczos3}')
image.scale_and_translate(x, (5, 3), (0, 1), w[:2], v[:2], 'linear', antialias=False)
ops.{segment_max,segment_min,segment_prod,segment_sum}(v, np.array([0, 0, 1, 2]), 3)
random.uniform(random.key(0), (3, 4), 'float64', x, x + p)
random.{lognormal,pareto,rayleigh}(random.key(0), p)
random.weibull_min(random.key(0), p, r)
random.triangular(random.key(0), -p, x_ * 0 + u, r + 1)
random.wald(random.key(0), p)
random.multivariate_normal(random.key(0), v, h)
random.truncated_normal(random.key(0), -p, r)
"""
REST_NONE = {
    "random": {
        "it draws from no parameters, or by rejection: no limit of differences": """
            PRNGKey ball beta bits cauchy chisquare clone dirichlet double_sided_maxwell exponential
            f fold_in gamma generalized_normal gumbel key key_data key_dtype key_impl laplace
            loggamma logistic maxwell normal orthogonal rademacher split t wrap_key_data choice
            permutation""",
        "its results are integers": """
            bernoulli binomial categorical geometric multinomial poisson randint""",
    },
    "scipy.optimize": {"it searches": "minimize"},
}

TABLE = "".join([NUMPY, LAX, NN, SPECIAL, LINALG, STATS, REST])
NONE: dict[str, dict[str, str]] = {
    "numpy": NUMPY_NONE,
    "lax": LAX_NONE,
    "nn": NN_NONE,
    "scipy.special": SPECIAL_NONE,
    "scipy.linalg": LINALG_NONE,
    "scipy.stats": STATS_NONE,
    **REST_NONE,
}


def expand(line: str) -> list[str]:
    """Expand `f.{a,b}(x)` to `f.a(x)` and `f.b(x)`; several braces give all combinations.

    Example:
        >>> expand("{a,b}.{c,d}(x)")
        ['a.c(x)', 'a.d(x)', 'b.c(x)', 'b.d(x)']
    """
    found = re.search(r"\{([^{}]*)\}", line)
    if found is None:
        return [line]
    head, tail = line[: found.start()], line[found.end() :]
    return [x for part in found[1].split(",") for x in expand(head + part + tail)]


def rows() -> list[tuple[str, set[str]]]:
    """Return every expression, with its words after `#`."""
    out = []
    for line in filter(None, TABLE.replace("\n    ", " ").splitlines()):
        text, _, flags = line.partition("  # ")
        out += [(x, set(flags.split())) for x in expand(text)]
    return out


def subject(expression: str) -> str | None:
    """Return the function that an expression tests, such as `scipy.stats.norm.pdf`, or None."""
    found = re.search(rf"\b({'|'.join(SPACES)})((?:\.\w+)+)", expression)
    if found is None:
        return None
    # A method of a function (`jnp.add.reduce`) belongs to it; `.linalg.` and the like do not.
    return SPACES[found[1]] + found[2]


def without_derivative() -> dict[str, str]:
    """Return the functions that are in no row, with the reasons."""
    return {
        f"{space}.{name}": reason
        for space, reasons in NONE.items()
        for reason, names in reasons.items()
        for name in names.split()
    }
