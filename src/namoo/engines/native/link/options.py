"""How LLVM compiles: part of the key of everything that it produced."""

# The IR is emitted in its final form: only what inlining and stack slots leave is cleaned up, and
# loops keep a block before them, where their variables get their first values.
PASSES = ("always_inliner", "sroa", "simplify_cfg", "loop_simplify")
# A higher level takes LLVM a tenth longer; no program was found that it makes faster.
LEVEL = 1
# Addresses are emitted in their final form, too: loop strength reduction took four tenths of LLVM's
# time, and no program was found that it makes faster.
OPTIONS = ("disable-lsr",)
