#include "wire/json_template.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

static bool may_differ(struct json value) {
    return value.kind == JSON_STRING || value.kind == JSON_NUMBER;
}

/* In the order of the text. */
static void add_gap(struct json_template *template, struct json_gap gap) {
    size_t at = template->gap_count++;
    for (; at > 0 && template->gaps[at - 1].begin > gap.begin; at--)
        template->gaps[at] = template->gaps[at - 1];
    template->gaps[at] = gap;
}

static void json_template_keep_text(struct json_template *template, struct str text) {
    if (text.len > template->room) {
        free(template->at);
        template->at = mem_alloc(text.len);
        template->room = (uint16_t)text.len;
    }
    memcpy(template->at, text.at, text.len);
    template->len = (uint16_t)text.len;
}

void json_template_keep(struct json_template *template, struct str text,
                        const struct json *values, size_t count) {
    assert(count <= JSON_TEMPLATE_VALUES_MAX);
    template->gap_count = 0;
    if (text.len > JSON_TEMPLATE_MAX_BYTES) return;
    for (size_t i = 0; i < count; i++) {
        if (!may_differ(values[i])) continue;
        size_t begin = (size_t)(values[i].raw.at - text.at), end = begin + values[i].raw.len;
        assert(begin < text.len && end < text.len); /* it is in a container */
        add_gap(template, (struct json_gap){(uint16_t)begin, (uint16_t)end, (uint8_t)i,
                                            (uint8_t)values[i].kind});
    }
    if (template->gap_count) json_template_keep_text(template, text);
}

/* The position after what stands in the template from `from` to `to`, or NULL. */
static const char *match_bytes(const struct json_template *template, size_t from, size_t to,
                               const char *at, const char *end) {
    size_t len = to - from;
    bool same = (size_t)(end - at) >= len && memcmp(at, template->at + from, len) == 0;
    return same ? at + len : NULL;
}

/* The same of a number and the byte after it, which is part of no number: so it ends there too. */
static const char *match_number(const struct json_template *template,
                                const struct json_gap *gap, const char *at, const char *end) {
    const char *after = match_bytes(template, gap->begin, gap->end + 1u, at, end);
    return after ? after - 1 : NULL;
}

/* The position after the value, or NULL. Numbers are often the same again. */
static const char *match_value(const struct json_template *template, const struct json_gap *gap,
                               const char *at, const char *end, struct json *ret) {
    const char *after = NULL;
    if (gap->kind == JSON_STRING) {
        after = json_string_end(at, end);
    } else {
        after = match_number(template, gap, at, end);
        if (!after) after = json_number_end(at, end);
    }
    if (after)
        ret[gap->value] =
            (struct json){(enum json_kind)gap->kind, str_of(at, (size_t)(after - at))};
    return after;
}

bool json_template_match(const struct json_template *template, struct str text,
                         struct json *ret) {
    if (template->gap_count == 0) return false;
    const char *at = text.at, *end = text.at + text.len;
    size_t kept = 0;
    for (size_t i = 0; i < template->gap_count; i++) {
        const struct json_gap *gap = &template->gaps[i];
        at = match_bytes(template, kept, gap->begin, at, end);
        if (at) at = match_value(template, gap, at, end, ret);
        if (!at) return false;
        kept = gap->end;
    }
    return match_bytes(template, kept, template->len, at, end) == end;
}

void json_template_forget(struct json_template *template) {
    template->gap_count = 0;
}

void json_template_done(struct json_template *template) {
    free(template->at);
    *template = (struct json_template){0};
}
