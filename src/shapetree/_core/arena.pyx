"""Scratch memory of the threads of one search."""

from libc.stdlib cimport calloc, free

from shapetree._core.interrupt cimport take_error


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
