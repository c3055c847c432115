#include "wire/sse.h"

#include "base/mem.h"
#include "base/sixteen.h"
#include "base/utf8.h"

#include <assert.h>
#include <stdlib.h>

/* A buffer that grew beyond this for one event is freed after it. */
#define KEPT_BYTES (4 * KIB)

#define BYTE_ORDER_MARK STR("\xEF\xBB\xBF")

/* An event that is one line, and arrives whole, touches only what stands before `type`. */
struct sse {
    sse_event_fn *on_event;
    void *ctx;
    size_t mark_seen; /* bytes of a byte order mark at the start, or MARK_DONE */
    bool after_cr;    /* a line feed now belongs to the previous line break */
    bool in_comment;  /* bytes up to the end of the line are dropped */
    bool stopped;
    bool dispatching;
    bool has_data; /* a data line came, perhaps empty */
    bool has_retry;
    bool whole_line; /* the line that is taken stands in the bytes that were fed */
    bool full;       /* one of the buffers refused an append */
    bool has_type;   /* of this event: `type`, `data` or `id` was set */
    bool has_copy;
    bool has_id;
    bool ids;        /* an event so far had one: `last_id` holds something */
    struct str lent; /* the only data line, if it stands there; at NULL otherwise */
    struct buf line; /* the incomplete line */

    struct buf type, data;
    struct buf id;      /* set by the lines of this event */
    struct buf last_id; /* set by the last complete event */
    uint64_t retry_ms;
};

#define MARK_DONE SIZE_MAX

/* 0xFF for each CR or LF. */
static inline sixteen line_ends(const char *at) {
    sixteen c = sixteen_at(at);
    return (sixteen)((c == '\n') | (c == '\r'));
}

/* Whether one of the 64 bytes at `at` is a CR, an LF or another byte below these, of which texts
 * have few. */
static inline bool may_end_line(const char *at) {
    sixteen head = sixteen_least(sixteen_at(at), sixteen_at(at + 16));
    sixteen tail = sixteen_least(sixteen_at(at + 32), sixteen_at(at + 48));
    return sixteen_any((sixteen)(sixteen_least(head, tail) <= '\r'));
}

/* Index of the first CR or LF, or bytes.len. Both are searched in one pass: separate searches
 * would rescan a stream that uses only CR. */
static size_t find_line_end(struct str bytes) {
    size_t at = 0;
    const char *text = bytes.at;
    while (at + 16 <= bytes.len) {
        while (at + 64 <= bytes.len && !may_end_line(text + at)) at += 64;
        if (at + 16 > bytes.len) break;
        sixteen ends = line_ends(text + at);
#ifdef SIXTEEN_BITS
        unsigned bits = sixteen_bits(ends);
        if (bits) return at + (size_t)__builtin_ctz(bits);
#else
        if (sixteen_any(ends)) break;
#endif
        at += 16;
    }
    while (at < bytes.len && text[at] != '\n' && text[at] != '\r') at++;
    return at;
}

struct sse *sse_new(size_t limit_bytes, sse_event_fn *on_event, void *ctx) {
    struct sse *sse = MEM_NEW(struct sse);
    sse->on_event = on_event;
    sse->ctx = ctx;
    buf_init(&sse->line, limit_bytes);
    buf_init(&sse->type, limit_bytes);
    buf_init(&sse->data, limit_bytes);
    buf_init(&sse->id, limit_bytes);
    buf_init(&sse->last_id, limit_bytes);
    return sse;
}

void sse_free(struct sse *sse) {
    if (!sse) return;
    assert(!sse->dispatching);
    buf_done(&sse->line);
    buf_done(&sse->type);
    buf_done(&sse->data);
    buf_done(&sse->id);
    buf_done(&sse->last_id);
    free(sse);
}

void sse_stop(struct sse *sse) {
    sse->stopped = true;
}

bool sse_midway(const struct sse *sse) {
    return sse->line.len || sse->type.len || sse->has_data;
}

