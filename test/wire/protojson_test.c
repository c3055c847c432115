/* Messages of every kind of field, as JSON and back. */
#include "wire/protojson.h"

#include "helper/assert_str.h"
#include "test/kitchen.pb.h"

#define ROOM (64 * KIB)

struct kitchen {
    struct protojson *json;
    struct arena *arena;
    struct buf out;
};

static void kitchen_open(struct kitchen *kitchen) {
    struct err e;
    kitchen->arena = arena_new(MIB);
    buf_init(&kitchen->out, ROOM);
    assert_true(protojson_new(&kitchen_descriptor, 1, &kitchen->json, &e));
}

static void kitchen_shut(struct kitchen *kitchen) {
    protojson_free(kitchen->json);
    arena_free(kitchen->arena);
    buf_done(&kitchen->out);
}

static bool read(struct kitchen *kitchen, const char *text, struct kitchen_sink *ret,
                 struct err *e) {
    struct json from;
    *ret = (struct kitchen_sink){0};
    assert_true(json_read(str_from(text), &from, e));
    return protojson_read(kitchen->json, &kitchen_sink_table, from, kitchen->arena, ret, e);
}

/* Read `text`, send it through protobuf, and write it again. */
static void check(const char *text, const char *expected) {
    struct kitchen kitchen;
    struct kitchen_sink sink, again;
    struct buf wire;
    struct err e;
    kitchen_open(&kitchen);
    buf_init(&wire, ROOM);
    if (!read(&kitchen, text, &sink, &e)) fail_msg("%s: %s", text, e.text);
    assert_true(pb_encode(&kitchen_sink_table, &sink, &wire));
    assert_true(pb_decode_view(&kitchen_sink_table, buf_str(&wire), kitchen.arena, &again, &e));
    assert_true(protojson_write(kitchen.json, &kitchen_sink_table, &again, &kitchen.out));
    assert_str(buf_str(&kitchen.out), expected);
    buf_done(&wire);
    kitchen_shut(&kitchen);
}

static void same(const char *text) {
    check(text, text);
}

static void each_kind_of_field_comes_back_as_it_was(void **state) {
    (void)state;
    same("{}");
    same("{\"aBool\":true,\"anInt32\":-5,\"anInt64\":\"-9223372036854775808\",\"aUint32\":7,"
         "\"aUint64\":\"18446744073709551615\",\"aSint32\":-1,\"aSint64\":\"9\",\"aFixed32\":1,"
         "\"aFixed64\":\"2\",\"aSfixed32\":-3,\"aSfixed64\":\"-4\",\"aFloat\":0.7,"
         "\"aDouble\":0.1,\"aColor\":\"COLOR_BLUE\",\"aString\":\"\xc3\xa4\\n\","
         "\"someBytes\":\"AP8=\",\"aSink\":{\"aBool\":true}}");
    same("{\"maybeBool\":false,\"maybeInt32\":0,\"maybeString\":\"\",\"maybeLeaf\":{}}");
    same("{\"bools\":[true,false],\"int64s\":[\"1\",\"0\"],\"colors\":[\"COLOR_NEGATIVE\",9],"
         "\"strings\":[\"\",\"a\"],\"bytess\":[\"\"],\"leaves\":[{},{\"text\":\"t\"}]}");
    same("{\"choiceInt32\":0}");
    same("{\"choiceLeaf\":{\"number\":3}}");
    same("{\"mapStringInt32\":{\"a\":1,\"\":0}}");
    same("{\"mapInt32String\":{\"-7\":\"x\"}}");
    same("{\"mapStringLeaf\":{\"k\":{\"text\":\"t\"}}}");
    same("{\"mapBoolBytes\":{\"true\":\"AA==\"}}");
    same("{\"mapSint64Color\":{\"-5\":\"COLOR_RED\"}}");
    same("{\"mapFixed32Double\":{\"4294967295\":1.5}}");
    same("{\"aFloat\":\"-Infinity\",\"aDouble\":\"NaN\"}");
}

static void moments_durations_and_free_values_have_their_own_text(void **state) {
    (void)state;
    same("{\"at\":\"2026-03-01T12:00:00Z\"}");
    same("{\"at\":\"2026-03-01T12:00:00.250Z\"}");
    same("{\"at\":\"2026-03-01T12:00:00.000000001Z\"}");
    check("{\"at\":\"2026-03-01T13:00:00.5+01:00\"}", "{\"at\":\"2026-03-01T12:00:00.500Z\"}");
    same("{\"took\":\"3s\"}");
    same("{\"took\":\"-0.500s\"}");
    same("{\"took\":\"-1.000001s\"}");
    same("{\"details\":{\"a\":[1,\"b\",null,true,{\"c\":{}}],\"d\":0.5}}");
    check("{\"details\":null}", "{}");
}

static void a_reader_accepts_what_others_write(void **state) {
    (void)state;
    check("{\"an_int32\":\"5\",\"anInt64\":5,\"aUint64\":18446744073709551615,\"a_color\":2}",
          "{\"anInt32\":5,\"anInt64\":\"5\",\"aUint64\":\"18446744073709551615\","
          "\"aColor\":\"COLOR_BLUE\"}");
    check("{\"anInt32\":1e2,\"someBytes\":\"_-8\",\"aSink\":null,\"strings\":[]}",
          "{\"anInt32\":100,\"someBytes\":\"/+8=\"}");
}

