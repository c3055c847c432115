/* single: header fields that mean one thing, and so may come once.
 *
 * Of two values one reader takes the first and another the last: what a proxy has judged is
 * then not what we obey. Nor may a field that says who asks, how the message is framed or what
 * it is come as a trailer, after all that has been decided.
 *
 * Memory   borrows.
 * Threads  none.
 * Source   RFC 9110 5.3 and 6.5.1; checks.md P3.
 */
#ifndef WEIR_SERVER_SINGLE_H
#define WEIR_SERVER_SINGLE_H

#include "server/exchange.h"

/* The name of the first such field that came again; empty: none did. */
struct str single_repeated(const struct field *fields, size_t count);

/* Whether a field with this name, in any case, may stand in a trailer section. */
bool single_may_trail(struct str name);

#endif