struct str sse_last_id(const struct sse *sse) {
    return buf_str(&sse->last_id);
}

bool sse_retry_ms(const struct sse *sse, uint64_t *ret) {
    if (!sse->has_retry) return false;
    *ret = sse->retry_ms;
    return true;
}

/* ---- Fields ---- */

static void empty(struct buf *buf) {
    if (buf->room > KEPT_BYTES) {
        buf_release(buf);
    } else {
        buf_clear(buf);
    }
}

static void sse_set(struct sse *sse, struct buf *buf, struct str value) {
    buf_clear(buf);
    utf8_append_repaired(buf, value);
    sse->full |= !buf_ok(buf);
}

static void take_type(struct sse *sse, struct str value) {
    sse_set(sse, &sse->type, value);
    sse->has_type = true;
}

/* Copy the data line that was lent so far. */
static void keep_lent(struct sse *sse) {
    if (!sse->lent.at) return;
    sse->full |= !buf_append(&sse->data, sse->lent);
    sse->has_copy = true;
    sse->lent.at = NULL;
}

/* Most events are one line, and arrive whole. */
static void take_data(struct sse *sse, struct str value) {
    if (!sse->has_data && sse->whole_line && utf8_valid(value)) {
        sse->has_data = true;
        sse->lent = value;
        return;
    }
    keep_lent(sse);
    if (sse->has_data) buf_append_byte(&sse->data, '\n');
    utf8_append_repaired(&sse->data, value);
    sse->full |= !buf_ok(&sse->data);
    sse->has_data = sse->has_copy = true;
}

static void take_id(struct sse *sse, struct str value) {
    if (str_find_byte(value, '\0') < value.len) return;
    sse_set(sse, &sse->id, value);
    sse->has_id = true;
}

static void take_retry(struct sse *sse, struct str value) {
    if (str_to_u64(value, &sse->retry_ms)) sse->has_retry = true;
}

static const struct {
    struct str name;
    void (*take)(struct sse *sse, struct str value);
} fields[] = {
    /* clang-format off */
    {STR_INIT("data"),  take_data},
    {STR_INIT("event"), take_type},
    {STR_INIT("id"),    take_id},
    {STR_INIT("retry"), take_retry},
    /* clang-format on */
};

static struct str skip_one_space(struct str value) {
    return str_starts(value, STR(" ")) ? str_skip(value, 1) : value;
}

static void take_field(struct sse *sse, struct str line) {
    struct str value;
    if (str_starts(line, STR("data:"))) { /* most are */
        take_data(sse, skip_one_space(str_skip(line, 5)));
        return;
    }
    struct str name = str_split(line, ':', &value);
    value = skip_one_space(value);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (str_equal(name, fields[i].name)) fields[i].take(sse, value);
    }
}

/* A blank line ends the event. It is reported only if it had a data line. */
static void dispatch(struct sse *sse) {
    if (sse->has_id) {
        sse_set(sse, &sse->last_id, buf_str(&sse->id));
        sse->ids = true;
    }
    if (sse->has_data && !sse->stopped) {
        struct sse_event event = {
            .type = sse->has_type && sse->type.len ? buf_str(&sse->type) : STR("message"),
            .data = sse->lent.at ? sse->lent : buf_str(&sse->data),
            .id = sse->ids ? buf_str(&sse->last_id) : STR_EMPTY,
        };
        sse->dispatching = true;
        sse->on_event(&event, sse->ctx);
        sse->dispatching = false;
    }
    if (sse->has_type) empty(&sse->type);
    if (sse->has_copy) empty(&sse->data);
    sse->lent.at = NULL;
    sse->has_type = sse->has_copy = sse->has_id = sse->has_data = false;
}

/* ---- Lines ---- */

static void sse_take_line(struct sse *sse, struct str line) {
    if (line.len == 0) {
        dispatch(sse);
    } else if (line.at[0] != ':') {
        take_field(sse, line);
    }
}

