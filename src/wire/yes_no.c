#include "wire/yes_no.h"

#include "base/utf8.h"
#include "wire/json.h"

/* Without commas, which are also dropped from the words compared. */
static const char *const yes_entries[] = {
    /* clang-format off */
    "yes", "y", "yep", "yeah", "yes please", "yes go ahead", "yes do it", "approve", "approved",
    "ok", "okay", "ok go ahead", "allow", "allowed", "confirm", "confirmed", "accept", "accepted",
    "agreed", "sure", "go ahead", "do it", "please do", "proceed", "true", "👍",
    /* clang-format on */
};
static const char *const no_entries[] = {
    /* clang-format off */
    "no", "n", "nope", "no thanks", "no thank you", "refuse", "refused", "reject", "rejected",
    "deny", "denied", "decline", "declined", "cancel", "cancelled", "canceled", "stop", "abort",
    "don't", "dont", "do not", "don't do it", "do not do it", "never", "false", "👎",
    /* clang-format on */
};

static const struct {
    const char *const *entries;
    size_t count;
} built_in[] = {
    [YES_NO_YES] = {yes_entries, ARRAY_LEN(yes_entries)},
    [YES_NO_NO] = {no_entries, ARRAY_LEN(no_entries)},
};

/* --- normalising words -------------------------------------------------------------------- */

struct plain {
    char room[2 * YES_NO_MAX_BYTES];
    struct buf text; /* in `room`; lower case at most doubles a letter's bytes */
};

static bool yes_no_is_space(uint32_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r') || c == 0xA0 || c == 0x202F || c == 0x3000 ||
           (c >= 0x2000 && c <= 0x200A);
}

/* Separates words; treated as white space. */
static bool is_comma(uint32_t c) {
    return c == ',' || c == 0x3001 || c == 0xFF0C || c == 0x60C;
}

/* Punctuation that may end a statement. */
static bool is_end(uint32_t c) {
    return c == '.' || c == '!' || c == ';' || c == 0x2026 || c == 0x3002 || c == 0xFF01 ||
           c == 0xFF0E;
}

/* Skin tones and variation selectors, which do not change the meaning of an emoji. */
static bool is_shade(uint32_t c) {
    return (c >= 0x1F3FB && c <= 0x1F3FF) || c == 0xFE0E || c == 0xFE0F;
}

/* Latin, Greek and Cyrillic. Letters of other scripts are compared with their case. */
static uint32_t yes_no_lower(uint32_t c) {
    if (c >= 'A' && c <= 'Z') return c + 32;
    if (c >= 0xC0 && c <= 0xDE && c != 0xD7) return c + 32;
    if (c >= 0x100 && c <= 0x137) return c | 1;
    if (c >= 0x139 && c <= 0x148) return c + (c & 1);
    if (c >= 0x14A && c <= 0x177) return c | 1;
    if (c >= 0x391 && c <= 0x3A9) return c + 32;
    if (c >= 0x410 && c <= 0x42F) return c + 32;
    if (c >= 0x400 && c <= 0x40F) return c + 80;
    return c == 0x2019 ? '\'' : c;
}

/* Cut the first character off valid UTF-8. */
static uint32_t yes_no_take(struct str *text) {
    const unsigned char *at = (const unsigned char *)text->at;
    size_t len = at[0] < 0x80 ? 1 : at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : 4;
    uint32_t c = len == 1 ? at[0] : at[0] & (0xFFu >> (len + 1));
    for (size_t i = 1; i < len; i++) c = c << 6 | (at[i] & 0x3F);
    *text = str_skip(*text, len);
    return c;
}

