/* The escapes of JSON that was not read yet. */
#include "wire/json.h"

#define UNIT_BYTES 6 /* \uXXXX */

enum half { HALF_NONE, HALF_HIGH, HALF_LOW };

static bool is_unit(struct str text) {
    if (text.len < UNIT_BYTES || text.at[0] != '\\' || text.at[1] != 'u') return false;
    for (size_t i = 2; i < UNIT_BYTES; i++) {
        if (str_hex_digit(text.at[i]) < 0) return false;
    }
    return true;
}

/* Whether a unit from D800 begins `text` whose third digit is one of `digits`. */
static bool is_surrogate(struct str text, const char *digits) {
    return is_unit(text) && (text.at[2] | 0x20) == 'd' && strchr(digits, text.at[3]);
}

static enum half half_of(struct str text) {
    if (is_surrogate(text, "89abAB")) return HALF_HIGH;
    return is_surrogate(text, "cdefCDEF") ? HALF_LOW : HALF_NONE;
}

/* One byte, one escape, or a pair of them. */
static size_t token_bytes(struct str text, enum half *ret_lone) {
    enum half half = half_of(text);
    bool paired = half == HALF_HIGH && half_of(str_skip(text, UNIT_BYTES)) == HALF_LOW;
    *ret_lone = paired ? HALF_NONE : half;
    if (is_unit(text)) return paired ? 2 * UNIT_BYTES : UNIT_BYTES;
    return text.at[0] == '\\' && text.len > 1 ? 2 : 1;
}

void json_mend_surrogates(struct str text, struct buf *out) {
    while (text.len) {
        enum half lone;
        size_t len = token_bytes(text, &lone);
        buf_append(out, lone ? STR("\\ufffd") : str_head(text, len));
        text = str_skip(text, len);
    }
}

/* Where the first half that stands alone begins; text.len: there is none. Only escapes are looked
 * at: most texts have few. */
static size_t find_lone(struct str text) {
    size_t at = 0;
    enum half lone;
    while ((at += str_find_byte(str_skip(text, at), '\\')) < text.len) {
        size_t len = token_bytes(str_skip(text, at), &lone);
        if (lone) return at;
        at += len;
    }
    return text.len;
}

bool json_read_mended(struct str text, struct buf *room, struct json *ret, struct err *e) {
    if (find_lone(text) == text.len) return json_read(text, ret, e);
    buf_clear(room);
    json_mend_surrogates(text, room);
    if (buf_ok(room)) return json_read(buf_str(room), ret, e);
    return err_set(e, ERR_TOO_LARGE, "there is no room to mend the text in");
}

/* --- a stream of texts -------------------------------------------------------------------- */

/* What to write in place of a half; `before` and `rest` are what stands around it. */
static void mend_half(struct json_pairs *pairs, enum half half, struct str unit,
                      struct str before, struct str rest, struct buf *out) {
    bool begins = str_ends(before, STR("\"")), ends = str_starts(rest, STR("\""));
    if (half == HALF_LOW && begins && pairs->waits) {
        buf_append(out, str_of(pairs->high, UNIT_BYTES));
        buf_append(out, unit);
        pairs->waits = false;
    } else if (half == HALF_HIGH && ends) {
        memcpy(pairs->high, unit.at, UNIT_BYTES);
        pairs->waits = true;
    } else {
        buf_append(out, STR("\\ufffd"));
    }
}

bool json_pairs_mend(struct json_pairs *pairs, struct str text, struct buf *out) {
    size_t at = find_lone(text);
    if (at == text.len) return false;
    buf_append(out, str_head(text, at));
    while (at < text.len) {
        enum half lone;
        struct str rest = str_skip(text, at);
        size_t len = token_bytes(rest, &lone);
        if (lone) {
            mend_half(pairs, lone, str_head(rest, len), str_head(text, at), str_skip(rest, len),
                      out);
        } else {
            buf_append(out, str_head(rest, len));
        }
        at += len;
    }
    return true;
}
