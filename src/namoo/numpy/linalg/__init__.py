"""Linear algebra on stacks of matrices: the last two axes are the matrix, the others the stack.

Example:
    >>> import namoo.numpy as jnp
    >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 8.0]))
    Array([1., 2.], dtype=float32)
"""

from namoo._base.lazy import lazy as _lazily

_TABLE = {
    "numpy.contraction": "matmul tensordot vecdot",
    "numpy.linalg.decompositions": (
        "cholesky eig eigh EighResult EigResult eigvals eigvalsh matrix_rank qr QRResult svd "
        "SVDResult svdvals"
    ),
    "numpy.linalg.determinants": "det slogdet SlogdetResult",
    "numpy.linalg.norms": "cond matrix_norm norm vector_norm",
    "numpy.linalg.products": "cross diagonal matrix_power multi_dot outer trace",
    "numpy.linalg.systems": "inv lstsq pinv solve tensorinv tensorsolve",
    "numpy.manipulation": "matrix_transpose",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE, guarded=True)
