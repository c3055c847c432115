/* What a caller may set of a reply, beside what the agent sets. */
#include "provider/model_options.h"

#include "helper/assert_str.h"

static const struct str stops[] = {STR_INIT("END"), STR_INIT("\"\n\xC3\xA9")};

static void assert_written(const struct model_options *options, const char *expected) {
    struct buf out;
    buf_init(&out, 4 * KIB);
    struct json_writer json = json_writer(&out);
    json_open_object(&json);
    model_options_write(options, &json);
    json_close(&json);
    assert_str(buf_str(&out), expected);
    buf_done(&out);
}

static void a_limit_is_lowered_and_never_raised(void **state) {
    (void)state;
    static const struct {
        int64_t own, callers, both;
    } rows[] = {{0, 0, 0}, {0, 9, 9}, {9, 0, 9}, {9, 8, 8}, {9, 10, 9}, {1, INT64_MAX, 1}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct model_options own = MODEL_OPTIONS_NONE, callers = MODEL_OPTIONS_NONE;
        own.output_tokens_max = rows[i].own;
        callers.output_tokens_max = rows[i].callers;
        assert_int_equal(model_options_narrow(&own, &callers).output_tokens_max, rows[i].both);
    }
}

static void reasoning_fits_into_what_is_left(void **state) {
    (void)state;
    static const struct {
        int64_t thinking, callers, left;
    } rows[] = {{2000, 0, 2000}, {2000, 2001, 2000}, {4000, 4000, 2000}, {4000, 2048, 1024},
                {4000, 2047, 0}, {4000, 1, 0},       {0, 5, 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct model_options own = MODEL_OPTIONS_NONE, callers = MODEL_OPTIONS_NONE;
        own.thinking_tokens = rows[i].thinking;
        callers.output_tokens_max = rows[i].callers;
        assert_int_equal(model_options_narrow(&own, &callers).thinking_tokens, rows[i].left);
    }
}

static void sampling_is_the_callers_where_it_says_any(void **state) {
    (void)state;
    struct model_options own = {
        .temperature = 0.5, .top_p = 0.6, .top_k = 7, .effort = STR("low")};
    struct model_options callers = MODEL_OPTIONS_NONE;
    assert_written(&(struct model_options){.temperature = 0, .top_p = 0},
                   "{\"temperature\":0,\"top_p\":0}");
    struct model_options both = model_options_narrow(&own, &callers);
    assert_written(&both, "{\"temperature\":0.5,\"top_p\":0.6,\"effort\":\"low\",\"top_k\":7}");
    callers = (struct model_options){.temperature = -1,
                                     .top_p = 1,
                                     .top_k = 8,
                                     .presence_penalty = -0.5,
                                     .frequency_penalty = 2,
                                     .seeded = true,
                                     .stops = stops,
                                     .stop_count = 2};
    both = model_options_narrow(&own, &callers);
    assert_written(&both,
                   "{\"top_p\":1,\"effort\":\"low\",\"top_k\":8,\"presence_penalty\":-0.5,"
                   "\"frequency_penalty\":2,\"seed\":0,"
                   "\"stop\":[\"END\",\"\\\"\\n\xC3\xA9\"]}");
}

static void what_is_written_reads_back(void **state) {
    (void)state;
    static const struct model_options all[] = {
        {.temperature = -1, .top_p = -1},
        {.temperature = 0, .top_p = 1, .output_tokens_max = INT64_MAX, .top_k = 1},
        {.temperature = 0.1,
         .top_p = -1,
         .seeded = true,
         .seed = INT64_MIN,
         .thinking_tokens = 3},
        {.temperature = -1,
         .top_p = -1,
         .stops = stops,
         .stop_count = 2,
         .effort = STR_INIT("x")},
    };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        struct arena *arena = arena_new(64 * KIB);
        struct model_options again;
        struct buf out, twice;
        struct err e;
        buf_init(&out, 4 * KIB);
        buf_init(&twice, 4 * KIB);
        struct json_writer json = json_writer(&out);
        json_open_object(&json);
        model_options_write(&all[i], &json);
        json_close(&json);
        assert_true(model_options_read(json_of(buf_str(&out)), arena, &again, &e));
        json = json_writer(&twice);
        json_open_object(&json);
        model_options_write(&again, &json);
        json_close(&json);
        assert_true(str_equal(buf_str(&out), buf_str(&twice)));
        buf_done(&out);
        buf_done(&twice);
        arena_free(arena);
    }
}

static void what_was_not_written_here_is_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"[]",
                                        "{\"top_p\":\"1\"}",
                                        "{\"seed\":0.5}",
                                        "{\"stop\":[]}",
                                        "{\"stop\":[\"\"]}",
                                        "{\"stop\":\"a\"}",
                                        "{\"effort\":1}"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct arena *arena = arena_new(64 * KIB);
        struct model_options options;
        struct err e;
        assert_false(model_options_read(json_of(str_from(wrong[i])), arena, &options, &e));
        assert_int_equal(e.code, ERR_DATA_LOSS);
        arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_is_lowered_and_never_raised),
        cmocka_unit_test(reasoning_fits_into_what_is_left),
        cmocka_unit_test(sampling_is_the_callers_where_it_says_any),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(what_was_not_written_here_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
