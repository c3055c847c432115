#include "wire/trace_context.h"

#include "helper/assert_str.h"

#include <stdio.h>

#define ID "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"
#define PARENT "00-" ID "-" SPAN "-01"

static void a_traceparent_is_read_and_written(void **state) {
    (void)state;
    struct trace_context trace;
    char parent[TRACE_PARENT_BYTES + 1];
    assert_true(trace_context_read(STR(PARENT), &trace));
    assert_string_equal(trace.id, ID);
    assert_string_equal(trace.span, SPAN);
    assert_int_equal(trace.flags, TRACE_SAMPLED);
    trace_context_write(&trace, parent);
    assert_string_equal(parent, PARENT);
    assert_true(trace_context_read(STR("00-" ID "-" SPAN "-fe"), &trace));
    trace_context_write(&trace, parent);
    assert_string_equal(parent, "00-" ID "-" SPAN "-02");
}

static void a_later_version_is_read_as_far_as_it_is_known(void **state) {
    (void)state;
    struct trace_context trace;
    char parent[TRACE_PARENT_BYTES + 1];
    assert_true(trace_context_read(STR("cc-" ID "-" SPAN "-01-what-comes-then"), &trace));
    assert_true(trace_context_read(STR("cc-" ID "-" SPAN "-01"), &trace));
    trace_context_write(&trace, parent);
    assert_string_equal(parent, PARENT);
}

static void what_is_not_valid_is_no_trace(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "",
        " " PARENT,
        PARENT " ",
        PARENT "-more",
        "ff-" ID "-" SPAN "-01",
        "0x-" ID "-" SPAN "-01",
        "00-" ID "-" SPAN "-0g",
        "00-" ID "-0000000000000000-01",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00_" ID "-" SPAN "-01",
        "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
        "cc-" ID "-" SPAN "-01.more",
    };
    struct trace_context trace;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_false(trace_context_read(str_from(wrong[i]), &trace));
        assert_false(trace_context_known(&trace));
    }
}

static void every_truncation_is_refused(void **state) {
    (void)state;
    struct str whole = STR(PARENT), later = STR("cc-" ID "-" SPAN "-01-x");
    struct trace_context trace;
    for (size_t cut = 0; cut < whole.len; cut++) {
        assert_false(trace_context_read(str_head(whole, cut), &trace));
        assert_false(trace_context_read(str_head(later, cut), &trace));
    }
}

static struct str state_of(struct trace_context *trace, const char *const *fields) {
    assert_true(trace_context_read(STR(PARENT), trace));
    for (; *fields; fields++) trace_context_add_state(trace, str_from(*fields));
    return trace_context_state(trace);
}

static void states_of_several_fields_are_joined(void **state) {
    (void)state;
    struct trace_context trace;
    const char *const fields[] = {"rojo=00f0, congo=t61 x", "", ",", "\t3a@b-c_d*e/f=!~ ",
                                  NULL};
    assert_str(state_of(&trace, fields), "rojo=00f0,congo=t61 x,3a@b-c_d*e/f=!~");
}

static void a_state_that_is_not_valid_is_dropped_whole(void **state) {
    (void)state;
    static const char *const wrong[] = {"a",     "a=",     "=1",         "A=1",  "_a=1",
                                        "a=1=2", "a=\x7f", "a=\xc3\xa9", "a b=1"};
    struct trace_context trace;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        const char *const fields[] = {"x=1", wrong[i], "y=2", NULL};
        assert_int_equal(state_of(&trace, fields).len, 0);
        assert_true(trace_context_known(&trace));
    }
}

static void a_long_state_loses_its_end(void **state) {
    (void)state;
    struct trace_context trace;
    char fields[40][64];
    assert_true(trace_context_read(STR(PARENT), &trace));
    for (unsigned i = 0; i < 40; i++) {
        snprintf(fields[i], sizeof(fields[i]), "k%02u=1", i);
        trace_context_add_state(&trace, str_from(fields[i]));
    }
    assert_true(str_ends(trace_context_state(&trace), STR("k31=1")));

    assert_true(trace_context_read(STR(PARENT), &trace));
    for (unsigned i = 0; i < 20; i++) {
        snprintf(fields[i], sizeof(fields[i]), "k%02u=%030u", i, i);
        trace_context_add_state(&trace, str_from(fields[i]));
    }
    trace_context_add_state(&trace, STR("z=1")); /* nothing after what did not fit */
    struct str kept = trace_context_state(&trace);
    assert_int_equal(kept.len, 14 * 34 + 13);
    assert_true(str_ends(kept, STR("13")));
}

static void both_are_one_text(void **state) {
    (void)state;
    struct trace_context trace, again;
    struct buf text;
    const char *const fields[] = {"a=1 2,b=3", NULL};
    buf_init(&text, KIB);
    (void)state_of(&trace, fields);
    trace_context_put(&trace, &text);
    assert_str(buf_str(&text), PARENT " a=1 2,b=3");
    assert_true(trace_context_take(buf_str(&text), &again));
    assert_str(trace_context_state(&again), "a=1 2,b=3");
    buf_clear(&text);
    assert_false(trace_context_read(STR(""), &trace));
    trace_context_put(&trace, &text);
    assert_int_equal(text.len, 0);
    assert_false(trace_context_take(STR(""), &again));
    buf_done(&text);
}

static void random_ids_are_ids(void **state) {
    (void)state;
    char first[TRACE_ID_BYTES + 1], second[TRACE_ID_BYTES + 1], span[TRACE_SPAN_BYTES + 1];
    trace_context_random(first, TRACE_ID_BYTES);
    trace_context_random(second, TRACE_ID_BYTES);
    trace_context_random(span, TRACE_SPAN_BYTES);
    assert_true(trace_context_is_id(str_from(first), TRACE_ID_BYTES));
    assert_true(trace_context_is_id(str_from(span), TRACE_SPAN_BYTES));
    assert_string_not_equal(first, second);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_traceparent_is_read_and_written),
        cmocka_unit_test(a_later_version_is_read_as_far_as_it_is_known),
        cmocka_unit_test(what_is_not_valid_is_no_trace),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(states_of_several_fields_are_joined),
        cmocka_unit_test(a_state_that_is_not_valid_is_dropped_whole),
        cmocka_unit_test(a_long_state_loses_its_end),
        cmocka_unit_test(both_are_one_text),
        cmocka_unit_test(random_ids_are_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
