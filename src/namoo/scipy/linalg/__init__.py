"""Linear algebra with SciPy's names: JAX's `jax.scipy.linalg`.

Example:
    >>> import namoo.numpy as jnp
    >>> import namoo.scipy.linalg
    >>> namoo.scipy.linalg.expm(jnp.zeros((2, 2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
"""

from namoo._base.source_context import make_entry_points as _guard
from namoo.scipy.linalg.factors import (
    cho_factor,
    cholesky,
    eigh,
    hessenberg,
    lu,
    lu_factor,
    polar,
    qr,
    qr_multiply,
    rsf2csf,
    schur,
    svd,
)
from namoo.scipy.linalg.functions import expm, expm_frechet, funm, sqrtm
from namoo.scipy.linalg.structured import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
from namoo.scipy.linalg.systems import (
    cho_solve,
    det,
    inv,
    lu_solve,
    solve,
    solve_sylvester,
    solve_triangular,
)
from namoo.scipy.linalg.tridiagonal import eigh_tridiagonal

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "circulant",
    "companion",
    "convolution_matrix",
    "det",
    "dft",
    "eigh",
    "eigh_tridiagonal",
    "expm",
    "expm_frechet",
    "fiedler",
    "fiedler_companion",
    "funm",
    "hadamard",
    "hankel",
    "helmert",
    "hessenberg",
    "hilbert",
    "inv",
    "invhilbert",
    "invpascal",
    "leslie",
    "lu",
    "lu_factor",
    "lu_solve",
    "pascal",
    "polar",
    "qr",
    "qr_multiply",
    "rsf2csf",
    "schur",
    "solve",
    "solve_sylvester",
    "solve_triangular",
    "sqrtm",
    "svd",
    "toeplitz",
]
__dir__ = __all__.copy

_guard(globals())
