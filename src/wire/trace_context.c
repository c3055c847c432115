#include "wire/trace_context.h"

#include <stdlib.h>
#include <sys/random.h>

#define RANDOM_BYTES 256          /* getrandom() gives so many whole */
#define MEMBER_PART_MAX_BYTES 256 /* of a key, and of a value */

/* --- ids -------------------------------------------------------------------------------------- */

static int hex_digit(char byte) {
    if (byte >= '0' && byte <= '9') return byte - '0';
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

bool trace_id_is(struct str text, size_t digits) {
    bool zero = true;
    if (text.len != digits) return false;
    for (size_t i = 0; i < digits; i++) {
        if (hex_digit(text.at[i]) < 0) return false;
        zero &= text.at[i] == '0';
    }
    return !zero;
}

bool trace_id_read(struct str text, size_t digits, unsigned char *ret) {
    if (!trace_id_is(text, digits)) return false;
    for (size_t i = 0; i < digits / 2; i++)
        ret[i] =
            (unsigned char)(hex_digit(text.at[2 * i]) * 16 + hex_digit(text.at[2 * i + 1]));
    return true;
}

static char *put_digits(char *at, const unsigned char *bytes, size_t len) {
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        *at++ = hex[bytes[i] >> 4];
        *at++ = hex[bytes[i] & 15];
    }
    return at;
}

/* Random bytes of a thread: a system call gets those of many ids. */
static void take_random(unsigned char *ret, size_t len) {
    static _Thread_local struct {
        unsigned char bytes[RANDOM_BYTES];
        size_t left;
    } random;
    if (random.left < len) {
        if (getrandom(random.bytes, RANDOM_BYTES, 0) != RANDOM_BYTES) abort();
        random.left = RANDOM_BYTES;
    }
    random.left -= len;
    memcpy(ret, random.bytes + random.left, len);
    ret[0] |= 1; /* all zero is not an id */
}

void trace_id_write(const unsigned char *id, size_t digits, char *ret) {
    *put_digits(ret, id, digits / 2) = 0;
}

void trace_id_random(char *ret, size_t digits) {
    unsigned char random[TRACE_ID_BYTES];
    take_random(random, digits / 2);
    trace_id_write(random, digits, ret);
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
    *ret = (struct trace_context){.state = STR_EMPTY};
    if (text.len < TRACE_PARENT_BYTES || text.at[2] != '-' || text.at[35] != '-' ||
        text.at[52] != '-')
        return false;
    struct trace_context read = *ret;
    if (!read_byte(text, 0, &version) || !read_byte(text, 53, &flags) || version == 0xff ||
        !trace_id_read(str_of(text.at + 3, TRACE_ID_DIGITS), TRACE_ID_DIGITS, read.id) ||
        !trace_id_read(str_of(text.at + 36, TRACE_SPAN_DIGITS), TRACE_SPAN_DIGITS, read.span))
        return false;
    bool more = text.len > TRACE_PARENT_BYTES;
    if (more && (version == 0 || text.at[TRACE_PARENT_BYTES] != '-')) return false;
    read.flags = flags & (TRACE_SAMPLED | TRACE_RANDOM);
    *ret = read;
    return true;
}

void trace_context_write(const struct trace_context *trace,
                         char ret[static TRACE_PARENT_BYTES + 1]) {
    const unsigned char version = 0, flags = (unsigned char)trace->flags;
    char *at = put_digits(ret, &version, 1);
    *at++ = '-';
    at = put_digits(at, trace->id, TRACE_ID_BYTES);
    *at++ = '-';
    at = put_digits(at, trace->span, TRACE_SPAN_BYTES);
    *at++ = '-';
    *put_digits(at, &flags, 1) = 0;
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

static void add_member(struct trace_state *state, struct str member) {
    size_t comma = state->len > 0;
    state->members++;
    if (state->len + comma + member.len > TRACE_STATE_MAX_BYTES) {
        state->members = TRACE_STATE_MEMBERS_MAX; /* what follows is dropped, too */
        return;
    }
    if (comma) state->text[state->len++] = ',';
    memcpy(state->text + state->len, member.at, member.len);
    state->len += member.len;
}

void trace_state_add(struct trace_state *state, struct str field) {
    while (field.len && !state->spoiled) {
        struct str member = str_trim(str_split(field, ',', &field));
        if (!member.len) continue;
        if (!is_member(member)) {
            state->spoiled = true;
            state->len = 0;
        } else if (state->members < TRACE_STATE_MEMBERS_MAX) {
            add_member(state, member);
        }
    }
}

/* --- spans of a trace ------------------------------------------------------------------------- */

struct trace_context *trace_context_copy(const struct trace_context *from,
                                         struct arena *arena) {
    struct trace_context *copy = ARENA_NEW(arena, struct trace_context);
    if (!copy) return NULL;
    *copy = *from;
    return !from->state.len || arena_str(arena, from->state, &copy->state) ? copy : NULL;
}

void trace_context_fork(const struct trace_context *of, struct trace_context *ret) {
    if (of) {
        *ret = *of;
    } else {
        *ret =
            (struct trace_context){.flags = TRACE_SAMPLED | TRACE_RANDOM, .state = STR_EMPTY};
        take_random(ret->id, TRACE_ID_BYTES);
    }
    take_random(ret->span, TRACE_SPAN_BYTES);
}

struct trace_context *trace_context_child(const struct trace_context *of, struct arena *arena) {
    struct trace_context *child = ARENA_NEW(arena, struct trace_context);
    if (child) trace_context_fork(of, child);
    return child;
}

/* --- both as one text ------------------------------------------------------------------------- */

void trace_context_put(const struct trace_context *trace, struct buf *out) {
    char parent[TRACE_PARENT_BYTES + 1];
    if (!trace_context_known(trace)) return;
    trace_context_write(trace, parent);
    buf_append(out, str_from(parent));
    if (!trace->state.len) return;
    buf_append_byte(out, ' ');
    buf_append(out, trace->state);
}

/* A state that is not as trace_context_put() writes it is dropped. */
bool trace_context_take(struct str text, struct trace_context *ret) {
    struct trace_state read = {.len = 0};
    struct str state, parent = str_split(text, ' ', &state);
    if (!trace_context_read(parent, ret)) return false;
    trace_state_add(&read, state);
    if (str_equal(trace_state_str(&read), state)) ret->state = state;
    return true;
}
