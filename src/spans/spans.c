#include "spans/spans.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "wire/pb.h"

#include <assert.h>
#include <endian.h>
#include <pthread.h>
#include <stdlib.h>

#define NS_A_MS 1000000
#define SHORT_TEXT_BYTES 64 /* with any name, all lengths around it are below 0x80 */
#define CHUNKS_MAX (SPANS_MAX_BYTES / SPANS_CHUNK_BYTES)

/* Fields of ScopeSpans, Span, Status, KeyValue and AnyValue. */
enum { SCOPE_SPANS_SPAN = 2 };
enum {
    SPAN_TRACE_ID = 1,
    SPAN_SPAN_ID = 2,
    SPAN_TRACE_STATE = 3,
    SPAN_PARENT = 4,
    SPAN_CALLED = 5,
    SPAN_KIND = 6,
    SPAN_START = 7,
    SPAN_END = 8,
    SPAN_ATTRIBUTE = 9,
    SPAN_STATUS = 15,
    SPAN_FLAGS = 16,
};
enum { STATUS_CODE = 3, STATUS_CODE_ERROR = 2 };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };
enum { ANY_TEXT = 1, ANY_INT = 3 };

/* The longest encoding. A field of text: two bytes of tag and two of length. */
#define HEAD_BYTES 4
#define IDS_BYTES (TRACE_ID_BYTES + TRACE_SPAN_BYTES + TRACE_STATE_MAX_BYTES + 3 * HEAD_BYTES)
#define FLAGS_BYTES 6
#define ATTRIBUTE_BYTES (SPAN_NAME_BYTES + SPAN_TEXT_BYTES + 4 * HEAD_BYTES)
#define SPAN_MAX_BYTES                                                                         \
    (IDS_BYTES + TRACE_SPAN_BYTES + HEAD_BYTES + SPAN_NAME_BYTES + 1 + SPAN_TEXT_BYTES +       \
     HEAD_BYTES + 2 + 2 * 9 + (SPAN_ATTRIBUTES_MAX + 1) * ATTRIBUTE_BYTES + 4 + FLAGS_BYTES)

struct spans_chunk {
    struct list link;
    size_t len, count;
    char head[SPANS_HEAD_BYTES]; /* for the sender of the first part */
    char bytes[SPANS_CHUNK_BYTES];
};

atomic_bool spans_are_on;

