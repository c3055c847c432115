/* Two texts, of which the first ends at a line feed. Whatever matches the first one is JSON, and what
 * the match says is what its members are; all other members are those of the first. */
#include "wire/json_template.h"

#include <assert.h>
#include <stdlib.h>

/* Up to as many members as a template has room for: the others may not differ. */
static size_t pick(struct json object, struct json *ret) {
    struct json_reader reader = json_enter(object);
    struct json key;
    size_t count = 0;
    while (count < JSON_TEMPLATE_VALUES_MAX && json_next_member(&reader, &key, &ret[count]))
        count++;
    return count;
}

static bool may_differ(struct json value) {
    return value.kind == JSON_STRING || value.kind == JSON_NUMBER;
}

static void compare(struct json first, struct json second, const struct json *matched) {
    struct json_reader left = json_enter(first), right = json_enter(second);
    struct json left_key, right_key, left_value, right_value;
    size_t i = 0;
    for (; json_next_member(&left, &left_key, &left_value); i++) {
        bool both = json_next_member(&right, &right_key, &right_value);
        assert(both && str_equal(left_key.raw, right_key.raw));
        assert(left_value.kind == right_value.kind);
        if (i < JSON_TEMPLATE_VALUES_MAX && may_differ(left_value)) {
            assert(matched[i].kind == right_value.kind);
            assert(str_equal(matched[i].raw, right_value.raw));
        } else {
            assert(str_equal(left_value.raw, right_value.raw));
        }
    }
    assert(!json_next_member(&right, &right_key, &right_value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct json_template template = {0};
    struct json first, second, values[JSON_TEMPLATE_VALUES_MAX];
    struct json matched[JSON_TEMPLATE_VALUES_MAX] = {{.kind = JSON_NONE}};
    struct err e;
    struct str after, before = str_split(str_of(data, size), '\n', &after);
    if (!json_read(before, &first, &e) || first.kind != JSON_OBJECT) return 0;
    size_t count = pick(first, values);
    json_template_keep(&template, first.raw, values, count);
    bool itself = json_template_match(&template, first.raw, matched);
    assert(itself == (template.gap_count > 0));
    if (itself) compare(first, first, matched);

    char *exact = malloc(after.len ? after.len : 1); /* a read past its end is seen */
    if (!exact) abort();
    if (after.len) memcpy(exact, after.at, after.len);
    if (json_template_match(&template, str_of(exact, after.len), matched)) {
        bool reads = json_read(str_of(exact, after.len), &second, &e);
        assert(reads);
        compare(first, second, matched);
    }
    free(exact);
    json_template_done(&template);
    return 0;
}
