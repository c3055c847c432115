#include "wire/trace_context.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define MEMBER_PART_MAX_BYTES 256 /* of a key, and of a value */

/* --- ids -------------------------------------------------------------------------------------- */

static int hex_digit(char byte) {
    if (byte >= '0' && byte <= '9') return byte - '0';
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

bool trace_context_is_id(struct str text, size_t digits) {
    bool zero = true;
    if (text.len != digits) return false;
    for (size_t i = 0; i < digits; i++) {
        if (hex_digit(text.at[i]) < 0) return false;
        zero &= text.at[i] == '0';
    }
    return !zero;
}

void trace_context_random(char *ret, size_t digits) {
    static const char hex[] = "0123456789abcdef";
    unsigned char random[TRACE_ID_BYTES / 2];
    if (getrandom(random, digits / 2, 0) != (ssize_t)(digits / 2)) abort();
    random[0] |= 1; /* all zero is not an id */
    for (size_t i = 0; i < digits; i++)
        ret[i] = hex[i % 2 ? random[i / 2] & 15 : random[i / 2] >> 4];
    ret[digits] = 0;
}

/* --- traceparent ------------------------------------------------------------------------------ */

static bool read_byte(struct str text, size_t at, unsigned *ret) {
    int high = hex_digit(text.at[at]), low = hex_digit(text.at[at + 1]);
    *ret = (unsigned)(high * 16 + low);
    return high >= 0 && low >= 0;
}

/* A later version may append fields; version ff is not valid. */
bool trace_context_read(struct str text, struct trace_context *ret) {
    unsigned version, flags;
    *ret = (struct trace_context){.flags = 0};
    if (text.len < TRACE_PARENT_BYTES || text.at[2] != '-' || text.at[35] != '-' ||
        text.at[52] != '-')
        return false;
    struct str id = str_of(text.at + 3, TRACE_ID_BYTES);
    struct str span = str_of(text.at + 36, TRACE_SPAN_BYTES);
    if (!read_byte(text, 0, &version) || !read_byte(text, 53, &flags) || version == 0xff ||
        !trace_context_is_id(id, TRACE_ID_BYTES) ||
        !trace_context_is_id(span, TRACE_SPAN_BYTES))
        return false;
    bool more = text.len > TRACE_PARENT_BYTES;
    if (more && (version == 0 || text.at[TRACE_PARENT_BYTES] != '-')) return false;
    memcpy(ret->id, id.at, id.len);
    memcpy(ret->span, span.at, span.len);
    ret->flags = flags & (TRACE_SAMPLED | TRACE_RANDOM);
    return true;
}

void trace_context_write(const struct trace_context *trace,
                         char ret[static TRACE_PARENT_BYTES + 1]) {
    snprintf(ret, TRACE_PARENT_BYTES + 1, "00-%s-%s-%02x", trace->id, trace->span,
             trace->flags & 0xff);
}

/* --- tracestate ------------------------------------------------------------------------------- */

static bool is_key(struct str key) {
    if (!key.len || key.len > MEMBER_PART_MAX_BYTES) return false;
    for (size_t i = 0; i < key.len; i++) {
        char byte = key.at[i];
        bool first = (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
        bool later = byte == '_' || byte == '-' || byte == '*' || byte == '/' || byte == '@';
        if (!first && (i == 0 || !later)) return false;
    }
    return true;
}

static bool is_value(struct str value) {
    if (!value.len || value.len > MEMBER_PART_MAX_BYTES) return false;
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] < ' ' || value.at[i] > '~' || value.at[i] == '=') return false;
    }
    return true;
}

static bool is_member(struct str member) {
    struct str value, key = str_split(member, '=', &value);
    return is_key(key) && is_value(value);
}

static void add_member(struct trace_context *trace, struct str member) {
    size_t comma = trace->state_len > 0;
    trace->members++;
    if (trace->state_len + comma + member.len > TRACE_STATE_MAX_BYTES) {
        trace->members = TRACE_STATE_MEMBERS_MAX; /* what follows is dropped, too */
        return;
    }
    if (comma) trace->state[trace->state_len++] = ',';
    memcpy(trace->state + trace->state_len, member.at, member.len);
    trace->state_len += member.len;
    trace->state[trace->state_len] = 0;
}

static void drop_state(struct trace_context *trace) {
    trace->spoiled = true;
    trace->state_len = 0;
    trace->state[0] = 0;
}

void trace_context_add_state(struct trace_context *trace, struct str field) {
    while (field.len && !trace->spoiled) {
        struct str member = str_trim(str_split(field, ',', &field));
        if (!member.len) continue;
        if (!is_member(member))
            drop_state(trace);
        else if (trace->members < TRACE_STATE_MEMBERS_MAX)
            add_member(trace, member);
    }
}

/* --- both as one text ------------------------------------------------------------------------- */

void trace_context_put(const struct trace_context *trace, struct buf *out) {
    char parent[TRACE_PARENT_BYTES + 1];
    if (!trace_context_known(trace)) return;
    trace_context_write(trace, parent);
    buf_append(out, str_from(parent));
    if (!trace->state_len) return;
    buf_append_byte(out, ' ');
    buf_append(out, trace_context_state(trace));
}

bool trace_context_take(struct str text, struct trace_context *ret) {
    struct str state, parent = str_split(text, ' ', &state);
    if (!trace_context_read(parent, ret)) return false;
    trace_context_add_state(ret, state);
    return true;
}
