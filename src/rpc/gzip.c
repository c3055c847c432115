#include "rpc/gzip.h"

#include "base/mem.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* the largest window, with gzip's header and trailer */
#define MEMORY_LEVEL 8        /* zlib's default */
#define PIECE_BYTES (16 * KIB)

static voidpf allocate(voidpf ctx, uInt count, uInt size) {
    (void)ctx;
    return mem_zero(count, size);
}

static void gzip_release(voidpf ctx, voidpf at) {
    (void)ctx;
    free(at);
}

static z_stream stream_over(struct str bytes) {
    assert(bytes.len <= UINT_MAX);
    return (z_stream){
        .zalloc = allocate,
        .zfree = gzip_release,
        .next_in = (Bytef *)(uintptr_t)bytes.at,
        .avail_in = (uInt)bytes.len,
    };
}

/* --- inflating ---------------------------------------------------------------------------- */

/* Inflate one piece to the end of `out`. At the limit the piece is empty, but zlib can still
 * report whether this was the end. */
static int inflate_piece(z_stream *stream, struct buf *out) {
    Bytef nowhere = 0; /* zlib needs a valid pointer even for zero bytes */
    size_t left = out->max_bytes - out->len;
    size_t len = left < PIECE_BYTES ? left : PIECE_BYTES;
    stream->next_out = len ? (Bytef *)buf_room(out, len) : &nowhere;
    stream->avail_out = (uInt)len;
    int result = inflate(stream, Z_NO_FLUSH);
    buf_grew(out, len - stream->avail_out);
    return result;
}

static bool inflate_all(z_stream *stream, struct buf *out, struct err *e) {
    for (;;) {
        bool at_limit = out->len == out->max_bytes;
        int result = inflate_piece(stream, out);
        if (result == Z_STREAM_END && stream->avail_in == 0) return true;
        if (result == Z_STREAM_END) {
            inflateReset(stream); /* another member follows: RFC 1952 2.2 */
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            return err_set(e, ERR_INTERNAL, "a compressed message is damaged: %s",
                           stream->msg ? stream->msg : "no gzip");
        } else if (at_limit) {
            return err_set(e, ERR_TOO_LARGE,
                           "a compressed message is larger than the limit of %zu bytes",
                           out->max_bytes);
        } else if (stream->avail_in == 0 && stream->avail_out > 0) {
            return err_set(e, ERR_INTERNAL, "a compressed message was cut short");
        }
    }
}

bool gzip_inflate(struct str bytes, struct buf *out, struct err *e) {
    z_stream stream = stream_over(bytes);
    int result = inflateInit2(&stream, GZIP_WINDOW);
    assert(result == Z_OK);
    (void)result;
    bool ok = inflate_all(&stream, out, e);
    inflateEnd(&stream);
    return ok;
}

/* --- deflating ---------------------------------------------------------------------------- */

bool gzip_deflate(struct str bytes, struct buf *out) {
    if (bytes.len == 0) return false;
    z_stream stream = stream_over(bytes);
    int result = deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL,
                              Z_DEFAULT_STRATEGY);
    assert(result == Z_OK);

    /* One byte less room than the message, so that a result that is not shorter does not fit.
     */
    size_t len = bytes.len - 1, left = out->max_bytes - out->len;
    if (len > left) len = left;
    char *at = len ? buf_room(out, len) : NULL;
    bool shorter = false;
    if (at) {
        stream.next_out = (Bytef *)at;
        stream.avail_out = (uInt)len;
        result = deflate(&stream, Z_FINISH);
        shorter = result == Z_STREAM_END;
        if (shorter) buf_grew(out, len - stream.avail_out);
    }
    deflateEnd(&stream);
    return shorter;
}
