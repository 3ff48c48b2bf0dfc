"""Linear algebra on stacks of matrices: the last two axes are the matrix, those before them count.

>>> import namoo.numpy as jnp
>>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 8.0]))
Array([1., 2.], dtype=float32)
"""

from namoo.errors import guard as _guard
from namoo.numpy.contraction import matmul as matmul
from namoo.numpy.contraction import tensordot as tensordot
from namoo.numpy.contraction import vecdot as vecdot
from namoo.numpy.linalg.decompositions import EighResult as EighResult
from namoo.numpy.linalg.decompositions import EigResult as EigResult
from namoo.numpy.linalg.decompositions import QRResult as QRResult
from namoo.numpy.linalg.decompositions import SVDResult as SVDResult
from namoo.numpy.linalg.decompositions import cholesky as cholesky
from namoo.numpy.linalg.decompositions import eig as eig
from namoo.numpy.linalg.decompositions import eigh as eigh
from namoo.numpy.linalg.decompositions import eigvals as eigvals
from namoo.numpy.linalg.decompositions import eigvalsh as eigvalsh
from namoo.numpy.linalg.decompositions import matrix_rank as matrix_rank
from namoo.numpy.linalg.decompositions import qr as qr
from namoo.numpy.linalg.decompositions import svd as svd
from namoo.numpy.linalg.decompositions import svdvals as svdvals
from namoo.numpy.linalg.determinants import SlogdetResult as SlogdetResult
from namoo.numpy.linalg.determinants import det as det
from namoo.numpy.linalg.determinants import slogdet as slogdet
from namoo.numpy.linalg.norms import cond as cond
from namoo.numpy.linalg.norms import matrix_norm as matrix_norm
from namoo.numpy.linalg.norms import norm as norm
from namoo.numpy.linalg.norms import vector_norm as vector_norm
from namoo.numpy.linalg.products import cross as cross
from namoo.numpy.linalg.products import diagonal as diagonal
from namoo.numpy.linalg.products import matrix_power as matrix_power
from namoo.numpy.linalg.products import multi_dot as multi_dot
from namoo.numpy.linalg.products import outer as outer
from namoo.numpy.linalg.products import trace as trace
from namoo.numpy.linalg.systems import inv as inv
from namoo.numpy.linalg.systems import lstsq as lstsq
from namoo.numpy.linalg.systems import pinv as pinv
from namoo.numpy.linalg.systems import solve as solve
from namoo.numpy.linalg.systems import tensorinv as tensorinv
from namoo.numpy.linalg.systems import tensorsolve as tensorsolve
from namoo.numpy.manipulation import matrix_transpose as matrix_transpose

_guard(globals())
