#include "wire/event.h"

#include <assert.h>

/* --- what each kind is -------------------------------------------------------------------- */

const struct event_kind_row event_kinds[EVENT_KIND_COUNT] = {
    /* clang-format off */
    [EVENT_STARTED]     = {"started",     false, false},
    [EVENT_TEXT]        = {"text",        false, false},
    [EVENT_THINKING]    = {"thinking",    false, false},
    [EVENT_TOOL_CALL]   = {"tool_call",   false, true},
    [EVENT_TOOL_RESULT] = {"tool_result", false, false},
    [EVENT_USAGE]       = {"usage",       false, false},
    [EVENT_STEP]        = {"step",        false, false},
    [EVENT_AUDIO]       = {"audio",       false, false},
    [EVENT_APPROVAL]    = {"approval",    false, true},
    [EVENT_ITEM]        = {"item",        false, false},
    [EVENT_DONE]        = {"done",        true,  true},
    [EVENT_FAILED]      = {"failed",      true,  true},
    [EVENT_CANCELLED]   = {"cancelled",   true,  true},
    /* clang-format on */
};

static bool is_kind(unsigned kind) {
    return kind < EVENT_KIND_COUNT && event_kinds[kind].name;
}

struct str event_kind_name(enum event_kind kind) {
    assert(is_kind(kind));
    return str_from(event_kinds[kind].name);
}

/* --- the fields of each kind, in their order on disk -------------------------------------- */

enum field_type {
    FIELD_END,
    FIELD_TEXT,
    FIELD_MORE, /* a text at the end; omitted if it and those after it are empty */
    FIELD_NUMBER,
    FIELD_TOKENS,
    FIELD_FLAG,
    FIELD_CODE,
};

struct field_row {
    enum field_type type;
    size_t offset;
};

#define AT(member) offsetof(struct event, member)
#define FIELDS_MAX (1 + USAGE_FIELD_COUNT)
#define USAGE_ROW(type, member, ...) {FIELD_##type, AT(usage.member)},

static const struct field_row fields[EVENT_KIND_COUNT][FIELDS_MAX + 1] = {
    [EVENT_STARTED] = {{FIELD_TEXT, AT(started.workspace)},
                       {FIELD_TEXT, AT(started.user)},
                       {FIELD_TEXT, AT(started.session)},
                       {FIELD_TEXT, AT(started.text)},
                       {FIELD_TEXT, AT(started.contract)},
                       {FIELD_NUMBER, AT(started.parent)},
                       {FIELD_NUMBER, AT(started.unix_ms)},
                       {FIELD_TEXT, AT(started.key)},
                       {FIELD_TEXT, AT(started.print)},
                       {FIELD_MORE, AT(started.extras)},
                       {FIELD_MORE, AT(started.trace)},
                       {FIELD_MORE, AT(started.options)}},
    [EVENT_TEXT] = {{FIELD_TEXT, AT(text.text)}},
    [EVENT_THINKING] = {{FIELD_TEXT, AT(thinking.text)}},
    [EVENT_TOOL_CALL] = {{FIELD_TEXT, AT(tool_call.call_id)},
                         {FIELD_TEXT, AT(tool_call.tool)},
                         {FIELD_TEXT, AT(tool_call.args)},
                         {FIELD_FLAG, AT(tool_call.held)},
                         {FIELD_FLAG, AT(tool_call.idempotent)},
                         {FIELD_TEXT, AT(tool_call.said)},
                         {FIELD_FLAG, AT(tool_call.callers)}},
    [EVENT_TOOL_RESULT] = {{FIELD_TEXT, AT(tool_result.call_id)},
                           {FIELD_TEXT, AT(tool_result.result)},
                           {FIELD_FLAG, AT(tool_result.error)},
                           {FIELD_TEXT, AT(tool_result.message)}},
    [EVENT_USAGE] = {{FIELD_TEXT, AT(usage.model)}, USAGE_FIELDS(USAGE_ROW)},
    [EVENT_STEP] = {{FIELD_TEXT, AT(step.description)}, {FIELD_TEXT, AT(step.result)}},
    [EVENT_AUDIO] = {{FIELD_TEXT, AT(audio.type)}, {FIELD_TEXT, AT(audio.bytes)}},
    [EVENT_APPROVAL] = {{FIELD_TEXT, AT(approval.call_id)},
                        {FIELD_TEXT, AT(approval.question)},
                        {FIELD_TEXT, AT(approval.tool)},
                        {FIELD_TEXT, AT(approval.args)},
                        {FIELD_TEXT, AT(approval.guards)},
                        {FIELD_TEXT, AT(approval.said)}},
    [EVENT_ITEM] = {{FIELD_TEXT, AT(item.type)}, {FIELD_TEXT, AT(item.bytes)}},
    [EVENT_DONE] = {{FIELD_TEXT, AT(done.model)}, {FIELD_TEXT, AT(done.turns)}},
    [EVENT_FAILED] = {{FIELD_CODE, AT(failed.code)},
                      {FIELD_TEXT, AT(failed.reason)},
                      {FIELD_TEXT, AT(failed.message)},
                      {FIELD_FLAG, AT(failed.acted)},
                      {FIELD_TEXT, AT(failed.said)}},
    [EVENT_CANCELLED] = {{FIELD_TEXT, AT(cancelled.message)},
                         {FIELD_FLAG, AT(cancelled.left)},
                         {FIELD_FLAG, AT(cancelled.acted)},
                         {FIELD_TEXT, AT(cancelled.said)}},
};

