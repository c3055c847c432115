#include "contract/caller_options.h"

#include "helper/assert_str.h"

#define AT(member) offsetof(struct model_options, member)

static const struct caller_option table[] = {
    {"max_tokens", CALLER_LONGEST, 0, 0, 0},
    {"max_completion_tokens", CALLER_LONGEST, 0, 0, 0},
    {"temperature", CALLER_NUMBER, AT(temperature), 0, 2},
    {"presence_penalty", CALLER_NUMBER, AT(presence_penalty), -2, 2},
    {"top_k", CALLER_COUNT, AT(top_k), 0, 0},
    {"seed", CALLER_SEED, 0, 0, 0},
    {"stop", CALLER_STOPS, 0, 0, 0},
};

static struct arena *arena;
static const struct model_options *options;
static const char *name;
static struct err e;

static bool takes(const char *body) {
    struct json whole = {.kind = JSON_NONE};
    assert_true(json_read(str_from(body), &whole, &e));
    return caller_options_take(table, ARRAY_LEN(table), whole, arena, &options, &name, &e);
}

static void what_is_set_is_taken(void **state) {
    (void)state;
    assert_true(
        takes("{\"max_tokens\":50,\"max_completion_tokens\":40,\"temperature\":0,"
              "\"presence_penalty\":-2,\"top_k\":3,\"seed\":-1,\"stop\":[\"a\",\"\\n\"]}"));
    assert_int_equal(options->output_tokens_max, 40);
    assert_true(options->temperature == 0 && options->top_p < 0);
    assert_true(options->presence_penalty == -2);
    assert_int_equal(options->top_k, 3);
    assert_true(options->seeded && options->seed == -1);
    assert_int_equal(options->stop_count, 2);
    assert_str(options->stops[1], "\n");
    assert_true(takes("{\"stop\":\"END\"}"));
    assert_int_equal(options->stop_count, 1);
    assert_str(options->stops[0], "END");
    assert_true(takes("{\"stop\":[]}"));
    assert_int_equal(options->stop_count, 0);
}

static void nothing_and_null_set_nothing(void **state) {
    (void)state;
    assert_true(takes("{}"));
    assert_null(options);
    assert_true(takes("{\"max_tokens\":null,\"stop\":null,\"seed\":null}"));
    assert_null(options);
}

static void what_is_wrong_is_named(void **state) {
    (void)state;
    static const struct {
        const char *body, *name, *text;
    } rows[] = {
        {"{\"max_tokens\":0}", "max_tokens", "max_tokens: must be a whole number above 0"},
        {"{\"max_tokens\":1.5}", "max_tokens", "max_tokens: must be a whole number above 0"},
        {"{\"max_tokens\":\"5\"}", "max_tokens", "max_tokens: must be a whole number above 0"},
        {"{\"temperature\":2.1}", "temperature", "temperature: must be a number from 0 to 2"},
        {"{\"temperature\":true}", "temperature", "temperature: must be a number from 0 to 2"},
        {"{\"temperature\":1e999}", "temperature", "temperature: must be a number from 0 to 2"},
        {"{\"presence_penalty\":-3}", "presence_penalty",
         "presence_penalty: must be a number from -2 to 2"},
        {"{\"top_k\":-1}", "top_k", "top_k: must be a whole number, 0 or above"},
        {"{\"seed\":1e30}", "seed", "seed: must be a whole number"},
        {"{\"stop\":5}", "stop", "stop: must be a text, or a list of texts"},
        {"{\"stop\":[5]}", "stop", "stop: must be a text, or a list of texts"},
        {"{\"stop\":\"\"}", "stop", "stop: each must have 1 to 256 bytes"},
        {"{\"stop\":[\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\","
         "\"a\","
         "\"a\",\"a\",\"a\",\"a\"]}",
         "stop", "stop: 17 are more than the 16 of a request"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_false(takes(rows[i].body));
        assert_string_equal(name, rows[i].name);
        assert_string_equal(e.text, rows[i].text);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    }
}

static int begin(void **state) {
    (void)state;
    arena = arena_new(64 * KIB);
    return 0;
}

static int end(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(what_is_set_is_taken),
        CASE(nothing_and_null_set_nothing),
        CASE(what_is_wrong_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
