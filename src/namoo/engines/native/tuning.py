"""Constants of the native engine: limits that keep it correct or bounded, and fitted numbers.

The fitted numbers (everything after the limits) were chosen by timing programs on one machine, an
AMD EPYC with AVX-512 and 2 cores, with the LLVM of llvmlite 0.50, in November 2026. On
another machine results are the same, though perhaps not computed as fast. Work is counted in simple
operations on one element, unless a comment says otherwise.
"""

# Limits and facts: they hold on every machine.

# Buffers start at multiples of this many bytes: a cache line, and the widest vector.
ALIGNMENT = 64
# Bytes of a cache line.
CACHE_LINE = 64
# Bytes of a page of memory.
PAGE = 4096
# Bytes of the widest vectors that kernels are written for; LLVM splits them where the CPU has
# narrower ones.
VECTOR_BYTES = 64
# An expression nested deeper than this is cut by storing a value: bounds the recursion of code
# generation.
DEPTH_LIMIT = 64
# Roots of one kernel: bounds its code.
ROOTS_LIMIT = 24
# Work of a loop between two checks for signals: a few milliseconds at most.
WORK_BETWEEN_SIGNAL_CHECKS = 1 << 20
# A thread takes no more work than this at once: the caller checks for signals between two pieces.
LONGEST_PIECE = 1 << 28
# Blocks of a BLAS product have no more multiplications than this, for the same reason.
BLAS_LARGEST_BLOCK = 1 << 32
# More terms than this are summed in blocks, however many sums there are: each addition rounds.
LONG_REDUCTION = 1 << 22

# Fusion.

# A value of at least this cost that is read more than once is stored, not recomputed.
EXPENSIVE = 8
# A value computed from three or more arrays is stored if a reader is this many times its size.
REREAD = 16

# Loops over elements.

# The unroll factor of a reduction's inner loop.
UNROLL = 4
# Functions of at least this cost have long chains of dependent steps.
SLOW_FUNCTION = 16
# Rows of at most this many elements are short.
SHORT_ROW = 512
# Rows of at most this many elements stay in registers between the stages of a kernel, for as many
# rows at once as a vector has lanes.
ROW_IN_REGISTERS = 16
# Arrays of at least this many elements are not in the caches.
UNCACHED_ELEMENTS = 1 << 18
# The prefetch distance in bytes.
PREFETCH_BYTES = 4096
# This many cache lines stay in the L1 cache until they are used again.
L1_LINES = 256
# The cost, in vector instructions, of loading or storing a single element.
GATHERED = 2.5
SCATTERED = 3.5
# Squares of elements are transposed in registers by kernels of at most this cost: the code for each
# of their rows is written out.
SQUARE_COST = 24
# Columns of a strip that is transposed into memory on the stack.
STRIP_COLUMNS = 128
# Vector instructions for the horizontal sum of a vector.
FOLDED = 8
# An epilogue of row sums of at least this cost is computed for a vector of rows at once.
FINISHED_TOGETHER = 4
# The longest period, in vectors, of a pattern along an axis shorter than a vector: each vector of a
# period has its own code.
JOINED_COPIES = 3

# Reductions of many elements to few.

# A reduction with fewer results than the first and more elements than the second runs in blocks.
FEW_RESULTS = 64
MANY_TERMS = 1 << 16
# Elements that one thread reduces.
REDUCTION_BLOCK = 4096

# Calls of kernels.

# Kernels with at least this much work run on several threads.
PARALLEL_WORK = 1 << 17
# The least work that a thread takes at once.
SMALLEST_PIECE = 1 << 15
# The overhead of calling a kernel.
CALL_WORK = 64
# Fewer calls than this are unrolled; more become a table that a loop reads.
FEW_CALLS = 16

# Compiling.

# A module of this many characters is worth a thread that compiles it.
MODULE_PART = 50_000
# In programs of at most this many kernels, those that are called once are inlined.
INLINED_KERNELS = 8

# Matrix products. "Vector multiplications" are fused multiply-adds of one vector.

