/* sum: a 64-bit checksum of a row's bytes, to detect corruption by the disk.
 *
 * Each step is a bijection of the state for a given word, and of the word for a given state. So
 * a change within one aligned word of eight bytes is always detected, and any other change is
 * missed with a chance of one in 2^64. It is no defence against tampering.
 *
 * The sums are on disk: never change the algorithm.
 *
 * Memory   none.
 * Threads  any.
 */
#ifndef WEIR_STORE_SUM_H
#define WEIR_STORE_SUM_H

#include "base/str.h"

/* The checksum of `bytes`, which belong to `owner` (a run, or 0). */
uint64_t sum_of(uint64_t owner, struct str bytes);

#endif
