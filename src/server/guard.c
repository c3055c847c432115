#include "server/guard.h"

#include "server/server.h"

/* The next byte that is expected. */
enum place {
    HEAD_START,    /* CR of an empty line, or the request line */
    HEAD_START_LF, /* LF of that empty line */
    REQUEST_FIRST, /* the request line; no further empty line */
    REQUEST_LINE,
    REQUEST_LF,
    NAME_FIRST, /* a field, or the CR that ends the section */
    NAME,
    VALUE,
    VALUE_LF,
    LAST_LF,
    SIZE_FIRST, /* at least one digit */
    SIZE,
    EXTENSION_FIRST, /* something must follow ';' */
    EXTENSION,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
};

#define METHOD_AND_VERSION_BYTES 40
#define FIELD_EXTRA_BYTES 32 /* added to name and value (RFC 9113 6.5.2) */
#define SIZE_DIGITS 15       /* values below 2^60 */
#define EXTENSION_BYTES 256

/* The bytes of an RFC 9110 tchar, those allowed in a field value, and hexadecimal digits. */
static bool is_token(uint8_t byte) {
    return (byte >= '0' && byte <= '9') || ((byte | 32) >= 'a' && (byte | 32) <= 'z') ||
           (byte > 0 && byte < 128 && strchr("!#$%&'*+-.^_`|~", byte));
}

static bool is_text(uint8_t byte) {
    return byte == '\t' || (byte >= ' ' && byte != 127);
}

static bool is_hex(uint8_t byte) {
    return (byte >= '0' && byte <= '9') || ((byte | 32) >= 'a' && (byte | 32) <= 'f');
}

bool guard_is_token(struct str text) {
    for (size_t i = 0; i < text.len; i++)
        if (!is_token((uint8_t)text.at[i])) return false;
    return text.len > 0;
}

void guard_head(struct guard *guard, const struct server_limits *limits) {
    *guard = (struct guard){.limits = limits, .place = HEAD_START};
}

void guard_chunks(struct guard *guard) {
    guard->place = SIZE_FIRST;
    guard->line_bytes = 0;
}

bool guard_began(const struct guard *guard) {
    return guard->place != HEAD_START;
}

/* Check one byte of framing. GUARD_MORE: continue. */
static enum guard_verdict step(struct guard *guard, uint8_t byte) {
    const struct server_limits *limits = guard->limits;
    switch ((enum place)guard->place) {
    case HEAD_START:
        if (byte == '\r') {
            guard->place = HEAD_START_LF;
            return GUARD_MORE;
        }
        /* fallthrough */
    case REQUEST_FIRST:
        if (!is_token(byte)) return GUARD_BAD;
        guard->place = REQUEST_LINE;
        guard->line_bytes = 1;
        return GUARD_MORE;
    case HEAD_START_LF:
        guard->place = REQUEST_FIRST;
        return byte == '\n' ? GUARD_MORE : GUARD_BAD;
    case REQUEST_LINE:
        if (byte == '\r') {
            guard->place = REQUEST_LF;
            return GUARD_MORE;
        }
        if (!is_text(byte) || byte == '\t' || byte >= 128) return GUARD_BAD;
        if (++guard->line_bytes > limits->target_max_bytes + METHOD_AND_VERSION_BYTES)
            return GUARD_TARGET_TOO_LONG;
        return GUARD_MORE;
    case REQUEST_LF: guard->place = NAME_FIRST; return byte == '\n' ? GUARD_MORE : GUARD_BAD;
    case NAME_FIRST:
        if (byte == '\r') {
            guard->place = LAST_LF;
            return GUARD_MORE;
        }
        if (!is_token(byte)) return GUARD_BAD; /* also refuses a folded line */
        guard->place = NAME;
        guard->fields_bytes += FIELD_EXTRA_BYTES + 1;
        if (++guard->fields > limits->fields_max) return GUARD_FIELDS_TOO_LARGE;
        return GUARD_MORE;
    case NAME:
        if (byte == ':') {
            guard->place = VALUE;
            return GUARD_MORE;
        }
        if (++guard->fields_bytes > limits->fields_max_bytes) return GUARD_FIELDS_TOO_LARGE;
        return is_token(byte) ? GUARD_MORE : GUARD_BAD;
    case VALUE:
        if (byte == '\r') {
            guard->place = VALUE_LF;
            return GUARD_MORE;
        }
        if (++guard->fields_bytes > limits->fields_max_bytes) return GUARD_FIELDS_TOO_LARGE;
        return is_text(byte) ? GUARD_MORE : GUARD_BAD;
    case VALUE_LF: guard->place = NAME_FIRST; return byte == '\n' ? GUARD_MORE : GUARD_BAD;
    case LAST_LF: return byte == '\n' ? GUARD_END : GUARD_BAD;

    case SIZE_FIRST:
        if (!is_hex(byte)) return GUARD_BAD;
        guard->place = SIZE;
        guard->chunk_left = 0;
        guard->line_bytes = 0;
        /* fallthrough */
    case SIZE:
        if (is_hex(byte)) {
            if (++guard->line_bytes > SIZE_DIGITS) return GUARD_BAD;
            unsigned digit = byte <= '9' ? byte - (unsigned)'0' : (byte | 32u) - 'a' + 10;
            guard->chunk_left = guard->chunk_left * 16 + digit;
            return GUARD_MORE;
        }
        if (byte == ';') guard->place = EXTENSION_FIRST;
        if (byte == '\r') guard->place = SIZE_LF;
        return byte == ';' || byte == '\r' ? GUARD_MORE : GUARD_BAD;
    case EXTENSION_FIRST:
    case EXTENSION:
        if (byte == '\r' && guard->place == EXTENSION) {
            guard->place = SIZE_LF;
            return GUARD_MORE;
        }
        guard->place = EXTENSION;
        if (++guard->line_bytes > EXTENSION_BYTES) return GUARD_BAD;
        return is_text(byte) ? GUARD_MORE : GUARD_BAD;
    case SIZE_LF:
        guard->place = guard->chunk_left ? DATA : NAME_FIRST;
        return byte == '\n' ? GUARD_MORE : GUARD_BAD;
    case DATA: break; /* skipped in one step */
    case DATA_CR: guard->place = DATA_LF; return byte == '\r' ? GUARD_MORE : GUARD_BAD;
    case DATA_LF: guard->place = SIZE_FIRST; return byte == '\n' ? GUARD_MORE : GUARD_BAD;
    }
    return GUARD_BAD;
}

static size_t skip_data(struct guard *guard, size_t len) {
    size_t skip = len < guard->chunk_left ? len : (size_t)guard->chunk_left;
    guard->chunk_left -= skip;
    if (guard->chunk_left == 0) guard->place = DATA_CR;
    return skip;
}

enum guard_verdict guard_scan(struct guard *guard, struct str bytes, size_t *ret_used) {
    for (size_t i = 0; i < bytes.len;) {
        if (guard->place == DATA) {
            i += skip_data(guard, bytes.len - i);
            continue;
        }
        enum guard_verdict verdict = step(guard, (uint8_t)bytes.at[i++]);
        if (verdict != GUARD_MORE) {
            *ret_used = i;
            return verdict;
        }
    }
    *ret_used = bytes.len;
    return GUARD_MORE;
}
