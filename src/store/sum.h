/* sum: a 64-bit checksum of a row's bytes, to notice what a disk has changed.
 *
 * Each step is a bijection of the state for a given word and of the word for a given state,
 * so any change within one aligned word of eight bytes is always noticed, and any other with
 * all but one chance in 2^64. It is no defence against a person.
 *
 * The numbers are on disk: never change how they come about.
 *
 * Memory   none.
 * Threads  any.
 */
#ifndef WEIR_STORE_SUM_H
#define WEIR_STORE_SUM_H

#include "base/str.h"

/* The checksum of `bytes` that belong to `owner` (a run, or 0). */
uint64_t sum_of(uint64_t owner, struct str bytes);

#endif
