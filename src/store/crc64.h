/* crc64: CRC-64/NVME of a packed row, to detect corruption by the disk.
 *
 * Every change that lies within 64 bits one after the other is detected, wherever they begin, and
 * so are any two flipped bits of a row; any other change is missed with a chance of one in 2^64. It
 * is no defence against tampering. A third of what sum_of() costs, where the processor multiplies
 * polynomials; elsewhere by tables.
 *
 * The sums are on disk: never change the algorithm.
 *
 * Memory   none; the tables are made once.
 * Threads  any.
 * Source   NVM Express, NVM Command Set 1.0, 5.2.1.3.4 (polynomial 0xAD93D23594C93659, reflected,
 *          begun and ended with all ones); Gopal and others, "Fast CRC Computation for Generic
 *          Polynomials Using PCLMULQDQ", 2009.
 */
#ifndef WEIR_STORE_CRC64_H
#define WEIR_STORE_CRC64_H

#include "base/str.h"

uint64_t crc64_of(struct str bytes);

/* The same by tables alone, as processors without the instruction do it. */
uint64_t crc64_by_tables(struct str bytes);

#endif
