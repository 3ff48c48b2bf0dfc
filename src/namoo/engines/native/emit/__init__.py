"""Code generation for a whole program: its entry function and the calls of kernels."""
