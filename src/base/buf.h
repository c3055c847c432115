/* buf: a growing byte buffer with a fixed limit.
 *
 * Encoders append without checking and ask once at the end. An append that would exceed the
 * limit stores nothing and marks the buffer `full`. From then on every append is refused, so
 * the contents are always a prefix of what was appended.
 *
 * Memory   owns its bytes; buf_done() frees them. An empty buffer holds none.
 * Threads  none.
 */
#ifndef WEIR_BASE_BUF_H
#define WEIR_BASE_BUF_H

#include "base/str.h"

#include <stdarg.h>

struct buf {
    char *at;
    size_t len;
    size_t room;      /* bytes allocated */
    size_t max_bytes; /* never more than this */
    bool full;        /* an append was refused */
};

void buf_init(struct buf *buf, size_t max_bytes);
void buf_done(struct buf *buf);

/* Empty it and forget `full`; the memory stays for the next use. */
void buf_clear(struct buf *buf);

/* Empty it and free its memory. */
void buf_release(struct buf *buf);

/* Whether every append succeeded. */
static inline bool buf_ok(const struct buf *buf) {
    return !buf->full;
}

/* The contents; valid until the next append. */
static inline struct str buf_str(const struct buf *buf) {
    return (struct str){buf->len ? buf->at : "", buf->len};
}

/* The slow path of buf_room(): allocates more. */
char *buf_more_room(struct buf *buf, size_t len);

/* Room for `len` more bytes at the end, or NULL (and full) past the limit. The caller writes
 * there and passes the number of bytes written to buf_grew(). */
static inline char *buf_room(struct buf *buf, size_t len) {
    bool enough = !buf->full && buf->at && len <= buf->room - buf->len;
    return enough ? buf->at + buf->len : buf_more_room(buf, len);
}

static inline void buf_grew(struct buf *buf, size_t len) {
    buf->len += len;
}

/* False, and full, when the limit would be exceeded. */
static inline bool buf_append(struct buf *buf, struct str bytes) {
    if (bytes.len == 0) return !buf->full;
    char *room = buf_room(buf, bytes.len);
    if (!room) return false;
    memcpy(room, bytes.at, bytes.len);
    buf_grew(buf, bytes.len);
    return true;
}

bool buf_append_byte(struct buf *buf, char byte);
bool buf_append_u64(struct buf *buf, uint64_t number); /* decimal */
bool buf_append_i64(struct buf *buf, int64_t number);  /* decimal */
/* `text` for a URL: each byte that is not an ASCII letter, a digit or one of `plain` as %XX. */
bool buf_append_percent(struct buf *buf, struct str text, const char *plain);
PRINTF_LIKE(2, 3) bool buf_printf(struct buf *buf, const char *format, ...);
PRINTF_LIKE(2, 0) bool buf_vprintf(struct buf *buf, const char *format, va_list values);

/* Reset `buf` to one block that holds a copy of each text, and point each text at its copy.
 * This keeps the texts of a request after the request is gone. A text at NULL stays NULL. */
void buf_keep_texts(struct buf *buf, struct str *const texts[], size_t count);

/* Remove the first `len` bytes; the rest moves to the front. */
void buf_drop(struct buf *buf, size_t len);

#endif
