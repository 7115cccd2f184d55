"""How many threads the loops may use."""

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    #define shapetree_max_threads() omp_get_max_threads()
    #else
    #define shapetree_max_threads() 1
    #endif

    #if defined(_OPENMP) && !defined(_WIN32)
    #include <pthread.h>
    #include <stdlib.h>

    static void* shapetree_wait(void* lock) {
        pthread_mutex_lock((pthread_mutex_t*) lock);
        pthread_mutex_unlock((pthread_mutex_t*) lock);
        return NULL;
    }

    /* Start threads, all of which wait for the last, and end them; returns how many there were. */
    static int shapetree_try_threads(int n) {
        pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        pthread_t* started = (pthread_t*) malloc(n * sizeof(pthread_t));
        int n_started = 0, i;
        if (started == NULL) return 0;
        pthread_mutex_lock(&lock);
        while (n_started < n
               && pthread_create(&started[n_started], NULL, shapetree_wait, &lock) == 0)
            n_started++;
        pthread_mutex_unlock(&lock);
        for (i = 0; i < n_started; i++) pthread_join(started[i], NULL);
        free(started);
        return n_started;
    }

    /* OpenMP's threads, once started, wait for the next loop of as many. */
    static void shapetree_start_team(int n) {
        #pragma omp parallel num_threads(n)
        { }
    }
    #else
    static int shapetree_try_threads(int n) { return n; }
    static void shapetree_start_team(int n) { (void) n; }
    #endif
    """
    int shapetree_max_threads() nogil
    int shapetree_try_threads(int n) nogil
    void shapetree_start_team(int n) nogil


def max_threads():
    """Threads that OpenMP would use, which the environment may limit."""
    return shapetree_max_threads()


def can_start(int n_threads):
    """Whether so many threads can be started beside this one.

    OpenMP itself ends the process if they cannot.
    """
    cdef int n_started
    if n_threads < 1:
        return True
    with nogil:
        n_started = shapetree_try_threads(n_threads)
    return n_started == n_threads


def start_team(int n_threads):
    """Start OpenMP's threads for loops of the calling thread, which is one of them."""
    if n_threads < 1:
        raise ValueError("n_threads must be at least 1")
    with nogil:
        shapetree_start_team(n_threads)
