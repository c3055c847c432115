/* hex: bytes as hexadecimal digits.
 *
 * Memory   none of its own.
 * Threads  any.
 */
#ifndef WEIR_WIRE_HEX_H
#define WEIR_WIRE_HEX_H

#include "base/buf.h"

/* Append two lower-case digits for each byte. False: `out` is full. */
bool hex_append(struct buf *out, struct str bytes);

/* Read 2 * count digits, in either case, into `count` bytes. False: `digits` is something else. */
MUST_CHECK bool hex_read(struct str digits, char *ret, size_t count);

#endif
