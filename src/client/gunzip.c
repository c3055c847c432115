#include "client/gunzip.h"

#include "base/buf.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <zlib.h>

#define PIECE_BYTES (16 * KIB)
#define GZIP_ONLY (15 + 16) /* window bits, and zlib's flag for gzip only */

struct gunzip {
    z_stream z;
    gunzip_fn *on_bytes;
    void *ctx;
    struct buf waiting; /* compressed bytes kept during a pause */
    bool begun;         /* inside a member */
    bool ended;         /* at least one member is complete */
    bool waits;
    bool after; /* after the last member: padding is ignored */
    unsigned char piece[PIECE_BYTES];
};

struct gunzip *gunzip_new(gunzip_fn *on_bytes, void *ctx) {
    struct gunzip *gunzip = MEM_NEW(struct gunzip);
    gunzip->on_bytes = on_bytes;
    gunzip->ctx = ctx;
    buf_init(&gunzip->waiting, MIB);
    int result = inflateInit2(&gunzip->z, GZIP_ONLY);
    assert(result == Z_OK); /* fails only when memory is exhausted */
    (void)result;
    return gunzip;
}

void gunzip_free(struct gunzip *gunzip) {
    if (!gunzip) return;
    inflateEnd(&gunzip->z);
    buf_done(&gunzip->waiting);
    free(gunzip);
}

bool gunzip_waits(const struct gunzip *gunzip) {
    return gunzip->waits;
}

bool gunzip_whole(const struct gunzip *gunzip) {
    return !gunzip->begun && !gunzip->waits;
}

/* Pass on the output of the last step. */
static void gunzip_give(struct gunzip *gunzip) {
    size_t len = PIECE_BYTES - gunzip->z.avail_out;
    if (len == 0) return;
    if (!gunzip->on_bytes(str_of(gunzip->piece, len), gunzip->ctx)) gunzip->waits = true;
}

static void end_member(struct gunzip *gunzip) {
    gunzip->begun = false;
    gunzip->ended = true;
    inflateReset(&gunzip->z);
}

/* After a member, another one may follow (RFC 1952 2.2); any other bytes are padding. */
static bool is_padding(const struct gunzip *gunzip) {
    return gunzip->ended && !gunzip->begun && gunzip->z.avail_in > 0 &&
           gunzip->z.next_in[0] != 0x1f;
}

static bool step(struct gunzip *gunzip, struct err *e) {
    gunzip->z.next_out = gunzip->piece;
    gunzip->z.avail_out = PIECE_BYTES;
    if (gunzip->z.avail_in) gunzip->begun = true;
    int result = inflate(&gunzip->z, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return err_set(e, ERR_UNAVAILABLE,
                       "the answer says that it is gzip and is not: the server, or something "
                       "on the way, is broken");
    if (result == Z_STREAM_END) end_member(gunzip);
    gunzip_give(gunzip);
    return true;
}

/* A full piece may be followed by more output even when all input was consumed. */
static bool has_more(const struct gunzip *gunzip) {
    return !gunzip->after && (gunzip->z.avail_in > 0 || gunzip->z.avail_out == 0);
}

static bool gunzip_take(struct gunzip *gunzip, struct str bytes, struct err *e) {
    gunzip->z.next_in = (unsigned char *)(uintptr_t)bytes.at;
    gunzip->z.avail_in = (unsigned)bytes.len;
    do {
        if (is_padding(gunzip)) {
            gunzip->after = true;
            gunzip->z.avail_in = 0;
            break;
        }
        if (!step(gunzip, e)) return false;
    } while (has_more(gunzip) && !gunzip->waits);
    return true;
}

bool gunzip_feed(struct gunzip *gunzip, struct str bytes, struct err *e) {
    assert(!gunzip->waits && gunzip->waiting.len == 0);
    if (bytes.len == 0 || gunzip->after) return true;
    if (!gunzip_take(gunzip, bytes, e)) return false;
    struct str rest = str_of(gunzip->z.next_in, gunzip->z.avail_in);
    if (gunzip->waits && !buf_append(&gunzip->waiting, rest))
        return err_set(e, ERR_TOO_LARGE, "too many compressed bytes came in one piece");
    return true;
}

bool gunzip_go(struct gunzip *gunzip, struct err *e) {
    if (!gunzip->waits) return true;
    gunzip->waits = false;
    if (!gunzip_take(gunzip, buf_str(&gunzip->waiting), e)) return false;
    buf_drop(&gunzip->waiting, gunzip->waiting.len - gunzip->z.avail_in);
    return true;
}
