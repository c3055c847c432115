#include "cli/completion.h"

#include "cli/help_text.h"

void completion_word(struct str word, struct str meaning, struct buf *out) {
    buf_printf(out, STR_FMT "\t" STR_FMT "\n", STR_ARG(word), STR_ARG(meaning));
}

/* Whether `out` has this word already, from offset `begin`. */
static bool is_known(const struct buf *out, size_t begin, struct str word) {
    struct str rest = str_skip(buf_str(out), begin), line;
    while (help_text_line(&rest, &line)) {
        struct str meaning;
        if (str_equal(str_split(line, '\t', &meaning), word)) return true;
    }
    return false;
}

static void completion_offer(struct str word, struct str meaning, size_t begin,
                             struct buf *out) {
    if (!is_known(out, begin, word)) completion_word(word, meaning, out);
}

static bool is_lower(char byte) {
    return byte >= 'a' && byte <= 'z';
}

/* How much of `text` is one word of small letters, digits and hyphens. */
static size_t word_len(struct str text) {
    size_t len = 0;
    while (len < text.len && (is_lower(text.at[len]) || text.at[len] == '-' ||
                              (text.at[len] >= '0' && text.at[len] <= '9')))
        len++;
    return len;
}

/* "weir NAME act ..." or "weir NAME [act] ...": what the command does. */
static void offer_act(struct str name, struct str line, size_t begin, struct buf *out) {
    struct str word = str_skip(line, sizeof("weir ") - 1);
    if (!str_starts(line, STR("weir ")) || !str_starts(word, name)) return;
    word = str_trim(str_skip(word, name.len));
    if (str_starts(word, STR("["))) word = str_skip(word, 1);
    size_t len = word_len(word);
    struct str end = str_skip(word, len);
    bool whole = end.len == 0 || end.at[0] == ' ' || end.at[0] == ']';
    if (len && is_lower(word.at[0]) && whole)
        completion_offer(str_head(word, len), STR_EMPTY, begin, out);
}

/* Every --flag that is named in this text. */
static void offer_flags(struct str text, size_t begin, struct buf *out) {
    for (size_t at; (at = str_find(text, STR("--"))) < text.len;) {
        bool starts = at == 0 || !(str_is_alnum(text.at[at - 1]) || text.at[at - 1] == '-');
        struct str name = str_skip(text, at + 2);
        size_t len = word_len(name);
        while (len && name.at[len - 1] == '-') len--;
        if (starts && len && is_lower(name.at[0]))
            completion_offer(str_head(str_skip(text, at), len + 2), STR_EMPTY, begin, out);
        text = str_skip(name, len);
    }
}

/* The flags of a list, each with its meaning. */
static void offer_entries(struct str text, size_t begin, struct buf *out) {
    struct str line, what, meaning;
    while (help_text_line(&text, &line)) {
        if (!help_text_entry(line, &what, &meaning)) continue;
        size_t at = str_find(what, STR("--"));
        size_t len = at < what.len ? word_len(str_skip(what, at)) : 0;
        if (len > 2) completion_offer(str_head(str_skip(what, at), len), meaning, begin, out);
    }
}

void completion_words(struct str name, struct str help, struct buf *out) {
    struct help_text text = help_text_read(help);
    struct str rest = text.usage, line;
    size_t begin = out->len;
    while (help_text_line(&rest, &line)) offer_act(name, line, begin, out);
    offer_entries(text.body, begin, out);
    offer_flags(text.usage, begin, out);
    offer_flags(text.body, begin, out);
    offer_entries(text.settings, begin, out);
    completion_offer(STR("--help"), STR("say what this does"), begin, out);
}