# Products with at least this many multiplications are left to BLAS. The second limit is for a left
# operand whose terms are not contiguous: BLAS packs it first.
BLAS_WORK = 1 << 34
BLAS_WORK_TRANSPOSED = 1 << 30
# Where the number of rows is known at run time only, products of fewer rows than a tile has are
# computed in tiles of these many.
SMALLER_TILES = (4, 1)
# BLAS products are cut into this many blocks, unless a side would become shorter than the second
# number.
BLAS_BLOCKS = 8
BLAS_BLOCK = 384
# Sums of more terms than this are computed in parts if there are few of them: threads share the
# parts, and the operands of a part fit into a cache.
LONG_SUM = 1 << 13
SUM_PARTS = 32
SUM_PARTS_ELEMENTS = 1 << 18
# Fused multiply-adds in flight: with fewer independent sums, the FMA units stall.
FMA_LATENCY = 8
# The largest panel, in bytes, that is packed on the stack.
PANEL_BYTES = 1 << 19
# A panel is packed even if its columns are contiguous when it is read by this many rows and spans
# this many bytes.
ROWS_TO_PACK = 128
BYTES_TO_PACK = 1 << 21
# A product is divided into at least this many units of work, if it has as many tiles.
PRODUCT_UNITS = 32
# From this many vector multiplications on, running a product takes longer than compiling it.
LONG_PRODUCT = 1 << 22
# Products with at least this many multiplications pack a panel while its first tile is computed,
# not in a loop before it: one more loop to compile, about one percent faster.
COPY_IN_TILE_WORK = 1 << 27
# An epilogue of more operations than this is a loop over the rows of its tile.
EPILOGUE_LIMIT = 48
# Products with at least this many vector multiplications call functions for the sums, which other
# products share. The epilogue then reads the sums from memory, which is negligible if they have
# this many terms.
SHARED_SUMS_WORK = 1 << 20
SHARED_SUMS_TERMS = 256
# With an epilogue of this cost the sums are always computed by functions: LLVM would otherwise keep
# its constants in registers that the sums need.
SHARED_SUMS_COST = 16
# With this many terms, the last tile has full height and repeats rows of the one before, if these
# are at most this fraction of all rows: less code, above all where an epilogue is a loop.
REPEATED_ROWS_TERMS = 64
REPEATED_ROWS = 1 / 256
REPEATED_ROWS_WITH_LOOP = 1 / 128
# Vector multiplications in the body of an unrolled loop; and up to which number there is no loop.
TILE_LOOP_BODY = 16
TILE_UNROLLED = 64
# Rows of a packed panel are prefetched this many terms ahead.
PANEL_PREFETCH = 8
# The cost of storing a single element in a convolution, in vector multiplications.
SCATTERED_STORE = 2

# Products with few columns exchange their operands from this many terms on, if the rows of the left
# one are contiguous.
TERMS_TO_EXCHANGE = 64
# Products of narrow numbers with fewer multiplications are not worth joining words.
NARROW_WORK = 1 << 14

# Sorting.

# Rows up to this length are always sorted by a network.
ALWAYS_NETWORK = 32
# Rows up to this length are sorted by a network if there are enough rows to fill most lanes.
LONGEST_NETWORK = 256
# Networks up to this length are unrolled, with all elements in registers.
UNROLLED_NETWORK = 16
# Contiguous rows up to this length are sorted in registers, if the array has this many elements.
LONGEST_SHORT_ROW = 1024
SHORT_ROWS_ELEMENTS = 2048
# Threads share the rows of a radix sort in this many parts, each with its own scratch memory.
RADIX_PARTS = 8
# Rows of at least this length are sorted by wide digits, whose tables of counts are larger.
WIDE_DIGITS = 700
# Rows of at least this length are shared by several threads.
PARALLEL_ROW = 1 << 18
# The longest list of greatest elements that `top_k` maintains while it reads a row.
LONGEST_TOP_K = 512
# The unroll factor of its loop over a row.
TOP_K_UNROLL = 4

# Scatters.

# The rows of the result are divided into this many parts, each of which reads all indices: at most
# one part for so many elements of a window, whose writing takes about as long as reading an index.
SCATTER_PARTS = 16
SCATTER_ELEMENTS_OF_AN_INDEX = 16
# So many updates are combined in up to so many parts, each of which has so many updates for each
# element of its copy of the result.
SCATTER_COPIED_UPDATES = 1 << 16
SCATTER_COPIES = 8
SCATTER_UPDATES_OF_A_COPY = 4
# A single window of at least this many elements is written in place; a smaller one is selected
# element by element.
SCATTER_IN_PLACE = 64
# Smaller windows are not shared by threads: writing one costs less than reading its indices again.
SCATTER_SHARED_WINDOW = 32

# Linear algebra.

# Stacks of matrices with sides up to this length are computed by generated code, a matrix in each
# lane. Eager mode computes LU and triangular solves of these in the same way.
SMALL_MATRIX = 32
# Threads share the LAPACK calls of a stack in this many parts, each with its own workspace.
LAPACK_PARTS = 16
# From this much work on, a single call uses LAPACK's own threads.
LAPACK_SHARED_WORK = 1 << 27
# Rows that are computed together: independent sums.
SMALL_MATRIX_ROWS = 4
# Matrices of at most this many elements are in registers, and their loops are unrolled.
UNROLLED_MATRIX = 20

# Control flow, windows, concatenation, cumulative operations, random bits.

# Arrays of up to this many elements are kept in registers, in a loop body of at most this work.
REGISTER_ELEMENTS = 64
REGISTER_WORK = 6000
# Pooling windows of up to this many elements are unrolled.
UNROLLED_WINDOW = 32
# A concatenation of up to this many elements is computed where it is read.
INLINE_CONCATENATION = 64
# A concatenation of up to this many pieces is computed where elementwise operations read it.
COMPUTED_PIECES = 3
# Vectors of a cumulative operation that are in flight at once.
CUMULATIVE_UNROLL = 4
# The cost of a hash of a random key.
HASH_COST = 100

# Fourier transforms.

# The largest prime factor that a pass transforms directly; longer ones go through a convolution.
FFT_LARGEST_PRIME = 31
# The largest power of two that is the radix of a pass after the first, as its logarithm.
FFT_LARGEST_POWER = 3
# From this length on, a line is transformed as a matrix whose rows and columns threads share.
FFT_LONG_LINE = 1 << 15
# Bytes of the buffers between passes that are on the stack, at most; larger ones are in the arena,
# for so many parts of the work.
FFT_STACK = 1 << 19
FFT_PARTS = 8