/* Keep the beginning of a line until the rest arrives. Comments are not kept, so their length
 * costs nothing. */
static void sse_keep(struct sse *sse, struct str part) {
    if (sse->line.len == 0 && str_starts(part, STR(":"))) sse->in_comment = true;
    if (!sse->in_comment) sse->full |= !buf_append(&sse->line, part);
}

/* A line that arrived whole is not copied, unless it exceeds the limit: it is then refused like
 * one that arrived in pieces. */
static void end_line(struct sse *sse, struct str part) {
    bool whole = sse->line.len == 0 && part.len <= sse->line.max_bytes;
    if (whole && !sse->in_comment) {
        sse->whole_line = true;
        sse_take_line(sse, part);
        sse->whole_line = false;
        return;
    }
    sse_keep(sse, part);
    if (sse->in_comment) {
        sse->in_comment = false;
        return;
    }
    if (sse->full) return;
    sse_take_line(sse, buf_str(&sse->line));
    empty(&sse->line);
}

static void take_lines(struct sse *sse, struct str bytes) {
    while (bytes.len && !sse->stopped && !sse->full) {
        if (sse->after_cr && bytes.at[0] == '\n') bytes = str_skip(bytes, 1);
        if (bytes.len == 0) {
            sse->after_cr = false;
            return;
        }
        size_t end = find_line_end(bytes);
        sse->after_cr = end < bytes.len && bytes.at[end] == '\r';
        if (end == bytes.len) {
            sse_keep(sse, bytes);
            return;
        }
        end_line(sse, str_head(bytes, end));
        bytes = str_skip(bytes, end + 1);
    }
}

/* Drop one byte order mark at the very start, which may arrive in pieces. Bytes that turn out
 * not to be one are parsed as lines. */
static struct str skip_mark(struct sse *sse, struct str bytes) {
    while (sse->mark_seen != MARK_DONE && bytes.len) {
        if (bytes.at[0] != BYTE_ORDER_MARK.at[sse->mark_seen]) {
            size_t seen = sse->mark_seen;
            sse->mark_seen = MARK_DONE;
            take_lines(sse, str_head(BYTE_ORDER_MARK, seen));
            break;
        }
        bytes = str_skip(bytes, 1);
        if (++sse->mark_seen == BYTE_ORDER_MARK.len) sse->mark_seen = MARK_DONE;
    }
    return bytes;
}

bool sse_feed(struct sse *sse, struct str bytes, struct err *e) {
    assert(!sse->dispatching);
    if (!sse->full) take_lines(sse, skip_mark(sse, bytes));
    keep_lent(sse);
    return !sse->full ||
           err_set(e, ERR_TOO_LARGE, "an event is larger than %zu bytes", sse->line.max_bytes);
}

/* ---- Writing ---- */

static bool holds_line_break(struct str text) {
    return find_line_end(text) < text.len;
}

bool sse_is_line(struct str data) {
    return !holds_line_break(data);
}

static void append_field(struct buf *out, struct str name, struct str value) {
    buf_append(out, name);
    buf_append(out, value);
    buf_append_byte(out, '\n');
}

bool sse_append(struct buf *out, struct str type, struct str id, struct str data) {
    assert(!holds_line_break(type) && !holds_line_break(id));
    if (id.len) append_field(out, STR("id: "), id);
    if (type.len) append_field(out, STR("event: "), type);
    for (;;) {
        size_t end = find_line_end(data);
        append_field(out, STR("data: "), str_head(data, end));
        if (end == data.len) break;
        bool pair = str_starts(str_skip(data, end), STR("\r\n"));
        data = str_skip(data, end + (pair ? 2 : 1));
    }
    return buf_append_byte(out, '\n');
}

bool sse_append_comment(struct buf *out, struct str text) {
    assert(!holds_line_break(text));
    append_field(out, STR(": "), text);
    return buf_append_byte(out, '\n');
}
