/* single: header fields that may occur only once.
 *
 * Given two values, one reader uses the first and another the last, so a proxy might check one
 * value while we obey the other. Fields for authentication, framing or content type may also
 * not appear as trailers, because those decisions have been made by then.
 *
 * Memory   borrows.
 * Threads  none.
 * Source   RFC 9110 5.3 and 6.5.1; checks.md P3.
 */
#ifndef WEIR_SERVER_SINGLE_H
#define WEIR_SERVER_SINGLE_H

#include "server/exchange.h"

/* The name of the first such field that is repeated; empty: none is. */
struct str single_repeated(const struct field *fields, size_t count);

/* Whether a field with this name, in upper or lower case, may appear in a trailer section. */
bool single_may_trail(struct str name);

#endif
