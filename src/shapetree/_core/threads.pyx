"""Threads: how many loops may use, how Ctrl-C stops them, and their scratch memory.

The loop's main thread asks now and then whether a signal handler wants to raise. The exception is
kept until the loop has wound up, and raised from there.
"""

from libc.stdlib cimport calloc, free

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    #define shapetree_max_threads() omp_get_max_threads()
    #else
    #define shapetree_max_threads() 1
    #endif

    #if defined(_OPENMP) && !defined(_WIN32)
    #include <ctype.h>
    #include <errno.h>
    #include <pthread.h>
    #include <stdlib.h>

    /* The size of stacks that a variable of the environment asks for, as libgomp reads it: in
       kilobytes, or with a unit; 0 if it says nothing that can be read. */
    static size_t shapetree_read_size(const char* name) {
        const char* text = getenv(name);
        char* end;
        unsigned long size;
        int shift = 10;
        if (text == NULL) return 0;
        errno = 0;
        size = strtoul(text, &end, 10);
        if (errno || end == text) return 0;
        while (isspace((unsigned char) *end)) end++;
        switch (tolower((unsigned char) *end)) {
            case 'b': shift = 0; end++; break;
            case 'k': end++; break;
            case 'm': shift = 20; end++; break;
            case 'g': shift = 30; end++; break;
        }
        while (isspace((unsigned char) *end)) end++;
        if (*end != '\\0' || ((size << shift) >> shift) != size) return 0;
        return (size_t) size << shift;
    }

    static size_t shapetree_stack_size(void) {
        size_t size = shapetree_read_size("OMP_STACKSIZE");
        return size ? size : shapetree_read_size("GOMP_STACKSIZE");
    }

    static void* shapetree_wait(void* lock) {
        pthread_mutex_lock((pthread_mutex_t*) lock);
        pthread_mutex_unlock((pthread_mutex_t*) lock);
        return NULL;
    }

    /* Start threads, all of which wait for the last, and end them; returns how many there were. */
    static int shapetree_try_threads(int n, size_t stack_size) {
        pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        pthread_attr_t attributes;
        pthread_t* started = (pthread_t*) malloc(n * sizeof(pthread_t));
        int n_started = 0, i;
        if (started == NULL) return 0;
        pthread_attr_init(&attributes);
        /* A size that the system refuses is not used, here as in OpenMP. */
        if (stack_size) pthread_attr_setstacksize(&attributes, stack_size);
        pthread_mutex_lock(&lock);
        while (n_started < n
               && pthread_create(&started[n_started], &attributes, shapetree_wait, &lock) == 0)
            n_started++;
        pthread_mutex_unlock(&lock);
        for (i = 0; i < n_started; i++) pthread_join(started[i], NULL);
        pthread_attr_destroy(&attributes);
        free(started);
        return n_started;
    }

    /* OpenMP's threads, once started, wait for the next loop of as many. */
    static void shapetree_start_team(int n) {
        #pragma omp parallel num_threads(n)
        { }
    }
    #else
    static size_t shapetree_stack_size(void) { return 0; }
    static int shapetree_try_threads(int n, size_t stack_size) { (void) stack_size; return n; }
    static void shapetree_start_team(int n) { (void) n; }
    #endif
    """
    int shapetree_max_threads() nogil
    size_t shapetree_stack_size()
    int shapetree_try_threads(int n, size_t stack_size) nogil
    void shapetree_start_team(int n) nogil

# OpenMP, too, reads the environment once, when it is loaded.
cdef size_t STACK_SIZE = shapetree_stack_size()


def max_threads():
    """Threads that OpenMP would use, which the environment may limit."""
    return shapetree_max_threads()


def can_start(int n_threads):
    """Whether so many threads, with stacks as OpenMP's, can be started beside this one.

    OpenMP itself ends the process if they cannot.
    """
    cdef int n_started
    if n_threads < 1:
        return True
    with nogil:
        n_started = shapetree_try_threads(n_threads, STACK_SIZE)
    return n_started == n_threads


def start_team(int n_threads):
    """Start OpenMP's threads for loops of the calling thread, which is one of them."""
    if n_threads < 1:
        raise ValueError("n_threads must be at least 1")
    with nogil:
        shapetree_start_team(n_threads)


# --- Ctrl-C ---------------------------------------------------------------------------------------

cdef extern from "Python.h":
    int PyErr_CheckSignals() except -1

cdef object raised = None


cdef bint signal_raised() noexcept with gil:
    """Run pending signal handlers; whether one of them raised."""
    global raised
    try:
        PyErr_CheckSignals()
    except BaseException as error:
        raised = error
        return True
    return False


cdef object take_error():
    """The exception that a handler raised."""
    global raised
    error, raised = raised, None
    return error


# --- scratch memory -------------------------------------------------------------------------------

cdef class Arenas:

    def __cinit__(self, int n_threads):
        cdef int thread
        self.n_threads = n_threads
        self.of_thread = <Arena*> calloc(n_threads, sizeof(Arena))
        if self.of_thread == NULL:
            raise MemoryError("no memory for a search")
        for thread in range(n_threads):
            self.of_thread[thread].stop = &self.stop
            self.of_thread[thread].asks = thread == 0

    def __dealloc__(self):
        cdef int thread
        if self.of_thread != NULL:
            for thread in range(self.n_threads):
                arena_free(&self.of_thread[thread])
            free(self.of_thread)

    cdef int finish(self) except -1:
        """Raise what stopped the threads: Ctrl-C, or the lack of memory."""
        cdef int thread
        if self.stop:
            raise take_error()
        for thread in range(self.n_threads):
            if self.of_thread[thread].failed:
                raise MemoryError("no memory for a search")
        return 0
