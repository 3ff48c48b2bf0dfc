"""Linear algebra: systems, factorisations, eigenvalues and singular values."""