static struct {
    pthread_mutex_t lock;
    struct list chunks; /* guarded; the newest is last, and the only one with room */
    size_t chunk_count; /* guarded; with those that were taken */
    uint64_t dropped;   /* guarded */
    spans_chunk_fn *on_chunk;
    void *ctx;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

void spans_start(spans_chunk_fn *on_chunk, void *ctx) {
    list_init(&queue.chunks);
    queue.chunk_count = 0;
    queue.dropped = 0;
    queue.on_chunk = on_chunk;
    queue.ctx = ctx;
    atomic_store(&spans_are_on, true);
}

void spans_stop(void) {
    uint64_t dropped;
    struct spans_chunk *chunk;
    if (!spans_wanted()) return;
    atomic_store(&spans_are_on, false);
    while ((chunk = spans_take(SPANS_ANY, &dropped))) spans_chunk_free(chunk);
}

/* --- texts ------------------------------------------------------------------------------------ */

/* Copy a text. Whether all its bytes are ASCII, whose high bits are 0. */
static bool copy_ascii(char *to, struct str text) {
    uint64_t seen = 0, word;
    if (text.len < sizeof(word)) {
        for (size_t i = 0; i < text.len; i++) seen |= (unsigned char)(to[i] = text.at[i]);
        return !(seen & 0x80);
    }
    size_t last = text.len - sizeof(word);
    for (size_t at = 0; at < last; at += sizeof(word)) {
        memcpy(&word, text.at + at, sizeof(word));
        memcpy(to + at, &word, sizeof(word));
        seen |= word;
    }
    memcpy(&word, text.at + last, sizeof(word));
    memcpy(to + last, &word, sizeof(word));
    return !((seen | word) & 0x8080808080808080);
}

struct text_room {
    char bytes[SPAN_TEXT_BYTES];
};

static struct str repaired(struct str text, struct text_room *room) {
    char all[4 * SPAN_TEXT_BYTES]; /* U+FFFD is three bytes */
    struct buf out = {.at = all, .room = sizeof(all), .max_bytes = sizeof(all)};
    (void)utf8_append_repaired(&out, text);
    struct str kept = str_head(buf_str(&out), utf8_cut(buf_str(&out), SPAN_TEXT_BYTES));
    memcpy(room->bytes, kept.at, kept.len);
    return str_of(room->bytes, kept.len);
}

/* A text as it may be sent. A collector would refuse one that is not valid UTF-8 together with all
 * other spans of its request; its place is then taken by what is in `room`. */
static struct str sendable(struct str text, struct text_room *room) {
    if (text.len > SPAN_TEXT_BYTES) text.len = utf8_cut(text, SPAN_TEXT_BYTES);
    return utf8_valid(text) ? text : repaired(text, room);
}

/* --- the encoding of a span ------------------------------------------------------------------- */

static char *put_id(char *at, uint32_t field, const unsigned char *id, size_t bytes) {
    memcpy(pb_put_head(at, field, bytes), id, bytes);
    return at + pb_bytes_len(field, bytes);
}

static char *put_flags(char *at, uint32_t field, unsigned flags) {
    const uint32_t value = htole32(flags & 0xff);
    at = pb_put_tag(at, field, PB_WIRE_32);
    memcpy(at, &value, sizeof(value));
    return at + sizeof(value);
}

static char *put_moment(char *at, uint32_t field, int64_t unix_ms) {
    const uint64_t ns = htole64(unix_ms > 0 ? (uint64_t)unix_ms * NS_A_MS : 0);
    at = pb_put_tag(at, field, PB_WIRE_64);
    memcpy(at, &ns, sizeof(ns));
    return at + sizeof(ns);
}

static char tag_of(uint32_t field) {
    return (char)(field << 3 | PB_WIRE_BYTES);
}

static char *put_long_key(char *at, struct str key, size_t value_len) {
    at = pb_put_head(at, SPAN_ATTRIBUTE,
                     pb_bytes_len(KEY_VALUE_KEY, key.len) +
                         pb_bytes_len(KEY_VALUE_VALUE, value_len));
    at = pb_put_str(at, KEY_VALUE_KEY, key);
    return pb_put_head(at, KEY_VALUE_VALUE, value_len);
}

/* Put the key of an attribute, whose value is a message of `value_len` bytes that comes next. Mostly
 * each length is one byte. */
static char *put_key(char *at, struct str key, size_t value_len) {
    size_t len = 2 + key.len + 2 + value_len;
    assert(key.len <= SPAN_NAME_BYTES);
    if (len >= 0x80) return put_long_key(at, key, value_len);
    at[0] = tag_of(SPAN_ATTRIBUTE);
    at[1] = (char)len;
    at[2] = tag_of(KEY_VALUE_KEY);
    at[3] = (char)key.len;
    memcpy(at + 4, key.at, SPAN_NAME_BYTES); /* what is too much is overwritten */
    at += 4 + key.len;
    at[0] = tag_of(KEY_VALUE_VALUE);
    at[1] = (char)value_len;
    return at + 2;
}

static char *put_long_text(char *at, struct str key, struct str text) {
    struct text_room room;
    struct str sent = sendable(text, &room);
    at = put_key(at, key, pb_bytes_len(ANY_TEXT, sent.len));
    return pb_put_bytes(pb_put_head(at, ANY_TEXT, sent.len), sent);
}

/* Most texts are short and ASCII. */
static char *spans_put_text(char *at, struct str key, struct str text) {
    if (text.len > SHORT_TEXT_BYTES) return put_long_text(at, key, text);
    char *value = put_key(at, key, 2 + text.len);
    value[0] = tag_of(ANY_TEXT);
    value[1] = (char)text.len;
    return copy_ascii(value + 2, text) ? value + 2 + text.len : put_long_text(at, key, text);
}

/* 0 is a number, too: a member of a oneof is written whatever its value. */
static char *put_number(char *at, struct str key, uint64_t number) {
    at = put_key(at, key, pb_tag_len(ANY_INT) + pb_varint_len(number));
    return pb_put_varint(pb_put_tag(at, ANY_INT, PB_WIRE_VARINT), number);
}

static char *put_attributes(char *at, const struct span *span) {
    static const struct str error_type = SPAN_NAME("error.type");
    assert(span->count <= SPAN_ATTRIBUTES_MAX);
    for (size_t i = 0; i < span->count; i++) {
        const struct span_attribute *attribute = &span->attributes[i];
        if (attribute->counts && attribute->number >= 0)
            at = put_number(at, attribute->name, (uint64_t)attribute->number);
        else if (!attribute->counts && attribute->text.len)
            at = spans_put_text(at, attribute->name, attribute->text);
    }
    return span->error.len ? spans_put_text(at, error_type, span->error) : at;
}

static char *put_long_name(char *at, struct str operation, struct str what) {
    struct text_room room;
    struct str sent = sendable(what, &room);
    at = pb_put_head(at, SPAN_CALLED, operation.len + (sent.len ? 1 + sent.len : 0));
    at = pb_put_bytes(at, operation);
    if (sent.len) *at++ = ' ';
    return pb_put_bytes(at, sent);
}

static char *put_name(char *at, const struct span *span) {
    struct str operation = span->operation, what = span->what;
    assert(operation.len <= SPAN_NAME_BYTES);
    if (!what.len || what.len > SHORT_TEXT_BYTES) return put_long_name(at, operation, what);
    size_t len = operation.len + 1 + what.len;
    at[0] = tag_of(SPAN_CALLED);
    at[1] = (char)len;
    memcpy(at + 2, operation.at, SPAN_NAME_BYTES);
    at[2 + operation.len] = ' ';
    return copy_ascii(at + 3 + operation.len, what) ? at + 2 + len
                                                    : put_long_name(at, operation, what);
}

static char *put_status(char *at) {
    at = pb_put_head(at, SPAN_STATUS, pb_int_len(STATUS_CODE, STATUS_CODE_ERROR));
    return pb_put_int(at, STATUS_CODE, STATUS_CODE_ERROR);
}

static char *put_span(char *at, const struct span *span) {
    const struct trace_context *self = span->self;
    assert(self->state.len <= TRACE_STATE_MAX_BYTES);
    at = put_id(at, SPAN_TRACE_ID, self->id, TRACE_ID_BYTES);
    at = put_id(at, SPAN_SPAN_ID, self->span, TRACE_SPAN_BYTES);
    at = pb_put_str(at, SPAN_TRACE_STATE, self->state);
    if (span->parent) at = put_id(at, SPAN_PARENT, span->parent, TRACE_SPAN_BYTES);
    at = put_name(at, span);
    at = pb_put_int(at, SPAN_KIND, span->kind);
    at = put_moment(at, SPAN_START, span->ended_unix_ms - (int64_t)span->took_ms);
    at = put_moment(at, SPAN_END, span->ended_unix_ms);
    at = put_attributes(at, span);
    if (span->error.len) at = put_status(at);
    return put_flags(at, SPAN_FLAGS, self->flags);
}

/* --- a report --------------------------------------------------------------------------------- */

/* The chunk that has room for `len` bytes; NULL: the queue is full. */
static struct spans_chunk *chunk_for(size_t len, bool *ret_begun) {
    struct spans_chunk *last = NULL;
    *ret_begun = false;
    if (!list_empty(&queue.chunks))
        last = CONTAINER_OF(queue.chunks.prev, struct spans_chunk, link);
    if (last && last->len + len <= SPANS_CHUNK_BYTES) return last;
    if (queue.chunk_count == CHUNKS_MAX) return NULL;
    last = mem_alloc(sizeof(*last));
    last->len = last->count = 0;
    list_init(&last->link);
    list_append(&queue.chunks, &last->link);
    queue.chunk_count++;
    *ret_begun = true;
    return last;
}

/* True: it is the first one of its chunk. */
static bool queue_add(struct str record) {
    bool begun;
    pthread_mutex_lock(&queue.lock);
    struct spans_chunk *chunk = chunk_for(record.len, &begun);
    if (chunk) {
        memcpy(chunk->bytes + chunk->len, record.at, record.len);
        chunk->len += record.len;
        chunk->count++;
    } else {
        queue.dropped++;
    }
    pthread_mutex_unlock(&queue.lock);
    return begun;
}

void spans_report(const struct span *span) {
    char room[HEAD_BYTES + SPAN_MAX_BYTES], *body = room + HEAD_BYTES;
    if (!spans_wanted()) return;
    size_t len = (size_t)(put_span(body, span) - body);
    assert(len <= SPAN_MAX_BYTES);
    /* Its tag and length go right before it, once the length is known. */
    char *start = body - (pb_bytes_len(SCOPE_SPANS_SPAN, len) - len);
    (void)pb_put_head(start, SCOPE_SPANS_SPAN, len);
    if (queue_add(str_of(start, (size_t)(body + len - start)))) queue.on_chunk(queue.ctx);
}

/* --- a chunk ---------------------------------------------------------------------------------- */

static struct spans_chunk *queue_pop(enum spans_taken which) {
    bool has_room = queue.chunks.next == queue.chunks.prev; /* the newest, or none */
    if (list_empty(&queue.chunks) || (which == SPANS_FULL && has_room)) return NULL;
    return CONTAINER_OF(list_pop(&queue.chunks), struct spans_chunk, link);
}

struct spans_chunk *spans_take(enum spans_taken which, uint64_t *ret_dropped) {
    pthread_mutex_lock(&queue.lock);
    struct spans_chunk *first = queue_pop(which);
    *ret_dropped = queue.dropped;
    queue.dropped = 0;
    pthread_mutex_unlock(&queue.lock);
    return first;
}

void spans_chunk_free(struct spans_chunk *chunk) {
    if (!chunk) return;
    pthread_mutex_lock(&queue.lock);
    queue.chunk_count--;
    pthread_mutex_unlock(&queue.lock);
    free(chunk);
}

/* The whole length of the span that begins here: of its tag, its length, and itself. */
static size_t record_len(const char *at) {
    size_t len = 0, head = 1; /* the tag has one byte */
    for (unsigned shift = 0;; shift += 7) {
        unsigned char byte = (unsigned char)at[head++];
        len |= (size_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return head + len;
    }
}

struct spans_part spans_chunk_part(struct spans_chunk *chunk, size_t from, size_t max_bytes) {
    struct spans_part part = {.at = chunk->bytes + from};
    if (from == 0 && chunk->len <= max_bytes)
        return (struct spans_part){chunk->bytes, chunk->len, chunk->count};
    while (from + part.len < chunk->len) {
        size_t more = record_len(part.at + part.len);
        if (part.count && part.len + more > max_bytes) break;
        part.len += more;
        part.count++;
    }
    return part;
}
