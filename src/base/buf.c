#include "base/buf.h"

#include "base/pool.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define BUF_FIRST_BYTES 64
#define BUF_SMALL_BYTES (4 * KIB) /* up to this size the room grows in a few large steps */
#define BUF_STEP_PART 4           /* above it by a quarter: half might stay unused */

void buf_init(struct buf *buf, size_t max_bytes) {
    *buf = (struct buf){.max_bytes = max_bytes};
}

/* Small blocks are not counted: they are many and add up to little. */
static void recount(size_t before, size_t after) {
    if (after > BUF_SMALL_BYTES) mem_count(after);
    if (before > BUF_SMALL_BYTES) mem_uncount(before);
}

/* Frequent steps of the growth. Some are too large for the C library's lists of free blocks: the
 * replies and frames of a turn. Of the small ones many are taken at once, and its lists are short. */
#define BUF_SECOND_BYTES (4 * BUF_FIRST_BYTES)
#define STEP_1 (BUF_SMALL_BYTES + BUF_SMALL_BYTES / BUF_STEP_PART)
#define STEP_2 (STEP_1 + STEP_1 / BUF_STEP_PART)
#define STEP_3 (STEP_2 + STEP_2 / BUF_STEP_PART)
#define STEP_4 (STEP_3 + STEP_3 / BUF_STEP_PART)
static _Thread_local struct pool first_rooms = POOL(BUF_FIRST_BYTES, 256),
                                 second_rooms = POOL(BUF_SECOND_BYTES, 256),
                                 small_rooms = POOL(BUF_SMALL_BYTES, 256),
                                 rooms_1 = POOL(STEP_1, 256), rooms_2 = POOL(STEP_2, 256),
                                 rooms_3 = POOL(STEP_3, 256), rooms_4 = POOL(STEP_4, 256);

static inline struct pool *pool_of(size_t room) {
    switch (room) {
    case BUF_FIRST_BYTES: return &first_rooms;
    case BUF_SECOND_BYTES: return &second_rooms;
    case BUF_SMALL_BYTES: return &small_rooms;
    case STEP_1: return &rooms_1;
    case STEP_2: return &rooms_2;
    case STEP_3: return &rooms_3;
    case STEP_4: return &rooms_4;
    default: return NULL;
    }
}

static void give_back(struct buf *buf) {
    if (!buf->at) return;
    struct pool *pool = pool_of(buf->room);
    recount(buf->room, 0);
    if (pool)
        pool_give(pool, buf->at);
    else
        free(buf->at);
}

/* Move the contents to a room of another size. */
static void buf_move(struct buf *buf, size_t room) {
    struct pool *pool = pool_of(room);
    if (!pool && (!buf->at || !pool_of(buf->room))) {
        buf->at = mem_resize(buf->at, room);
        recount(buf->room, room);
    } else {
        char *at = pool ? pool_take(pool) : mem_alloc(room);
        if (buf->at) memcpy(at, buf->at, buf->len);
        give_back(buf);
        buf->at = at;
        recount(0, room);
    }
    buf->room = room;
}

void buf_done(struct buf *buf) {
    give_back(buf);
    *buf = (struct buf){0};
}

void buf_clear(struct buf *buf) {
    buf->len = 0;
    buf->full = false;
}

void buf_release(struct buf *buf) {
    give_back(buf);
    buf_init(buf, buf->max_bytes);
}

static bool buf_refuse(struct buf *buf) {
    buf->full = true;
    return false;
}

static void grow(struct buf *buf, size_t need) {
    size_t room = buf->room ? buf->room : BUF_FIRST_BYTES;
    while (room < need) {
        room = room < BUF_SMALL_BYTES ? room * 4 : room + room / BUF_STEP_PART;
    }
    if (room > buf->max_bytes) room = buf->max_bytes;
    buf_move(buf, room);
}

char *buf_more_room(struct buf *buf, size_t len) {
    if (buf->full || len > buf->max_bytes - buf->len) {
        buf_refuse(buf);
        return NULL;
    }
    if (buf->len + len > buf->room) grow(buf, buf->len + len);
    if (!buf->at) grow(buf, 1 < buf->max_bytes ? 1 : buf->max_bytes);
    return buf->at + buf->len;
}

bool buf_append_byte(struct buf *buf, char byte) {
    char *room = buf_room(buf, 1);
    if (!room) return false;
    *room = byte;
    buf->len++;
    return true;
}

/* Two digits at a time: a division costs more than the rest. */
bool buf_append_u64(struct buf *buf, uint64_t number) {
    static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                                "25262728293031323334353637383940414243444546474849"
                                "50515253545556575859606162636465666768697071727374"
                                "75767778798081828384858687888990919293949596979899";
    char digits[20], *end = digits + sizeof(digits), *at = end;
    for (; number >= 10; number /= 100) {
        const char *pair = pairs + number % 100 * 2;
        *--at = pair[1];
        *--at = pair[0];
    }
    if (number || at == end) *--at = (char)('0' + number);
    return buf_append(buf, str_of(at, (size_t)(end - at)));
}

bool buf_append_i64(struct buf *buf, int64_t number) {
    if (number >= 0) return buf_append_u64(buf, (uint64_t)number);
    return buf_append_byte(buf, '-') && buf_append_u64(buf, 0 - (uint64_t)number);
}

bool buf_vprintf(struct buf *buf, const char *format, va_list values) {
    va_list again;
    va_copy(again, values);
    int len = vsnprintf(NULL, 0, format, values);
    assert(len >= 0);
    /* vsnprintf() also writes a NUL, which is not content. */
    char *room = buf_room(buf, (size_t)len);
    if (room && len) {
        char *text = mem_alloc((size_t)len + 1);
        vsnprintf(text, (size_t)len + 1, format, again);
        memcpy(room, text, (size_t)len);
        free(text);
        buf->len += (size_t)len;
    }
    va_end(again);
    return room != NULL;
}

bool buf_append_percent(struct buf *buf, struct str text, const char *plain) {
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len; i++) {
        struct str byte = str_of(text.at + i, 1);
        unsigned char value = (unsigned char)text.at[i];
        char escaped[] = {'%', hex[value >> 4], hex[value & 15]};
        buf_append(buf, str_is_plain(byte, plain) ? byte : str_of(escaped, sizeof(escaped)));
    }
    return !buf->full;
}

bool buf_printf(struct buf *buf, const char *format, ...) {
    va_list values;
    va_start(values, format);
    bool fits = buf_vprintf(buf, format, values);
    va_end(values);
    return fits;
}

void buf_keep_texts(struct buf *buf, struct str *const texts[], size_t count) {
    size_t len = 1; /* an empty text still needs an address */
    for (size_t i = 0; i < count; i++) len += texts[i]->len;
    buf_init(buf, len);
    char *at = buf_room(buf, len); /* one allocation, so that the views do not move */
    assert(at);
    for (size_t i = 0; i < count; i++) {
        if (!texts[i]->at) continue;
        size_t text_len = texts[i]->len;
        if (text_len) memcpy(at, texts[i]->at, text_len);
        *texts[i] = str_of(at, text_len);
        at += text_len;
    }
}

void buf_drop(struct buf *buf, size_t len) {
    assert(len <= buf->len);
    buf->len -= len;
    if (buf->len) memmove(buf->at, buf->at + len, buf->len);
}
