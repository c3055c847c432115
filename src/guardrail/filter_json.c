/* Applies guardrails to each string value of a JSON text. */
#include "guardrail/filter.h"

#include "wire/json.h"

/* The length of the string at the start of `text`, with its quotes. `text` is accepted JSON. */
static size_t string_len(struct str text) {
    size_t len = 1;
    while (text.at[len] != '"') len += text.at[len] == '\\' ? 2 : 1;
    return len + 1;
}

static bool is_key(struct str rest) {
    size_t i = 0;
    while (i < rest.len && (rest.at[i] == ' ' || rest.at[i] == '\t' || rest.at[i] == '\n' ||
                            rest.at[i] == '\r'))
        i++;
    return i < rest.len && rest.at[i] == ':';
}

/* Filter one string value. Its spelling is kept unless something in it was replaced. */
static bool filter_string(struct filter *filter, struct str raw, struct buf *out) {
    uint64_t before = filter->result.redacted;
    struct buf text, passed;
    buf_init(&text, raw.len);
    buf_init(&passed, out->max_bytes);
    bool good = json_text(json_of(raw), &text) &&
                filter_feed(filter, buf_str(&text), &passed) && filter_end(filter, &passed);
    if (good && filter->result.redacted == before) {
        buf_append(out, raw);
    } else if (good) {
        json_put_str(out, buf_str(&passed));
        out->full |= passed.full;
    }
    buf_done(&passed);
    buf_done(&text);
    return good;
}

static bool filter_strings(struct filter *filter, struct str text, struct buf *out) {
    while (text.len) {
        size_t plain = str_find_byte(text, '"');
        buf_append(out, str_head(text, plain));
        text = str_skip(text, plain);
        if (!text.len) return true;
        struct str raw = str_head(text, string_len(text));
        text = str_skip(text, raw.len);
        if (is_key(text)) {
            buf_append(out, raw);
        } else if (!filter_string(filter, raw, out)) {
            return false;
        }
    }
    return true;
}

bool filter_json(struct guardrails rules, struct str text, struct buf *out,
                 struct filter_result *ret) {
    struct err e;
    struct json json;
    if (!json_read(text, &json, &e)) return filter_text(rules, text, out, ret);
    struct filter filter;
    filter_init(&filter, rules);
    bool passed = filter_strings(&filter, text, out);
    *ret = filter.result;
    filter_done(&filter);
    return passed;
}