/* --- numbers ------------------------------------------------------------------------------ */

static uint64_t zigzag(int64_t number) {
    return ((uint64_t)number << 1) ^ (uint64_t)(number >> 63);
}

static int64_t unzigzag(uint64_t bits) {
    return (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
}

static inline size_t varint_len(uint64_t number) {
    if (number < 0x80) return 1;
    return (size_t)(63 - __builtin_clzll(number)) / 7 + 1;
}

static inline char *put_varint(char *at, uint64_t number) {
    while (number >= 0x80) {
        *at++ = (char)(number | 0x80);
        number >>= 7;
    }
    *at++ = (char)number;
    return at;
}

static inline char *event_put_text(char *at, struct str text) {
    at = put_varint(at, text.len);
    if (text.len) memcpy(at, text.at, text.len);
    return at + text.len;
}

/* Read the number at `at`, and return where it ends. NULL: it is cut off by `end`, or too large. */
static __attribute__((noinline)) const char *walk_long_number(const char *at, const char *end,
                                                              uint64_t *ret) {
    uint64_t number = 0;
    for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
        uint64_t byte = (unsigned char)*at++;
        if (shift == 63 && byte > 1) return NULL;
        number |= (byte & 0x7F) << shift;
        if (byte < 0x80) {
            *ret = number;
            return at;
        }
    }
    return NULL;
}

/* Nearly all numbers here fit into one byte. */
static inline bool take_varint(struct str *bytes, uint64_t *ret) {
    if (bytes->len == 0 || (unsigned char)bytes->at[0] >= 0x80) {
        const char *end = bytes->at + bytes->len, *next = walk_long_number(bytes->at, end, ret);
        if (!next) return false;
        *bytes = str_of(next, (size_t)(end - next));
        return true;
    }
    *ret = (unsigned char)bytes->at[0];
    bytes->at++;
    bytes->len--;
    return true;
}

static inline bool wire_event_take_text(struct str *bytes, struct str *ret) {
    struct str rest = *bytes;
    uint64_t len;
    if (!take_varint(&rest, &len) || len > rest.len) return false;
    *bytes = str_of(rest.at + len, rest.len - (size_t)len);
    *ret = str_of(rest.at, (size_t)len);
    return true;
}

/* --- encode ------------------------------------------------------------------------------- */

static const void *field_at(const struct event *event, const struct field_row *row) {
    return (const char *)event + row->offset;
}

static uint64_t field_number(const struct event *event, const struct field_row *row) {
    const void *at = field_at(event, row);
    if (row->type == FIELD_FLAG) return *(const bool *)at;
    if (row->type == FIELD_CODE) return zigzag((int64_t) * (const enum err_code *)at);
    return zigzag(*(const int64_t *)at);
}

static bool is_text(const struct field_row *row) {
    return row->type == FIELD_TEXT || row->type == FIELD_MORE;
}

/* Nothing is written from here to the end. */
static bool is_omitted(const struct event *event, const struct field_row *row) {
    for (; row->type == FIELD_MORE; row++) {
        if (((const struct str *)field_at(event, row))->len) return false;
    }
    return row->type == FIELD_END;
}

