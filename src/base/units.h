/* units: durations and sizes as people write them.
 *
 * A number needs a unit; only 0 may stand alone. "20ms", "1.5s", "5m", "500us" and "2h" are
 * durations; "30000B", "256KiB", "4MiB" and "1GiB" are sizes (1 KiB = 1024 bytes).
 *
 * Threads  any; values only.
 */
#ifndef WEIR_BASE_UNITS_H
#define WEIR_BASE_UNITS_H

#include "base/buf.h"
#include "base/err.h"

/* Microseconds. Decimals are allowed if the result is a whole number of microseconds. */
MUST_CHECK bool units_duration(struct str text, uint64_t *ret_us, struct err *e);

/* Bytes. */
MUST_CHECK bool units_size(struct str text, uint64_t *ret_bytes, struct err *e);

/* Append in the largest unit that leaves no fraction; units_duration and units_size read back
 * the same number. */
bool units_append_duration(struct buf *out, uint64_t us);
bool units_append_size(struct buf *out, uint64_t bytes);

#endif
