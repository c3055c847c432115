/* origin: which web pages a list of patterns names.
 *
 * A pattern that ends in ":*" is a host with any port and with none; one with a first label
 * "*" stands for every name below the rest; any other is that origin alone.
 *
 * Private to socketio/.
 *
 * Memory   none.
 * Threads  any.
 * Source   RFC 6454 6.1 (what a browser sends).
 */
#ifndef WEIR_SOCKETIO_ORIGIN_H
#define WEIR_SOCKETIO_ORIGIN_H

#include "base/str.h"

bool origin_matches(struct str pattern, struct str origin);

#endif
