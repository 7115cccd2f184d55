# Ctrl-C in the middle of a long loop, and the scratch memory of threads.
#
# Memory is taken in order, given back to a mark, and freed at the end. Kernels take what they need,
# check `failed` once, and release on leaving, so that a search over hundreds of features asks the
# system for memory only a few times.

from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc

cdef bint signal_raised() noexcept with gil

cdef object take_error()

ctypedef unsigned char branch_t

ctypedef struct Block:
    Block* older
    size_t size

ctypedef struct Arena:
    Block* block        # the newest block; older ones stay valid until arena_free
    size_t used         # bytes of the newest block in use
    bint failed         # whether the system refused memory
    bint* stop          # shared by all threads: whether to wind up; NULL if nobody can ask for it
    bint asks           # whether this thread asks for it
    char apart[64]      # no line of the cache holds what two threads write all the time

ctypedef struct Mark:
    Block* block
    size_t used

cdef enum:
    NO_BRANCH = 255     # of a bin that holds no row of the node
    MAX_PARTS = 256     # of a node's rows, for as many threads
    APART = 8           # numbers between what two threads write: a line of the cache
    ALIGNMENT = 64
    FIRST_BLOCK = 1 << 16
    LONG_WORK = 50_000  # cells, more of which are worth asking for Ctrl-C


cdef inline void arena_init(Arena* arena) noexcept nogil:
    arena.block = NULL
    arena.used = 0
    arena.failed = False
    arena.stop = NULL
    arena.asks = False


cdef inline bint must_stop(Arena* arena, Py_ssize_t n_cells) noexcept nogil:
    """Whether a thread that has so many cells to go through should rather wind up."""
    if arena.stop == NULL or n_cells < LONG_WORK:
        return False
    if arena.asks and not arena.stop[0] and signal_raised():
        arena.stop[0] = True
    return arena.stop[0]


cdef inline void* arena_take(Arena* arena, size_t n_bytes) noexcept nogil:
    """`n_bytes` of uninitialised memory, or NULL with `arena.failed` set."""
    cdef:
        Block* block
        size_t size
        size_t header = ALIGNMENT
    n_bytes = (n_bytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    if arena.block == NULL or arena.used + n_bytes > arena.block.size:
        size = FIRST_BLOCK if arena.block == NULL else 2 * arena.block.size
        if size < n_bytes + header:
            size = n_bytes + header
        block = <Block*> malloc(size)
        if block == NULL:
            arena.failed = True
            return NULL
        block.older = arena.block
        block.size = size
        arena.block = block
        arena.used = header
    cdef void* memory = <char*> arena.block + arena.used
    arena.used += n_bytes
    return memory


cdef inline double* take_doubles(Arena* arena, size_t n) noexcept nogil:
    return <double*> arena_take(arena, n * sizeof(double))


cdef inline int32_t* take_ints(Arena* arena, size_t n) noexcept nogil:
    return <int32_t*> arena_take(arena, n * sizeof(int32_t))


cdef inline branch_t* take_branches(Arena* arena, size_t n) noexcept nogil:
    return <branch_t*> arena_take(arena, n)


cdef inline Mark arena_mark(Arena* arena) noexcept nogil:
    cdef Mark mark
    mark.block = arena.block
    mark.used = arena.used
    return mark


cdef inline void arena_release(Arena* arena, Mark mark) noexcept nogil:
    """Give back all that was taken since `mark`."""
    # A newer, larger block is kept in place of the old one: what was taken before the mark lives
    # on in the older blocks, and the next call finds the room it needs at once.
    if arena.block == mark.block:
        arena.used = mark.used
    else:
        arena.used = ALIGNMENT


cdef inline void arena_free(Arena* arena) noexcept nogil:
    cdef Block* older
    while arena.block != NULL:
        older = arena.block.older
        free(arena.block)
        arena.block = older


cdef class Arenas:
    """One arena for each thread; freed with the object."""
    cdef Arena* of_thread
    cdef int n_threads
    cdef bint stop

    cdef int finish(self) except -1