static void check_refused(const char *text, const char *why) {
    struct kitchen kitchen;
    struct kitchen_sink sink;
    struct err e;
    kitchen_open(&kitchen);
    if (read(&kitchen, text, &sink, &e)) fail_msg("%s was read", text);
    if (str_find(err_text(&e), str_from(why)) == strlen(e.text))
        fail_msg("%s: %s, not %s", text, e.text, why);
    kitchen_shut(&kitchen);
}

static void a_refusal_says_where_and_why(void **state) {
    (void)state;
    check_refused("[]", "expected an object, found an array");
    check_refused("{\"aSrting\":\"\"}", "has no field 'aSrting'; did you mean");
    check_refused("{\"aSink\":{\"aSink\":{\"anInt32\":\"x\"}}}", "aSink: aSink: anInt32: 'x'");
    check_refused("{\"anInt32\":2147483648}", "2147483648");
    check_refused("{\"aUint32\":-1}", "-1");
    check_refused("{\"anInt32\":1.5}", "1.5");
    check_refused("{\"int32s\":[1,true]}", "int32s: [1]: expected a number, found true");
    check_refused("{\"aColor\":\"COLOR_BLEU\"}", "did you mean 'COLOR_BLUE'");
    check_refused("{\"someBytes\":\"!\"}", "base64");
    check_refused("{\"choiceInt32\":1,\"choiceBool\":true}", "another one of its group");
    check_refused("{\"at\":\"yesterday\"}", "at: ");
    check_refused("{\"at\":\"2026-03-01T12:00:00.0000000001Z\"}", "nine digits");
    check_refused("{\"took\":\"3\"}", "a duration is");
    check_refused("{\"took\":\"s\"}", "a duration is");
    check_refused("{\"mapStringLeaf\":{\"k\":{\"x\":1}}}", "mapStringLeaf: ['k']");
    check_refused("{\"aString\":1}", "expected a string, found a number");
    check_refused("{\"details\":{\"a\":1e999}}", "too large");
}

/* A message may nest deeper than our JSON does. */
static void what_nests_too_deeply_is_not_written(void **state) {
    (void)state;
    struct kitchen kitchen;
    struct kitchen_sink sinks[JSON_DEPTH_MAX + 8] = {{0}};
    kitchen_open(&kitchen);
    for (size_t i = 0; i + 1 < ARRAY_LEN(sinks); i++) sinks[i].a_sink = &sinks[i + 1];
    buf_append(&kitchen.out, STR("before"));
    assert_false(protojson_write(kitchen.json, &kitchen_sink_table, &sinks[0], &kitchen.out));
    assert_str(buf_str(&kitchen.out), "before");
    size_t shallow = ARRAY_LEN(sinks) - JSON_DEPTH_MAX + 2;
    assert_true(
        protojson_write(kitchen.json, &kitchen_sink_table, &sinks[shallow], &kitchen.out));
    kitchen_shut(&kitchen);
}

static void a_full_buffer_or_arena_is_no_crash(void **state) {
    (void)state;
    static const char text[] = "{\"strings\":[\"aaaaaaaaaaaaaaaa\"],\"details\":{\"k\":[1]},"
                               "\"mapStringLeaf\":{\"k\":{\"text\":\"\\u0041\"}}}";
    struct kitchen kitchen;
    struct kitchen_sink sink;
    struct json from;
    struct err e;
    kitchen_open(&kitchen);
    assert_true(json_read(str_from(text), &from, &e));
    for (size_t room = 0; room < 1024; room++) {
        struct arena *small = arena_new(room);
        sink = (struct kitchen_sink){0};
        if (!protojson_read(kitchen.json, &kitchen_sink_table, from, small, &sink, &e))
            assert_int_equal(e.code, ERR_TOO_LARGE);
        arena_free(small);
    }
    assert_true(read(&kitchen, text, &sink, &e));
    for (size_t room = 0; room < sizeof(text); room++) {
        struct buf small;
        buf_init(&small, room);
        bool whole = protojson_write(kitchen.json, &kitchen_sink_table, &sink, &small);
        assert_int_equal(small.len > 0, whole);
        buf_done(&small);
    }
    kitchen_shut(&kitchen);
}

static void a_broken_descriptor_is_refused(void **state) {
    (void)state;
    struct protojson *json;
    struct err e;
    struct str cut = str_head(kitchen_descriptor, kitchen_descriptor.len - 1);
    assert_false(protojson_new(&cut, 1, &json, &e));
    assert_int_equal(e.code, ERR_MALFORMED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_field_comes_back_as_it_was),
        cmocka_unit_test(moments_durations_and_free_values_have_their_own_text),
        cmocka_unit_test(a_reader_accepts_what_others_write),
        cmocka_unit_test(a_refusal_says_where_and_why),
        cmocka_unit_test(what_nests_too_deeply_is_not_written),
        cmocka_unit_test(a_full_buffer_or_arena_is_no_crash),
        cmocka_unit_test(a_broken_descriptor_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