static size_t field_len(const struct event *event, const struct field_row *row) {
    if (!is_text(row)) return varint_len(field_number(event, row));
    size_t len = ((const struct str *)field_at(event, row))->len;
    return !len && is_omitted(event, row) ? 0 : varint_len(len) + len;
}

static size_t body_len(const struct event *event) {
    size_t len = varint_len(event->agent.len) + event->agent.len;
    len += varint_len(zigzag(event->at_ms));
    if (event->kind == EVENT_TEXT || event->kind == EVENT_THINKING) {
        return len + varint_len(event->text.text.len) + event->text.text.len;
    }
    for (const struct field_row *row = fields[event->kind]; row->type != FIELD_END; row++) {
        len += field_len(event, row);
    }
    return len;
}

size_t event_encoded_len(const struct event *event, size_t *ret_body) {
    assert(is_kind(event->kind));
    size_t body = body_len(event);
    *ret_body = body;
    return 1 + varint_len(body) + body;
}

void event_put(const struct event *event, size_t body, char *at) {
    *at++ = (char)event->kind;
    at = put_varint(at, body);
    at = event_put_text(at, event->agent);
    at = put_varint(at, zigzag(event->at_ms));
    if (event->kind == EVENT_TEXT || event->kind == EVENT_THINKING) {
        event_put_text(at, event->text.text); /* the most common event: skip the table */
        return;
    }
    for (const struct field_row *row = fields[event->kind]; row->type != FIELD_END; row++) {
        if (is_text(row)) {
            struct str text = *(const struct str *)field_at(event, row);
            if (text.len || !is_omitted(event, row)) at = event_put_text(at, text);
        } else {
            at = put_varint(at, field_number(event, row));
        }
    }
}

/* Agent and moment, which are the same in all events of a stretch; copied whole where there
 * is room after it, because that is quicker. */
struct same_part {
    size_t len;
    char bytes[29]; /* not used if it is longer; 32 with what is beside it in a head */
};

/* Where the event ends; NULL: it needs more than `room`. */
static char *put_one_text(const struct event_texts *texts, const struct same_part *same,
                          struct str text, char *at, size_t room) {
    size_t body = same->len + varint_len(text.len) + text.len;
    if (1 + varint_len(body) + body > room) return NULL;
    *at++ = (char)EVENT_TEXT;
    at = event_put_text(put_varint(at, body), texts->agent);
    return event_put_text(put_varint(at, zigzag(texts->at_ms)), text);
}

/* What stands before a short text: the kind, the lengths, agent and moment. */
struct text_head {
    size_t len;      /* up to the text */
    size_t text_len; /* the length that it was made for */
    char bytes[2 + sizeof(((struct same_part *)0)->bytes) + 1];
};

static void text_head_set(struct text_head *head, const struct same_part *same,
                          size_t text_len) {
    head->len = 2 + same->len + 1;
    head->text_len = text_len;
    head->bytes[0] = (char)EVENT_TEXT;
    head->bytes[1] = (char)(same->len + 1 + text_len);
    memcpy(head->bytes + 2, same->bytes, sizeof(same->bytes));
    head->bytes[head->len - 1] = (char)text_len;
}

/* The texts from lens[0] on that are of that length, as long as there is room for all of a head and
 * the text; at most `max`. Returns how many were put. */
static inline size_t put_same_texts(const struct text_head *head, const uint32_t *lens,
                                    size_t max, const char *from, char *at, size_t room) {
    size_t len = head->text_len, step = head->len + len;
    size_t spare = sizeof(head->bytes) - head->len;
    size_t fit = room > spare ? (room - spare) / step : 0;
    const struct text_head same = *head;
    if (fit > max) fit = max;
    const uint32_t *next = lens, *last = lens + fit;
    for (; next < last && *next == len; next++) {
        memcpy(at, same.bytes, sizeof(same.bytes));
        memcpy(at + same.len, from, len);
        at += step;
        from += len;
    }
    return (size_t)(next - lens);
}

