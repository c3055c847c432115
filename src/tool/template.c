#include "tool/template.h"

#define NAME_MAX_BYTES 128

static const struct {
    struct str prefix;
    enum template_kind kind;
} prefixes[] = {
    {STR_INIT("env:"), TEMPLATE_SECRET},
    {STR_INIT("call:"), TEMPLATE_OF_CALL},
    {STR_INIT(""), TEMPLATE_ARGUMENT},
};

static bool is_brace(char byte) {
    return byte == '{' || byte == '}';
}

static bool template_take_text(struct str *rest, struct template_piece *ret) {
    size_t len = 0;
    while (len < rest->len && !is_brace(rest->at[len])) len++;
    *ret = (struct template_piece){TEMPLATE_TEXT, str_head(*rest, len)};
    *rest = str_skip(*rest, len);
    return true;
}

static bool template_is_name(struct str name) {
    for (size_t i = 0; i < name.len; i++) {
        unsigned char byte = (unsigned char)name.at[i];
        if (byte <= ' ' || byte == 0x7F || is_brace(name.at[i])) return false;
    }
    return name.len > 0 && name.len <= NAME_MAX_BYTES;
}

static bool template_take_place(struct str *rest, struct template_piece *ret, struct err *e) {
    size_t end = str_find_byte(*rest, '}'), row = 0;
    struct str name = str_skip(str_head(*rest, end), 1);
    if (end == rest->len)
        return err_set(e, ERR_INVALID_ARGUMENT, "a '{' has no '}'; a brace itself is '{{'");
    while (!str_starts(name, prefixes[row].prefix)) row++;
    name = str_skip(name, prefixes[row].prefix.len);
    if (!template_is_name(name))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "'{" STR_FMT "}' names nothing; write {argument}, {env:VARIABLE}, "
                       "{call:user}, or '{{' for a brace itself",
                       STR_ARG(str_head(name, 40)));
    *ret = (struct template_piece){prefixes[row].kind, name};
    *rest = str_skip(*rest, end + 1);
    return true;
}

bool template_next(struct str *rest, struct template_piece *ret, struct err *e) {
    char first = rest->at[0];
    if (!is_brace(first)) return template_take_text(rest, ret);
    if (rest->len > 1 && rest->at[1] == first) {
        *ret = (struct template_piece){TEMPLATE_TEXT, str_head(*rest, 1)};
        *rest = str_skip(*rest, 2);
        return true;
    }
    if (first == '{') return template_take_place(rest, ret, e);
    return err_set(e, ERR_INVALID_ARGUMENT, "a '}' has no '{'; a brace itself is '}}'");
}

bool template_is_one(struct str text, struct template_piece *ret) {
    struct err e;
    return text.len && template_next(&text, ret, &e) && !text.len && ret->kind != TEMPLATE_TEXT;
}

bool template_call_find(struct str name, enum template_call *ret) {
    static const char *const names[TEMPLATE_CALL_COUNT] = {[TEMPLATE_USER] = "user",
                                                           [TEMPLATE_SESSION] = "session",
                                                           [TEMPLATE_WORKSPACE] = "workspace",
                                                           [TEMPLATE_AGENT] = "agent",
                                                           [TEMPLATE_CALL_ID] = "id"};
    for (unsigned i = 0; i < TEMPLATE_CALL_COUNT; i++) {
        if (!str_equal(name, str_from(names[i]))) continue;
        *ret = (enum template_call)i;
        return true;
    }
    return false;
}
