"""Linear algebra: small matrices by generated code, large ones by LAPACK."""
