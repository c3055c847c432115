#include "server/guard.h"

#include "base/sixteen.h"
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

/* Of each byte below 64, and below 128: whether it is a tchar of RFC 9110, "!#$%&'*+-.^_`|~", a digit
 * or a letter. */
#define BIT(byte) (UINT64_C(1) << ((byte)&63))
#define FROM_TO(first, last) (((BIT(last) - BIT(first)) | BIT(last)))
static const uint64_t token_bits[2] = {
    BIT('!') | FROM_TO('#', '\'') | BIT('*') | BIT('+') | BIT('-') | BIT('.') |
        FROM_TO('0', '9'),
    FROM_TO('A', 'Z') | FROM_TO('^', 'z') | BIT('|') | BIT('~'),
};

/* The bytes of a token, those allowed in a field value, and hexadecimal digits. */
static bool server_guard_is_token(uint8_t byte) {
    return byte < 128 && (token_bits[byte / 64] >> byte % 64 & 1);
}

static bool is_text(uint8_t byte) {
    return byte == '\t' || (byte >= ' ' && byte != 127);
}

static bool is_hex(uint8_t byte) {
    return (byte >= '0' && byte <= '9') || ((byte | 32) >= 'a' && (byte | 32) <= 'f');
}

bool guard_is_token(struct str text) {
    for (size_t i = 0; i < text.len; i++)
        if (!server_guard_is_token((uint8_t)text.at[i])) return false;
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
        if (!server_guard_is_token(byte)) return GUARD_BAD;
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
        if (!server_guard_is_token(byte)) return GUARD_BAD; /* also refuses a folded line */
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
        return server_guard_is_token(byte) ? GUARD_MORE : GUARD_BAD;
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

/* The bytes of a token at the front. */
static size_t name_run(struct str bytes) {
    size_t len = 0;
    while (len + 16 <= bytes.len) {
        sixteen c = sixteen_at(bytes.at + len), letter = c | 0x20;
        sixteen plain = (sixteen)(((letter >= 'a') & (letter <= 'z')) |
                                  ((c >= '0') & (c <= '9')) | (c == '-'));
        size_t first = sixteen_first(~plain);
        len += first;
        if (first == 16) continue;
        if (!server_guard_is_token((uint8_t)bytes.at[len])) return len;
        len++; /* a rarer one */
    }
    while (len < bytes.len && server_guard_is_token((uint8_t)bytes.at[len])) len++;
    return len;
}

/* The bytes at the front that are no control characters and up to `last`. */
static size_t text_run(struct str bytes, uint8_t last) {
    size_t len = 0;
    for (; len + 16 <= bytes.len; len += 16) {
        sixteen c = sixteen_at(bytes.at + len);
        size_t first = sixteen_first((sixteen)((c < ' ') | (c == 127) | (c > last)));
        if (first < 16) return len + first;
    }
    for (; len < bytes.len; len++) {
        uint8_t c = (uint8_t)bytes.at[len];
        if (c < ' ' || c == 127 || c > last) break;
    }
    return len;
}

/* How many of `bytes` step() would take without leaving the request line or a field's name or value,
 * or reaching their limit: most of a header section. They are counted. */
static size_t skip_run(struct guard *guard, struct str bytes) {
    bool line = guard->place == REQUEST_LINE;
    if (!line && guard->place != NAME && guard->place != VALUE) return 0;
    size_t max = line ? guard->limits->target_max_bytes + METHOD_AND_VERSION_BYTES
                      : guard->limits->fields_max_bytes;
    size_t *count = line ? &guard->line_bytes : &guard->fields_bytes;
    if (*count >= max) return 0;
    struct str part = str_head(bytes, max - *count);
    size_t len = guard->place == NAME ? name_run(part) : text_run(part, line ? 126 : 255);
    *count += len;
    return len;
}

enum guard_verdict guard_scan(struct guard *guard, struct str bytes, size_t *ret_used) {
    for (size_t i = 0; i < bytes.len;) {
        if (guard->place == DATA) {
            i += skip_data(guard, bytes.len - i);
            continue;
        }
        i += skip_run(guard, str_skip(bytes, i));
        if (i == bytes.len) break;
        enum guard_verdict verdict = step(guard, (uint8_t)bytes.at[i++]);
        if (verdict != GUARD_MORE) {
            *ret_used = i;
            return verdict;
        }
    }
    *ret_used = bytes.len;
    return GUARD_MORE;
}