size_t event_put_texts(struct event_texts *texts, char *at, size_t room) {
    const char *begin = at, *end = at + room, *from = texts->text.at;
    const uint32_t *lens = texts->lens, *last = lens + texts->count;
    struct same_part same = {.len = varint_len(texts->agent.len) + texts->agent.len +
                                    varint_len(zigzag(texts->at_ms))};
    struct text_head head = {.len = 0};
    size_t short_max = 0; /* a text of this length has an event of short parts */
    if (same.len <= sizeof(same.bytes)) {
        put_varint(event_put_text(same.bytes, texts->agent), zigzag(texts->at_ms));
        short_max = 0x7F - 1 - same.len;
    }
    while (lens < last) {
        size_t len = *lens, count = 0;
        if (len && len <= short_max) {
            if (len != head.text_len) text_head_set(&head, &same, len);
            count = put_same_texts(&head, lens, (size_t)(last - lens), from, at,
                                   (size_t)(end - at));
            at += count * (head.len + len);
        }
        if (count == 0) {
            char *next = put_one_text(texts, &same, str_of(from, len), at, (size_t)(end - at));
            if (!next) break;
            at = next;
            count = 1;
        }
        from += count * len;
        lens += count;
    }
    texts->text = str_skip(texts->text, (size_t)(from - texts->text.at));
    texts->count = (size_t)(last - lens);
    texts->lens = lens;
    return (size_t)(at - begin);
}

bool event_encode(const struct event *event, struct buf *out) {
    size_t body, len = event_encoded_len(event, &body);
    char *at = buf_room(out, len);
    if (!at) return false;
    event_put(event, body, at);
    buf_grew(out, len);
    return true;
}

/* --- fields ------------------------------------------------------------------------------- */

/* Read the number at `at`, and return where it ends. NULL: it is cut off by `end`, or `at` is NULL.
 */
static inline const char *walk_number(const char *at, const char *end, uint64_t *ret) {
    if (!at || at == end) return NULL;
    unsigned char low = (unsigned char)*at;
    *ret = low;
    return low < 0x80 ? at + 1 : walk_long_number(at, end, ret);
}

static inline const char *walk_text(const char *at, const char *end, struct str *ret) {
    uint64_t len;
    at = walk_number(at, end, &len);
    if (!at || len > (size_t)(end - at)) return NULL;
    *ret = (struct str){at, (size_t)len};
    return at + len;
}

/* Set the field of `row`, and return where it ends. NULL: it is cut off. */
static inline const char *walk_field(const char *at, const char *end, struct event *event,
                                     const struct field_row *row) {
    void *field = (char *)event + row->offset;
    if (is_text(row)) return walk_text(at, end, field);
    uint64_t bits;
    at = walk_number(at, end, &bits);
    if (!at) return NULL;
    if (row->type == FIELD_FLAG) {
        *(bool *)field = bits != 0;
    } else if (row->type == FIELD_CODE) {
        int64_t code = unzigzag(bits);
        bool known = code >= 0 && code < ERR_CODE_COUNT;
        *(enum err_code *)field = known ? (enum err_code)code : ERR_UNKNOWN;
    } else {
        *(int64_t *)field = unzigzag(bits);
    }
    return at;
}

static void set_missing(struct event *event, const struct field_row *row) {
    void *at = (char *)event + row->offset;
    if (is_text(row)) *(struct str *)at = STR_EMPTY;
    if (row->type == FIELD_TOKENS) *(int64_t *)at = TOKENS_UNKNOWN;
}

/* --- texts: most of all events, so no walk through the table ------------------------------- */

struct text_parts {
    struct str agent, text;
    int64_t at_ms;
};

/* Parse the text event at the front of `bytes`, and return where it ends. NULL: it is cut
 * short, or lacks a field. */
static inline __attribute__((always_inline)) const char *
walk_text_event(struct str bytes, struct text_parts *ret) {
    struct str body;
    uint64_t at_ms;
    const char *next = walk_text(bytes.at + 1, bytes.at + bytes.len, &body);
    if (!next) return NULL;
    const char *at = walk_text(body.at, next, &ret->agent);
    at = walk_number(at, next, &at_ms);
    if (!walk_text(at, next, &ret->text)) return NULL;
    ret->at_ms = unzigzag(at_ms);
    return next;
}

/* Writes only the members of *ret that a text has, and nothing if a field is missing. */
static inline bool decode_text(struct str *bytes, struct event *ret) {
    struct text_parts parts;
    const char *next = walk_text_event(*bytes, &parts);
    if (!next) return false;
    ret->kind = EVENT_TEXT;
    ret->at_ms = parts.at_ms;
    ret->agent = parts.agent;
    ret->text.text = parts.text;
    *bytes = str_skip(*bytes, (size_t)(next - bytes->at));
    return true;
}

/* --- decode ------------------------------------------------------------------------------- */

