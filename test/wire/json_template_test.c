#include "wire/json_template.h"

#include "helper/assert_str.h"

#include <stdlib.h>

static const char chunk[] =
    "{\"id\":\"c-1\",\"made\":17,\"say\":[{\"text\":\"Hel\",\"end\":null}]}";

enum { MADE, TEXT, END, VALUES };

static struct json text_of(struct json object) {
    return json_find(json_at(json_find(object, STR("say")), 0), STR("text"));
}

static struct json read_text(struct str text) {
    struct json json;
    struct err e;
    assert_true(json_read(text, &json, &e));
    return json;
}

/* The chunk, of which `made` and the text may differ. The end is null, so it stays. */
static void keep(struct json_template *template, const char *text) {
    struct json json = read_text(str_from(text));
    struct json choice = json_at(json_find(json, STR("say")), 0);
    const struct json values[VALUES] = {json_find(json, STR("made")), text_of(json),
                                        json_find(choice, STR("end"))};
    json_template_keep(template, json.raw, values, VALUES);
}

static bool matches(const struct json_template *template, const char *text,
                    struct json *values) {
    struct str exact = exact_copy(str_from(text));
    bool match = json_template_match(template, exact, values);
    free((void *)exact.at);
    return match;
}

static void a_text_that_differs_in_its_values_alone_is_taken(void **state) {
    (void)state;
    struct json_template template = {0};
    struct json at[VALUES] = {{.kind = JSON_NONE}};
    keep(&template, chunk);
    const struct str next =
        STR("{\"id\":\"c-1\",\"made\":180,\"say\":[{\"text\":\"l\\no\",\"end\":null}]}");
    assert_true(json_template_match(&template, next, at));
    assert_str(at[MADE].raw, "180");
    assert_str(at[TEXT].raw, "\"l\\no\"");
    assert_int_equal(at[TEXT].kind, JSON_STRING);
    assert_int_equal(at[END].kind, JSON_NONE);
    json_template_done(&template);
}

static void any_other_text_is_to_be_read(void **state) {
    (void)state;
    static const char *const others[] = {
        "{\"id\":\"c-2\",\"made\":17,\"say\":[{\"text\":\"Hel\",\"end\":null}]}",
        "{\"id\":\"c-1\",\"made\":17,\"say\":[{\"text\":\"Hel\",\"end\":\"x\"}]}",
        "{\"id\":\"c-1\",\"made\":17,\"say\":[{\"text\":\"Hel\",\"end\":null}]} ",
        "{\"id\":\"c-1\",\"made\":17,\"say\":[{\"text\":\"Hel\", \"end\":null}]}",
        "{\"id\":\"c-1\",\"made\":17,\"say\":[{\"text\":null,\"end\":null}]}",
        "{\"id\":\"c-1\",\"made\":\"17\",\"say\":[{\"text\":\"Hel\",\"end\":null}]}",
        "{\"id\":\"c-1\",\"made\":017,\"say\":[{\"text\":\"Hel\",\"end\":null}]}",
        "{\"id\":\"c-1\",\"made\":17.,\"say\":[{\"text\":\"Hel\",\"end\":null}]}",
        "{\"id\":\"c-1\",\"made\":1 7,\"say\":[{\"text\":\"Hel\",\"end\":null}]}",
        "{\"id\":\"c-1\",\"made\":17,\"say\":[{\"text\":\"\\ud800\",\"end\":null}]}",
        "{\"id\":\"c-1\",\"made\":17,\"say\":[{\"text\":\"\xC3(\",\"end\":null}]}",
        "{\"id\":\"c-1\",\"made\":17,\"say\":[{\"text\":\"\x01\",\"end\":null}]}",
        ("{\"id\":\"c-1\",\"made\":17,\"say\":[{\"text\":\"Hel\",\"text\":\"lo\",\"end\":null}]"
         "}"),
        "",
    };
    struct json_template template = {0};
    struct json at[VALUES];
    keep(&template, chunk);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_false(matches(&template, others[i], at));
    assert_true(matches(&template, chunk, at));
    json_template_done(&template);
}

static void no_beginning_of_a_text_is_taken(void **state) {
    (void)state;
    struct json_template template = {0};
    struct json at[VALUES];
    keep(&template, chunk);
    for (size_t len = 0; len < sizeof(chunk) - 1; len++) {
        struct str part = exact_copy(str_of(chunk, len));
        assert_false(json_template_match(&template, part, at));
        free((void *)part.at);
    }
    json_template_done(&template);
}

/* In place of what the reader would say: it accepts each text that matches. */
static void whatever_is_taken_would_be_accepted(void **state) {
    (void)state;
    static const char bytes[] = "\"\\{}[],:0123456789.eE+-ntfu abc\x80\xC3\xA9\xF0\x01\n";
    struct json_template template = {0};
    struct json at[VALUES], json;
    struct err e;
    uint64_t dice = UINT64_C(88172645463325252);
    size_t taken = 0;
    keep(&template, chunk);
    for (size_t i = 0; i < 100000; i++) {
        char text[sizeof(chunk)];
        memcpy(text, chunk, sizeof(chunk));
        for (int changes = 0; changes < 2; changes++) {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            text[(dice >> 8) % (sizeof(chunk) - 1)] = bytes[dice % (sizeof(bytes) - 1)];
        }
        struct str changed = str_of(text, sizeof(chunk) - 1);
        if (!json_template_match(&template, changed, at)) continue;
        taken++;
        assert_true(json_read(changed, &json, &e));
        assert_true(str_equal(at[MADE].raw, json_find(json, STR("made")).raw));
        assert_true(str_equal(at[TEXT].raw, text_of(json).raw));
    }
    assert_true(taken > 100);
    json_template_done(&template);
}

static void a_long_text_and_one_without_values_are_not_kept(void **state) {
    (void)state;
    struct json_template template = {0};
    struct json at[VALUES];
    char text[JSON_TEMPLATE_MAX_BYTES + 1];
    memset(text, ' ', sizeof(text));
    memcpy(text, "{\"a\":1", 6);
    text[sizeof(text) - 1] = '}';
    struct json json = read_text(str_of(text, sizeof(text)));
    struct json value = json_find(json, STR("a"));
    json_template_keep(&template, json.raw, &value, 1);
    assert_false(json_template_match(&template, json.raw, at));

    keep(&template, chunk);
    value.kind = JSON_NONE;
    json_template_keep(&template, STR("{}"), &value, 1);
    assert_false(json_template_match(&template, STR("{}"), at));

    keep(&template, chunk);
    json_template_forget(&template);
    assert_false(matches(&template, chunk, at));
    json_template_done(&template);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_that_differs_in_its_values_alone_is_taken),
        cmocka_unit_test(any_other_text_is_to_be_read),
        cmocka_unit_test(no_beginning_of_a_text_is_taken),
        cmocka_unit_test(whatever_is_taken_would_be_accepted),
        cmocka_unit_test(a_long_text_and_one_without_values_are_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
