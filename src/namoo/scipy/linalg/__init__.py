"""Linear algebra with SciPy's names: JAX's `jax.scipy.linalg`.

Example:
    >>> import namoo.numpy as jnp
    >>> import namoo.scipy.linalg
    >>> namoo.scipy.linalg.expm(jnp.zeros((2, 2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
"""

from namoo.scipy.linalg.factors import cho_factor as cho_factor
from namoo.scipy.linalg.factors import cholesky as cholesky
from namoo.scipy.linalg.factors import eigh as eigh
from namoo.scipy.linalg.factors import hessenberg as hessenberg
from namoo.scipy.linalg.factors import lu as lu
from namoo.scipy.linalg.factors import lu_factor as lu_factor
from namoo.scipy.linalg.factors import polar as polar
from namoo.scipy.linalg.factors import qr as qr
from namoo.scipy.linalg.factors import qr_multiply as qr_multiply
from namoo.scipy.linalg.factors import rsf2csf as rsf2csf
from namoo.scipy.linalg.factors import schur as schur
from namoo.scipy.linalg.factors import svd as svd
from namoo.scipy.linalg.functions import expm as expm
from namoo.scipy.linalg.functions import expm_frechet as expm_frechet
from namoo.scipy.linalg.functions import funm as funm
from namoo.scipy.linalg.functions import sqrtm as sqrtm
from namoo.scipy.linalg.structured import block_diag as block_diag
from namoo.scipy.linalg.structured import circulant as circulant
from namoo.scipy.linalg.structured import companion as companion
from namoo.scipy.linalg.structured import convolution_matrix as convolution_matrix
from namoo.scipy.linalg.structured import dft as dft
from namoo.scipy.linalg.structured import fiedler as fiedler
from namoo.scipy.linalg.structured import fiedler_companion as fiedler_companion
from namoo.scipy.linalg.structured import hadamard as hadamard
from namoo.scipy.linalg.structured import hankel as hankel
from namoo.scipy.linalg.structured import helmert as helmert
from namoo.scipy.linalg.structured import hilbert as hilbert
from namoo.scipy.linalg.structured import invhilbert as invhilbert
from namoo.scipy.linalg.structured import invpascal as invpascal
from namoo.scipy.linalg.structured import leslie as leslie
from namoo.scipy.linalg.structured import pascal as pascal
from namoo.scipy.linalg.structured import toeplitz as toeplitz
from namoo.scipy.linalg.systems import cho_solve as cho_solve
from namoo.scipy.linalg.systems import det as det
from namoo.scipy.linalg.systems import inv as inv
from namoo.scipy.linalg.systems import lu_solve as lu_solve
from namoo.scipy.linalg.systems import solve as solve
from namoo.scipy.linalg.systems import solve_sylvester as solve_sylvester
from namoo.scipy.linalg.systems import solve_triangular as solve_triangular
from namoo.scipy.linalg.tridiagonal import eigh_tridiagonal as eigh_tridiagonal
