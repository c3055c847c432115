/* gunzip: decompress gzip piece by piece; the reader may pause at any point.
 *
 * libcurl can decompress too, but while the reader is paused it buffers the decompressed bytes,
 * which may be a thousand times the received ones. Here the unread rest stays compressed.
 *
 * Private to client/.
 *
 * Memory   owns zlib's state and the waiting compressed bytes, at most one feed.
 * Lends    each piece to on_bytes, never empty.
 * Threads  none.
 * Source   RFC 1952.
 */
#ifndef WEIR_CLIENT_GUNZIP_H
#define WEIR_CLIENT_GUNZIP_H

#include "base/err.h"

struct gunzip;

/* False: pause; gunzip_go() continues. */
typedef bool gunzip_fn(struct str bytes, void *ctx);

struct gunzip *gunzip_new(gunzip_fn *on_bytes, void *ctx);
void gunzip_free(struct gunzip *gunzip); /* accepts NULL */

/* on_bytes runs before these return, zero or more times. Do not feed it while it waits.
 * errors  ERR_UNAVAILABLE not gzip; ERR_TOO_LARGE more than 1 MiB in one feed */
MUST_CHECK bool gunzip_feed(struct gunzip *gunzip, struct str bytes, struct err *e);
MUST_CHECK bool gunzip_go(struct gunzip *gunzip, struct err *e);

bool gunzip_waits(const struct gunzip *gunzip); /* on_bytes has paused it */
bool gunzip_whole(const struct gunzip *gunzip); /* the input ended properly */

#endif
