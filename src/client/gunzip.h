/* gunzip: undo gzip, piece by piece, stopping wherever the reader wants to.
 *
 * libcurl would do it, too, but keeps what a paused reader does not take, and a thousandfold
 * of what arrived is much. Here what is not taken stays compressed.
 *
 * Private to client/.
 *
 * Memory   owns zlib's state and the compressed bytes that wait, as many as were fed at once.
 * Lends    each piece to on_bytes, never empty.
 * Threads  none.
 * Source   RFC 1952.
 */
#ifndef WEIR_CLIENT_GUNZIP_H
#define WEIR_CLIENT_GUNZIP_H

#include "base/err.h"

struct gunzip;

/* False: no more for now; gunzip_go() goes on. */
typedef bool gunzip_fn(struct str bytes, void *ctx);

struct gunzip *gunzip_new(gunzip_fn *on_bytes, void *ctx);
void gunzip_free(struct gunzip *gunzip); /* accepts NULL */

/* on_bytes runs before these return, zero or more times. Not to be fed while it waits.
 * errors  ERR_UNAVAILABLE this is no gzip; ERR_TOO_LARGE more at once than a MiB */
MUST_CHECK bool gunzip_feed(struct gunzip *gunzip, struct str bytes, struct err *e);
MUST_CHECK bool gunzip_go(struct gunzip *gunzip, struct err *e);

bool gunzip_waits(const struct gunzip *gunzip); /* on_bytes wanted no more */
bool gunzip_whole(const struct gunzip *gunzip); /* nothing is missing at its end */

#endif
