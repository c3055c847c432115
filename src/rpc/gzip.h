/* gzip: one message compressed, and back.
 *
 * zlib's own state lives only while a function here runs: about 40 KiB to inflate, 256 KiB to
 * deflate. So a call that is quiet holds none, however many calls speak gzip.
 *
 * Memory   none beyond a call.
 * Threads  any.
 * Source   RFC 1952; grpc/doc/compression.md.
 */
#ifndef WEIR_RPC_GZIP_H
#define WEIR_RPC_GZIP_H

#include "base/buf.h"
#include "base/err.h"

/* Append what `bytes` hold to `out`. No more is ever inflated than `out` has room for.
 * errors  ERR_INTERNAL not gzip, cut short or damaged; ERR_TOO_LARGE past the limit of `out` */
MUST_CHECK bool gzip_inflate(struct str bytes, struct buf *out, struct err *e);

/* Append `bytes` compressed, fast rather than small: all other calls of the loop wait. False,
 * and nothing appended, when that is no shorter than the bytes themselves or does not fit. */
bool gzip_deflate(struct str bytes, struct buf *out);

#endif
