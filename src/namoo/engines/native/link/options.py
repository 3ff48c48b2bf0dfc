"""How LLVM compiles: part of the key of everything that it produced."""

# The IR is emitted in its final form: the passes only inline, promote stack slots and clean up
# after that; loops keep their preheaders.
PASSES = ("always_inliner", "sroa", "simplify_cfg", "loop_simplify")
# A higher level takes LLVM a tenth longer, and made no measured program faster.
LEVEL = 1
# Addresses are emitted in their final form, too: loop strength reduction took four tenths of LLVM's
# time, and made no measured program faster.
OPTIONS = ("disable-lsr",)
