/* gzip: compress and decompress one message.
 *
 * zlib's state lives only while a function here runs: about 40 KiB to inflate, 256 KiB to
 * deflate. So an idle call holds none, however many calls use gzip.
 *
 * Memory   none between calls.
 * Threads  any.
 * Source   RFC 1952; grpc/doc/compression.md.
 */
#ifndef WEIR_RPC_GZIP_H
#define WEIR_RPC_GZIP_H

#include "base/buf.h"
#include "base/err.h"

/* Append the decompressed `bytes` to `out`. Never inflates more than `out` has room for.
 * errors  ERR_INTERNAL not gzip, cut short or damaged; ERR_TOO_LARGE past the limit of `out` */
MUST_CHECK bool gzip_inflate(struct str bytes, struct buf *out, struct err *e);

/* Append `bytes` compressed. Prefers speed to size, because all other calls of the loop wait.
 * False, and nothing appended, when the result is no shorter than the input or does not fit. */
bool gzip_deflate(struct str bytes, struct buf *out);

#endif
