# The hash of a row's number.

from libc.stdint cimport uint64_t


cdef inline uint64_t hash_of(uint64_t row) noexcept nogil:
    """A number that looks random: the one that splitmix64, seeded with 0, gives for the row."""
    row = (row + 1) * <uint64_t> 0x9E3779B97F4A7C15
    row = (row ^ (row >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    row = (row ^ (row >> 27)) * <uint64_t> 0x94D049BB133111EB
    return row ^ (row >> 31)
