"""The native engine: a whole program becomes machine code through LLVM.

`pipeline` lists the passes. Read in this order: `graph` (what is computed), `fuse` (which loops
compute it, in which order), `memory` (buffers), `ir` (LLVM functions as text, index arithmetic),
`kernels` (the code of the loops), `emit` (the entry function that calls them), `link` (machine
code), `cache` (programs that were compiled before), `engine` (what the rest of namoo calls).
"""
