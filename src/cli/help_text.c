#include "cli/help_text.h"

#define INDENT "  "

bool help_text_line(struct str *rest, struct str *ret) {
    if (rest->len == 0) return false;
    *ret = str_split(*rest, '\n', rest);
    return true;
}

struct help_text help_text_read(struct str text) {
    struct help_text ret = {STR_EMPTY, STR_EMPTY, STR_EMPTY};
    size_t gap = str_find(text, STR("\n\n"));
    ret.usage = str_head(text, gap);
    struct str rest = gap < text.len ? str_skip(text, gap + 2) : STR_EMPTY;
    size_t settings = str_find(rest, STR("\nSettings"));
    if (str_starts(rest, STR("Settings"))) settings = 0;
    ret.body = str_trim(str_head(rest, settings));
    ret.settings = str_trim(str_skip(rest, settings));
    return ret;
}

bool help_text_entry(struct str line, struct str *ret_what, struct str *ret_meaning) {
    if (!str_starts(line, STR(INDENT)) || str_starts(line, STR(INDENT " "))) return false;
    line = str_skip(line, sizeof(INDENT) - 1);
    size_t gap = str_find(line, STR("  "));
    if (line.len == 0) return false;
    *ret_what = str_head(line, gap);
    *ret_meaning = str_trim(str_skip(line, gap));
    return true;
}
