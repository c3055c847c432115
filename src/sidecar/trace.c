#include "sidecar/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

static bool is_hex(struct str text, size_t len) {
    bool zero = true;
    if (text.len != len) return false;
    for (size_t i = 0; i < len; i++) {
        char byte = text.at[i];
        if (!((byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f'))) return false;
        zero &= byte == '0';
    }
    return !zero;
}

bool trace_id_ok(struct str text) {
    return is_hex(text, TRACE_ID_BYTES);
}

static void put_random(char *ret, size_t digits) {
    static const char hex[] = "0123456789abcdef";
    unsigned char random[TRACE_ID_BYTES / 2];
    if (getrandom(random, digits / 2, 0) != (ssize_t)(digits / 2)) abort();
    random[0] |= 1; /* all zero is not an id */
    for (size_t i = 0; i < digits; i++)
        ret[i] = hex[i % 2 ? random[i / 2] & 15 : random[i / 2] >> 4];
    ret[digits] = 0;
}

static void put(char *ret, struct str text) {
    memcpy(ret, text.at, text.len);
    ret[text.len] = 0;
}

struct parent {
    struct str id, span;
    unsigned flags;
};

static int hex_digit(char byte) {
    if (byte >= '0' && byte <= '9') return byte - '0';
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* A later version may append fields; version ff is invalid. */
static bool read_parent(struct str text, struct parent *ret) {
    if (text.len < TRACE_PARENT_BYTES || text.at[2] != '-' || text.at[35] != '-' ||
        text.at[52] != '-')
        return false;
    bool first = str_starts(text, STR("00"));
    int high = hex_digit(text.at[53]), low = hex_digit(text.at[54]);
    bool version = hex_digit(text.at[0]) >= 0 && hex_digit(text.at[1]) >= 0 &&
                   !str_starts(text, STR("ff"));
    bool ends =
        text.len == TRACE_PARENT_BYTES || (!first && text.at[TRACE_PARENT_BYTES] == '-');
    *ret = (struct parent){str_of(text.at + 3, TRACE_ID_BYTES),
                           str_of(text.at + 36, TRACE_SPAN_BYTES), (unsigned)(high * 16 + low)};
    return version && ends && high >= 0 && low >= 0 && trace_id_ok(ret->id) &&
           is_hex(ret->span, TRACE_SPAN_BYTES);
}

void trace_begin(struct trace *trace, struct str trace_id, struct str traceparent) {
    struct parent parent;
    bool inherits = read_parent(traceparent, &parent);
    bool named = trace_id_ok(trace_id);
    *trace = (struct trace){.sampled = true};
    if (inherits && (!named || str_equal(trace_id, parent.id))) {
        put(trace->parent, parent.span);
        trace->sampled = parent.flags & 1;
    }
    if (named)
        put(trace->id, trace_id);
    else if (inherits)
        put(trace->id, parent.id);
    else
        put_random(trace->id, TRACE_ID_BYTES);
    put_random(trace->span, TRACE_SPAN_BYTES);
}

void trace_write_parent(const struct trace *trace, char ret[static TRACE_PARENT_BYTES + 1]) {
    snprintf(ret, TRACE_PARENT_BYTES + 1, "00-%s-%s-%s", trace->id, trace->span,
             trace->sampled ? "01" : "00");
}
