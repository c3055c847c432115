#include "base/err.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>

const struct err_kind err_kinds[ERR_CODE_COUNT] = {
    /* clang-format off */
    [ERR_NONE]                = {"OK",                   0, 200, false},
    [ERR_CANCELLED]           = {"CANCELLED",            1, 499, false},
    [ERR_UNKNOWN]             = {"UNKNOWN",              2, 500, false},
    [ERR_INVALID_ARGUMENT]    = {"INVALID_ARGUMENT",     3, 422, false},
    [ERR_DEADLINE_EXCEEDED]   = {"DEADLINE_EXCEEDED",    4, 504, true},
    [ERR_NOT_FOUND]           = {"NOT_FOUND",            5, 404, false},
    [ERR_ALREADY_EXISTS]      = {"ALREADY_EXISTS",       6, 409, false},
    [ERR_PERMISSION_DENIED]   = {"PERMISSION_DENIED",    7, 403, false},
    [ERR_RESOURCE_EXHAUSTED]  = {"RESOURCE_EXHAUSTED",   8, 429, true},
    [ERR_FAILED_PRECONDITION] = {"FAILED_PRECONDITION",  9, 409, false},
    [ERR_ABORTED]             = {"ABORTED",             10, 409, true},
    [ERR_OUT_OF_RANGE]        = {"OUT_OF_RANGE",        11, 422, false},
    [ERR_UNIMPLEMENTED]       = {"UNIMPLEMENTED",       12, 501, false},
    [ERR_INTERNAL]            = {"INTERNAL",            13, 500, false},
    [ERR_UNAVAILABLE]         = {"UNAVAILABLE",         14, 503, true},
    [ERR_DATA_LOSS]           = {"DATA_LOSS",           15, 500, false},
    [ERR_UNAUTHENTICATED]     = {"UNAUTHENTICATED",     16, 401, false},
    [ERR_MALFORMED]           = {"INVALID_ARGUMENT",     3, 400, false},
    [ERR_TOO_LARGE]           = {"RESOURCE_EXHAUSTED",   8, 413, false},
    [ERR_EFFECT_UNKNOWN]      = {"UNKNOWN",              2, 500, false},
    [ERR_OUT_OF_MEMORY]       = {"RESOURCE_EXHAUSTED",   8, 503, true},
    [ERR_OUTCOME_UNKNOWN]     = {"UNAVAILABLE",         14, 503, true},
    /* clang-format on */
};

/* What is quoted is often cut to a length, between two bytes of a character. Protobuf takes no
 * such text. */
static void err_repair(char text[static ERR_TEXT_BYTES]) {
    struct str said = str_from(text);
    char room[3 * ERR_TEXT_BYTES]; /* U+FFFD is three bytes */
    struct buf whole = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    if (utf8_valid(said)) return;
    utf8_append_repaired(&whole, said);
    size_t kept = utf8_cut(buf_str(&whole), ERR_TEXT_BYTES - 1);
    memcpy(text, room, kept);
    text[kept] = '\0';
}

bool err_set(struct err *e, enum err_code code, const char *format, ...) {
    va_list values;
    va_start(values, format);
    e->code = code;
    e->retry_after_ms = 0;
    int len = vsnprintf(e->text, sizeof(e->text), format, values);
    if ((size_t)len >= sizeof(e->text))
        e->text[utf8_cut(str_from(e->text), sizeof(e->text) - 1)] = '\0';
    va_end(values);
    err_repair(e->text);
    return false;
}

bool err_add(struct err *e, const char *format, ...) {
    char context[ERR_TEXT_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(context, sizeof(context), format, values);
    va_end(values);
    struct err inner = *e;
    err_set(e, inner.code, "%s: %s", context, inner.text);
    e->retry_after_ms = inner.retry_after_ms;
    return false;
}

static char letter(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Whether `name` is `known` when case and underscores do not count. */
static bool same_name(struct str name, const char *known) {
    size_t i = 0;
    for (; *known; known++) {
        if (*known == '_') continue;
        while (i < name.len && name.at[i] == '_') i++;
        if (i == name.len || letter(name.at[i]) != letter(*known)) return false;
        i++;
    }
    while (i < name.len && name.at[i] == '_') i++;
    return i == name.len;
}

enum err_code err_code_named(struct str name) {
    if (same_name(name, "CANCELED")) return ERR_CANCELLED;
    for (int code = ERR_NONE; code <= ERR_UNAUTHENTICATED; code++) {
        if (same_name(name, err_kinds[code].name)) return (enum err_code)code;
    }
    return ERR_UNKNOWN;
}