/* False: too long for an entry, not UTF-8, or nothing is left. */
static bool make_plain(struct str words, struct plain *ret) {
    bool gap = false, ended = false;
    ret->text = (struct buf){
        .at = ret->room, .room = sizeof(ret->room), .max_bytes = sizeof(ret->room)};
    if (words.len > YES_NO_MAX_BYTES || !utf8_valid(words)) return false;
    while (words.len) {
        uint32_t c = yes_no_take(&words);
        bool opens = c == 0xA1 && ret->text.len == 0; /* the opening mark of Spanish */
        if (is_shade(c) || opens) continue;
        if (yes_no_is_space(c) || is_comma(c)) {
            gap = ret->text.len > 0;
        } else if (is_end(c)) {
            ended = true;
        } else {
            if (ended) return false; /* words follow the punctuation */
            if (gap) buf_append_byte(&ret->text, ' ');
            gap = false;
            utf8_append(&ret->text, yes_no_lower(c));
        }
    }
    return ret->text.len > 0;
}

static bool yes_no_is_plain(const struct plain *plain, struct str entry) {
    struct plain other;
    return make_plain(entry, &other) && str_equal(buf_str(&plain->text), buf_str(&other.text));
}

/* --- the lists ---------------------------------------------------------------------------- */

void yes_no_each(enum yes_no which, const struct yes_no_words *more,
                 void (*each)(struct str entry, void *ctx), void *ctx) {
    struct yes_no_list others = {NULL, 0};
    if (which == YES_NO_NEITHER) return;
    if (more) others = which == YES_NO_YES ? more->yes : more->no;
    for (size_t i = 0; i < built_in[which].count; i++)
        each(str_from(built_in[which].entries[i]), ctx);
    for (size_t i = 0; i < others.count; i++) each(others.entries[i], ctx);
}

struct search {
    const struct plain *plain;
    bool found;
};

static void yes_no_compare(struct str entry, void *ctx) {
    struct search *search = ctx;
    if (!search->found) search->found = yes_no_is_plain(search->plain, entry);
}

static bool is_in(const struct plain *plain, enum yes_no which,
                  const struct yes_no_words *more) {
    struct search search = {plain, false};
    yes_no_each(which, more, yes_no_compare, &search);
    return search.found;
}

enum yes_no yes_no_read(struct str words, const struct yes_no_words *more) {
    struct plain plain;
    if (!make_plain(words, &plain)) return YES_NO_NEITHER;
    bool yes = is_in(&plain, YES_NO_YES, more), no = is_in(&plain, YES_NO_NO, more);
    if (yes == no) return YES_NO_NEITHER;
    return yes ? YES_NO_YES : YES_NO_NO;
}

/* --- JSON --------------------------------------------------------------------------------- */

static bool says_twice(struct json answer) {
    size_t decisions = 0, approvals = 0;
    struct json_reader reader = json_enter(answer);
    struct json key, value;
    while (json_next_member(&reader, &key, &value)) {
        decisions += json_is(key, STR("decision"));
        approvals += json_is(key, STR("approved"));
    }
    return decisions > 1 || approvals > 1;
}

static enum yes_no read_object(struct json answer) {
    struct json word = json_find(answer, STR("decision"));
    struct json approved = json_find(answer, STR("approved"));
    if (says_twice(answer)) return YES_NO_NEITHER;
    if (json_is(word, STR("approve")) || json_is(word, STR("edit"))) return YES_NO_YES;
    if (json_is(word, STR("refuse"))) return YES_NO_NO;
    if (word.kind != JSON_NONE) return YES_NO_NEITHER;
    if (approved.kind == JSON_TRUE) return YES_NO_YES;
    return approved.kind == JSON_FALSE ? YES_NO_NO : YES_NO_NEITHER;
}

static enum yes_no read_string(struct json string, const struct yes_no_words *more) {
    struct buf words;
    buf_init(&words, YES_NO_MAX_BYTES);
    enum yes_no said =
        json_text(string, &words) ? yes_no_read(buf_str(&words), more) : YES_NO_NEITHER;
    buf_done(&words);
    return said;
}

enum yes_no yes_no_of(struct str answer, const struct yes_no_words *more) {
    struct json json;
    struct err none;
    if (!json_read(str_trim(answer), &json, &none)) return yes_no_read(answer, more);
    if (json.kind == JSON_OBJECT) return read_object(json);
    if (json.kind == JSON_STRING) return read_string(json, more);
    return yes_no_read(answer, more); /* "true" and "false" are entries too */
}
