#include "orchestrator/jsonb.h"

#include "wire/json.h"

static bool in_number(char byte) {
    return (byte >= '0' && byte <= '9') || byte == '-' || byte == '+' || byte == '.' ||
           byte == 'e' || byte == 'E';
}

static struct str take(struct str *rest, size_t len) {
    struct str taken = str_head(*rest, len);
    *rest = str_skip(*rest, taken.len);
    return taken;
}

/* A text, with its quotation marks. An escape is taken whole: what is escaped begins none. */
static void jsonb_put_text(struct str *rest, struct buf *out) {
    buf_append(out, take(rest, 1));
    while (rest->len && rest->at[0] != '"') {
        size_t plain = 0;
        while (plain < rest->len && rest->at[plain] != '"' && rest->at[plain] != '\\') plain++;
        if (plain)
            buf_append(out, take(rest, plain));
        else if (str_starts(*rest, STR("\\u0000")) && take(rest, 6).len)
            buf_append(out, STR("\\ufffd"));
        else
            buf_append(out, take(rest, 2));
    }
    buf_append(out, take(rest, 1));
}

static bool is_held(struct str number) {
    size_t e = str_find_byte(number, 'e'), big = str_find_byte(number, 'E');
    int64_t exponent = 0;
    if (big < e) e = big;
    if (e < number.len) exponent = json_exponent(str_skip(number, e + 1));
    return number.len <= JSONB_NUMBER_MAX && exponent <= JSONB_NUMBER_MAX &&
           exponent >= -JSONB_NUMBER_MAX;
}

static void put_number(struct str *rest, struct buf *out) {
    size_t len = 1;
    while (len < rest->len && in_number(rest->at[len])) len++;
    struct str number = take(rest, len);
    bool held = is_held(number);
    if (!held) buf_append_byte(out, '"');
    buf_append(out, number);
    if (!held) buf_append_byte(out, '"');
}

bool jsonb_has_nul(struct str json) {
    for (;;) {
        json = str_skip(json, str_find_byte(json, '\\'));
        if (!json.len) return false;
        if (str_starts(json, STR("\\u0000"))) return true;
        json = str_skip(json, 2);
    }
}

void jsonb_put(struct str json, struct buf *out) {
    while (json.len) {
        char byte = json.at[0];
        if (byte == '"')
            jsonb_put_text(&json, out);
        else if (byte == '-' || (byte >= '0' && byte <= '9'))
            put_number(&json, out);
        else
            buf_append(out, take(&json, 1));
    }
}
