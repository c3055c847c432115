#include "contract/nimi/pieces.h"

#include "base/utf8.h"

/* A journal's event is never longer, and less than a piece is held before it. */
#define HELD_MAX_BYTES (64 * MIB)

void pieces_init(struct pieces *pieces) {
    buf_init(&pieces->held, HELD_MAX_BYTES);
}

void pieces_done(struct pieces *pieces) {
    buf_done(&pieces->held);
}

void pieces_put(struct pieces *pieces, struct str text) {
    buf_append(&pieces->held, text);
}

/* ASCII white space, or the first byte of other white space: U+0085 and U+00A0 (C2), U+1680
 * (E1), U+2000 to U+205F (E2), U+3000 (E3), U+FEFF (EF). */
static bool may_begin_space(unsigned char byte) {
    return byte <= ' ' || byte == 0xC2 || byte == 0xE1 || byte == 0xE2 || byte == 0xE3 ||
           byte == 0xEF;
}

/* Whether these bytes are one whole white-space character, as defined by String.trim(). */
static bool pieces_is_space(struct str c) {
    static const struct str spaces[] = {
        STR_INIT("\xC2\x85"),     STR_INIT("\xC2\xA0"),     STR_INIT("\xE1\x9A\x80"),
        STR_INIT("\xE2\x80\xA8"), STR_INIT("\xE2\x80\xA9"), STR_INIT("\xE2\x80\xAF"),
        STR_INIT("\xE2\x81\x9F"), STR_INIT("\xE3\x80\x80"), STR_INIT("\xEF\xBB\xBF"),
    };
    if (!may_begin_space((unsigned char)c.at[0])) return false;
    if (c.len == 1) return true;
    for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
        if (str_equal(c, spaces[i])) return true;
    }
    bool en_quad_to_hair = c.len == 3 && !memcmp(c.at, "\xE2\x80", 2);
    return en_quad_to_hair && (unsigned char)c.at[2] >= 0x80 && (unsigned char)c.at[2] <= 0x8A;
}

static bool continues(char byte) {
    return ((unsigned char)byte & 0xC0) == 0x80;
}

static struct str character_at(struct str text, size_t at) {
    size_t end = at + 1;
    while (end < text.len && continues(text.at[end])) end++;
    return str_of(text.at + at, end - at);
}

static struct str character_before(struct str text, size_t at) {
    size_t begin = at - 1;
    while (begin > 0 && continues(text.at[begin])) begin--;
    return str_of(text.at + begin, at - begin);
}

/* Whether a client that trims both sides of a cut at `at` loses nothing. */
static bool is_safe(struct str text, size_t at) {
    return !continues(text.at[at]) && !pieces_is_space(character_at(text, at)) &&
           !pieces_is_space(character_before(text, at));
}

/* Cut at the last safe position, so that one large event makes one delta. The character after
 * it must be known, because it could be a space. */
struct str pieces_ready(const struct pieces *pieces) {
    struct str text = buf_str(&pieces->held);
    struct str within = str_head(text, PIECE_MAX_BYTES);
    if (text.len <= PIECE_MIN_BYTES) return STR_EMPTY;
    size_t last = within.len < text.len ? within.len : within.len - 1;
    for (size_t at = last; at >= PIECE_MIN_BYTES; at--) {
        if (is_safe(text, at)) return str_head(text, at);
    }
    if (text.len <= PIECE_MAX_BYTES) return STR_EMPTY;
    return str_head(text, utf8_cut(text, PIECE_MAX_BYTES));
}

struct str pieces_rest(const struct pieces *pieces) {
    return buf_str(&pieces->held);
}

void pieces_sent(struct pieces *pieces, size_t len) {
    buf_drop(&pieces->held, len);
}
