"""The native engine: a whole program becomes machine code through LLVM.

Read in this order: `ir` (text of LLVM functions), `index` (which element), `graph` (what is
computed), `plan` (which loops, which memory), `kernel` (the loops), `driver` (the order of calls
and control flow), `link` (machine code and its cache), `engine` (all of it, in a row).
"""