static __attribute__((noinline)) bool decode(struct str *bytes, struct event *ret,
                                             struct err *e) {
    if (bytes->len == 0) return err_set(e, ERR_DATA_LOSS, "no event where one should begin");
    unsigned kind = (unsigned char)bytes->at[0];
    if (!is_kind(kind)) return err_set(e, ERR_DATA_LOSS, "no event has kind %u", kind);
    struct str body;
    const char *next = walk_text(bytes->at + 1, bytes->at + bytes->len, &body);
    if (!next) goto cut;
    struct event event = {.seq = ret->seq, .kind = (enum event_kind)kind, .agent = STR_EMPTY};
    uint64_t at_ms;
    const char *at = walk_text(body.at, next, &event.agent);
    at = walk_number(at, next, &at_ms);
    if (!at) goto cut;
    event.at_ms = unzigzag(at_ms);
    for (const struct field_row *row = fields[kind]; row->type != FIELD_END; row++) {
        if (at == next) {
            set_missing(&event, row);
            continue;
        }
        at = walk_field(at, next, &event, row);
        if (!at) goto cut;
    }
    *bytes = str_skip(*bytes, (size_t)(next - bytes->at));
    *ret = event;
    return true;

cut:
    return err_set(e, ERR_DATA_LOSS, "a %s event is cut short", event_kinds[kind].name);
}

bool event_decode(struct str *bytes, struct event *ret, struct err *e) {
    bool text = bytes->len && (unsigned char)bytes->at[0] == EVENT_TEXT;
    return (text && decode_text(bytes, ret)) || decode(bytes, ret, e);
}

/* Move *at past the texts that begin as the one before *at does, of `len` bytes: most texts of a
 * reply are of one length. At most `max`; returns how many. */
static inline size_t skip_same_texts(const char **at, const char *end, size_t len, size_t max) {
    const char *begin = *at, *next = begin;
    size_t fit = (size_t)(end - next) / len;
    const char *stop = next + (fit < max ? fit : max) * len;
    uint16_t head, same;
    memcpy(&same, next - len, sizeof(same));
    for (; next != stop; next += len) {
        memcpy(&head, next, sizeof(head));
        if (head != same) break;
    }
    *at = next;
    return (size_t)(next - begin) / len;
}

size_t event_skip_texts(struct str *bytes, size_t max) {
    const char *at = bytes->at, *end = at + bytes->len;
    size_t count = 0;
    struct str body;
    while (count < max && end - at >= 2 && *at == EVENT_TEXT) {
        size_t len = (unsigned char)at[1]; /* nearly always one byte */
        if (len < 0x80 && len <= (size_t)(end - at) - 2) {
            at += 2 + len;
            count++;
            count += skip_same_texts(&at, end, 2 + len, max - count);
        } else {
            const char *next = walk_text(at + 1, end, &body);
            if (!next) break;
            at = next;
            count++;
        }
    }
    *bytes = (struct str){at, (size_t)(end - at)};
    return count;
}

bool event_skip(struct str *bytes) {
    if (bytes->len == 0) return false;
    struct str rest = str_skip(*bytes, 1), body;
    assert(rest.len == 0 || rest.at);
    if (!wire_event_take_text(&rest, &body)) return false;
    *bytes = rest;
    return true;
}

bool event_take_text(struct str *bytes, struct str *ret_agent, struct str *ret_text) {
    struct text_parts parts;
    if (bytes->len == 0 || bytes->at[0] != EVENT_TEXT) return false;
    const char *next = walk_text_event(*bytes, &parts);
    if (!next || parts.text.at + parts.text.len != next) return false;
    *ret_agent = parts.agent;
    *ret_text = parts.text;
    *bytes = str_skip(*bytes, (size_t)(next - bytes->at));
    return true;
}

/* --- turns -------------------------------------------------------------------------------- */

bool event_turn_append(struct buf *turns, struct str agent, struct str text) {
    size_t len = varint_len(agent.len) + agent.len + varint_len(text.len) + text.len;
    char *at = buf_room(turns, len);
    if (!at) return false;
    at = event_put_text(at, agent);
    event_put_text(at, text);
    buf_grew(turns, len);
    return true;
}

bool event_turn_next(struct str *turns, struct event_turn *ret) {
    return turns->len && wire_event_take_text(turns, &ret->agent) &&
           wire_event_take_text(turns, &ret->text);
}
