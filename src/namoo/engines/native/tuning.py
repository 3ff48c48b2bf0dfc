"""Constants of the native engine: limits that keep it correct or bounded, and fitted numbers.

The fitted numbers were chosen by timing programs on one machine: x86-64 with AVX-512, 2 cores, and
the LLVM of the llvmlite that `pyproject.toml` asks for. On another machine they are still right,
only perhaps not the fastest. Work is counted in simple operations on one element, unless a comment
says otherwise.
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
# How many operations are nested in one expression before a value is stored after all: bounds the
# recursion of code generation.
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

# From this cost on, a value that is read more than once is stored and not computed again.
EXPENSIVE = 8
# A value made of three arrays or more that readers so many times its size read is stored, too.
REREAD = 16

# Loops over elements.

# How often the body of a reduction's inner loop is repeated.
UNROLL = 4
# Functions of at least this cost have long chains of dependent steps.
SLOW_FUNCTION = 16
# Rows of at most this many elements are short.
SHORT_ROW = 512
# Arrays of at least this many elements are not in the caches.
UNCACHED_ELEMENTS = 1 << 18
# Bytes that are prefetched ahead of their use.
PREFETCH_BYTES = 4096
# This many cache lines stay in the first cache until they are used again.
L1_LINES = 256
# Vector instructions that an element costs which is loaded, or stored, by itself.
GATHERED = 2.5
SCATTERED = 3.5
# Vector instructions that add the lanes of a vector to one number.
FOLDED = 8
# What follows sums of rows is computed for many rows at once from this cost on.
FINISHED_TOGETHER = 4
# Vectors after which a pattern repeats that runs along an axis shorter than a vector, at most: each
# has code of its own.
JOINED_COPIES = 3

# Reductions of many elements to few.

# With fewer results than this, and more elements than that, a reduction runs in blocks.
FEW_RESULTS = 64
MANY_TERMS = 1 << 16
# Elements that one thread reduces.
REDUCTION_BLOCK = 4096

# Calls of kernels.

# From this much work on, threads share a kernel.
PARALLEL_WORK = 1 << 17
# Work that a thread takes at least.
SMALLEST_PIECE = 1 << 15
# What a call of a kernel costs besides its own work.
CALL_WORK = 64
# Fewer calls than this are written out; more become a table that a loop reads.
FEW_CALLS = 16

# Compiling.

# A module of this many characters is worth a thread that compiles it.
MODULE_PART = 50_000

# Matrix products. "Vector multiplications" are fused multiply-adds of one vector.

# From this many multiplications on, BLAS computes a product; earlier where the rows of the left
# operand are contiguous and its terms are not: BLAS copies those first.
BLAS_WORK = 1 << 34
BLAS_WORK_TRANSPOSED = 1 << 30
# BLAS products are cut into this many blocks, unless a side would be shorter than that.
BLAS_BLOCKS = 8
BLAS_BLOCK = 384
# Sums of more terms than this are computed in parts if there are few of them: threads share the
# parts, and the operands of a part fit into a cache.
LONG_SUM = 1 << 13
SUM_PARTS = 32
SUM_PARTS_ELEMENTS = 1 << 18
# Fused multiply-adds in flight: with fewer independent sums, the units wait.
FMA_LATENCY = 8
# Bytes of a panel on the stack, at most.
PANEL_BYTES = 1 << 19
# From this many rows on, and with a stride of so many bytes in all, a panel is copied even if its
# columns are contiguous.
ROWS_TO_PACK = 128
BYTES_TO_PACK = 1 << 21
# A product has at least this many units of work, if it has as many tiles.
PRODUCT_UNITS = 32
# From this many vector multiplications on, running a product takes longer than compiling it.
LONG_PRODUCT = 1 << 22
# From this many multiplications on, the first tile of a panel copies what it reads, and no loop
# does so before it: one more loop to compile, about one percent faster.
COPY_IN_TILE_WORK = 1 << 27
# Operations on the elements of a tile beyond which they are a loop over its rows.
EPILOGUE_LIMIT = 48
# From this many vector multiplications on, functions compute the sums, which other products share.
# What follows gets the sums through memory, which costs nothing if they have this many terms.
SHARED_SUMS_WORK = 1 << 20
SHARED_SUMS_TERMS = 256
# If what follows has this cost, the sums are always computed by functions: LLVM would otherwise
# keep constants in registers that the sums need.
SHARED_SUMS_COST = 16
# With this many terms, the last rows are a whole tile that repeats some rows, if those are at most
# this fraction of all: less code, the more so where the tile ends with a loop over rows.
REPEATED_ROWS_TERMS = 64
REPEATED_ROWS = 1 / 256
REPEATED_ROWS_WITH_LOOP = 1 / 128
# Vector multiplications in the body of a loop; and how many are written out without a loop.
TILE_LOOP_BODY = 16
TILE_UNROLLED = 64
# Rows of a copied panel are prefetched this many terms ahead.
PANEL_PREFETCH = 8
# Vector multiplications that one element costs which is stored by itself, in a convolution.
SCATTERED_STORE = 2

# Sorting.

# Rows up to this length are sorted by a network, in any case.
ALWAYS_NETWORK = 32
# Rows up to this length are, where most lanes have a row.
LONGEST_NETWORK = 256
# Up to this length a network is written out, with all elements in registers.
UNROLLED_NETWORK = 16
# Contiguous rows of one array are sorted in registers up to this length, from this many elements
# of the array on.
LONGEST_SHORT_ROW = 1024
SHORT_ROWS_ELEMENTS = 2048
# Threads share the rows of a radix sort in this many parts, each with its own scratch memory.
RADIX_PARTS = 8
# From this length on, wide digits pay, whose tables of counts are larger.
WIDE_DIGITS = 700
# From this length on, threads share one row.
PARALLEL_ROW = 1 << 18
# The longest list of greatest elements that is kept while a row is read.
LONGEST_TOP_K = 512
# How often the loop over a row is unrolled there.
TOP_K_UNROLL = 4

# Scatters.

# The rows of the result are cut into this many parts; each part reads all indices.
SCATTER_PARTS = 16
# From this many elements on, a single window is written in place and not merged element by element.
SCATTER_IN_PLACE = 64
# Windows of fewer elements cost less than reading their indices again.
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

# Values of up to this many elements may live in registers, in a loop body of at most this work.
REGISTER_ELEMENTS = 64
REGISTER_WORK = 6000
# Pooling windows of up to this many elements are unrolled.
UNROLLED_WINDOW = 32
# Up to this many elements, a concatenation is computed where it is read.
INLINE_CONCATENATION = 64
# Vectors of a cumulative operation that are in flight at once.
CUMULATIVE_UNROLL = 4
# The cost of a hash of a random key.
HASH_COST = 100
