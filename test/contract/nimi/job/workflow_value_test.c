/* Paths, templates and conditions. */
#include "contract/nimi/job/workflow_value.h"

#include "helper/assert_str.h"

#include "contract/nimi/job/workflow_node.h"

static struct json value_of(const char *text) {
    struct json value;
    struct err e;
    if (!json_read(str_from(text), &value, &e)) fail_msg("%s", e.text);
    return value;
}

static void a_path_leads_to_a_value_or_nowhere(void **state) {
    (void)state;
    static const char text[] = "{\"a\":{\"b\":[1,{\"c\":\"x\"}]},\"d\":null}";
    static const struct {
        const char *path, *raw;
    } rows[] = {
        {"$", "{\"a\":{\"b\":[1,{\"c\":\"x\"}]},\"d\":null}"},
        {"$.a.b[0]", "1"},
        {" $.a.b[1].c ", "\"x\""},
        {"$.d", "null"},
        {"$.e", NULL},
        {"$.a.b[2]", NULL},
        {"$.a[0]", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct json found = workflow_path_at(value_of(text), str_from(rows[i].path));
        assert_true(workflow_path_is(str_from(rows[i].path)));
        assert_int_equal(found.kind == JSON_NONE, rows[i].raw == NULL);
        if (rows[i].raw) assert_str(found.raw, rows[i].raw);
    }
    static const char *const wrong[] = {"",     "a",    "$a",     "$.",
                                        "$..a", "$.a[", "$.a[x]", "$.a[-1]"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_false(workflow_path_is(str_from(wrong[i])));
}

static void a_template_is_filled_from_slots(void **state) {
    (void)state;
    static const char slots[] = "{\"who\":{\"value\":\"Ada\"},\"n\":{\"a\":[1,2]},\"z\":{}}";
    static const struct {
        const char *text, *filled;
    } rows[] = {
        {"Dear {{who}}, {{ n.a[1] }}!", "Dear Ada, 2!"},
        {"{{who.value}}{{nobody}}{{who.name}}{{z.x}}", "Ada"},
        {"{{n.a}} {{n}}", "[1,2] {\"a\":[1,2]}"},
        {"{{ who", "{{ who"},
        {"} { }}", "} { }}"},
        {"{{who..x}}", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf out;
        buf_init(&out, KIB);
        assert_true(workflow_expand(str_from(rows[i].text), value_of(slots), &out));
        assert_str(buf_str(&out), rows[i].filled);
        buf_done(&out);
    }
}

static void a_template_stops_at_its_limit(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 5);
    assert_false(
        workflow_expand(STR("{{x}}{{x}}"), value_of("{\"x\":{\"value\":\"abc\"}}"), &out));
    buf_done(&out);
}

static void a_condition_compares_like_with_like(void **state) {
    (void)state;
    static const char text[] = "{\"n\":0.5,\"s\":\"short\",\"t\":true,\"z\":0,\"e\":\"\","
                               "\"v\":{\"value\":7},\"l\":[]}";
    static const struct {
        const char *condition;
        bool holds;
    } rows[] = {
        {"$.n >= 0.5", true},
        {"$.n > 0.5", false},
        {"$.n<1", true},
        {"$.n <= 0", false},
        {"$.s == 'short'", true},
        {"$.s != \"long\"", true},
        {"$.s > 'a'", true},
        {"$.s == 5", false},
        {"$.s != 5", true},
        {"$.t", true},
        {"$.z", false},
        {"$.e", false},
        {"$.l", false},
        {"$.nothing", false},
        {"$.t == true", true},
        {"$.t == false", false},
        {"$.nothing == null", true},
        {"$.v == 7", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str condition = str_from(rows[i].condition);
        assert_true(workflow_condition_is(condition));
        if (workflow_condition_holds(condition, value_of(text)) != rows[i].holds)
            fail_msg("%s", rows[i].condition);
    }
    static const char *const wrong[] = {
        "",           "x",         "$.a ==",   "== 5",        "$.a = 5",
        "$.a == [1]", "$.a == 'x", "$.a == x", "$.a == 'x'y'"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_false(workflow_condition_is(str_from(wrong[i])));
}

static void a_value_becomes_a_struct(void **state) {
    (void)state;
    struct arena *arena = arena_new(MIB);
    const struct google_struct *made =
        workflow_struct(value_of("{\"a\":[1,null,{\"b\":\"x\\u00fc\"}],\"t\":true}"), arena);
    assert_int_equal(made->fields_count, 2);
    assert_str(made->fields[0].key, "a");
    const struct google_list_value *list = made->fields[0].value->list_value;
    assert_int_equal(list->values_count, 3);
    assert_true(list->values[0].number_value == 1);
    assert_int_equal(list->values[1].which_kind, GOOGLE_VALUE_NULL_VALUE);
    assert_str(list->values[2].struct_value->fields[0].value->string_value, "x\xc3\xbc");
    assert_true(made->fields[1].value->bool_value);
    made = workflow_struct(value_of("5"), arena);
    assert_str(made->fields[0].key, "value");
    arena_free(arena);
}

/* An object of a short text and of a list of so many numbers. */
static const struct google_struct *numbers(size_t count, size_t max_bytes,
                                           struct arena *arena) {
    struct buf text;
    struct json value;
    struct err e;
    buf_init(&text, 4 * MIB);
    buf_append(&text, STR("{\"kind\":\"v\",\"list\":[0"));
    for (size_t i = 1; i < count; i++) buf_append(&text, STR(",0"));
    buf_append(&text, STR("]}"));
    struct str kept = STR_EMPTY;
    assert_true(arena_str(arena, buf_str(&text), &kept));
    assert_true(json_read(kept, &value, &e));
    buf_done(&text);
    return workflow_struct_within(value, max_bytes, arena);
}

static void a_long_struct_says_what_it_left_out(void **state) {
    (void)state;
    struct arena *arena = arena_new(32 * MIB);
    const struct google_struct *whole = numbers(10000, MIB, arena);
    const size_t len = pb_encoded_len(&google_struct_table, whole);
    assert_true(len > 10000 * 11);
    assert_int_equal(whole->fields[1].value->list_value->values_count, 10000);
    assert_int_equal(numbers(10000, len, arena)->fields[1].value->which_kind,
                     GOOGLE_VALUE_LIST_VALUE);
    const struct google_struct *most = numbers(10000, len - 1, arena);
    assert_str(most->fields[0].value->string_value, "v");
    const struct google_struct *said = most->fields[1].value->struct_value;
    assert_str(said->fields[0].key, "bytes_omitted");
    assert_true(said->fields[0].value->number_value > 10000 * 11);
    assert_true(pb_encoded_len(&google_struct_table, most) < len - 1);
    /* No member is long, and all of them are. */
    const struct google_struct *none = numbers(1000, 1000, arena);
    assert_int_equal(none->fields_count, 1);
    assert_str(none->fields[0].key, "bytes_omitted");
    arena_free(arena);
    arena = arena_new(64 * KIB);
    none = numbers(10000, MIB, arena);
    assert_str(none->fields[0].key, "bytes_omitted");
    arena_free(arena);
}

static void named_outputs_are_members_of_the_output(void **state) {
    (void)state;
    static const struct {
        const char *output, *name, *value;
    } rows[] = {
        {"{\"text\":\"x\",\"n\":{\"a\":1}}", "output", "{\"text\":\"x\",\"n\":{\"a\":1}}"},
        {"{\"text\":\"x\"}", "text", "{\"value\":\"x\"}"},
        {"{\"n\":{\"a\":1}}", "n", "{\"a\":1}"},
        {"{\"value\":5}", "text", "{\"value\":\"5\"}"},
        {"{\"a\":1}", "b", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf out;
        buf_init(&out, KIB);
        assert_true(
            workflow_output_named(str_from(rows[i].output), str_from(rows[i].name), &out));
        assert_str(buf_str(&out), rows[i].value);
        buf_done(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_leads_to_a_value_or_nowhere),
        cmocka_unit_test(a_template_is_filled_from_slots),
        cmocka_unit_test(a_template_stops_at_its_limit),
        cmocka_unit_test(a_condition_compares_like_with_like),
        cmocka_unit_test(a_value_becomes_a_struct),
        cmocka_unit_test(a_long_struct_says_what_it_left_out),
        cmocka_unit_test(named_outputs_are_members_of_the_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
