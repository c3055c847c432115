#include "wire/trace_context.h"

#include "helper/assert_str.h"

#include <stdio.h>

#define ID "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"
#define PARENT "00-" ID "-" SPAN "-01"

static void assert_ids(const struct trace_context *trace, const char *id, const char *span) {
    char text[TRACE_ID_DIGITS + 1];
    trace_id_write(trace->id, TRACE_ID_DIGITS, text);
    assert_string_equal(text, id);
    trace_id_write(trace->span, TRACE_SPAN_DIGITS, text);
    assert_string_equal(text, span);
}

static void a_traceparent_is_read_and_written(void **state) {
    (void)state;
    struct trace_context trace;
    char parent[TRACE_PARENT_BYTES + 1];
    assert_true(trace_context_read(STR(PARENT), &trace));
    assert_ids(&trace, ID, SPAN);
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

static struct str state_of(struct trace_state *read, const char *const *fields) {
    *read = (struct trace_state){.len = 0};
    for (; *fields; fields++) trace_state_add(read, str_from(*fields));
    return trace_state_str(read);
}

static void states_of_several_fields_are_joined(void **state) {
    (void)state;
    struct trace_state read;
    const char *const fields[] = {"rojo=00f0, congo=t61 x", "", ",", "\t3a@b-c_d*e/f=!~ ",
                                  NULL};
    assert_str(state_of(&read, fields), "rojo=00f0,congo=t61 x,3a@b-c_d*e/f=!~");
}

static void a_state_that_is_not_valid_is_dropped_whole(void **state) {
    (void)state;
    static const char *const wrong[] = {"a",     "a=",     "=1",         "A=1",  "_a=1",
                                        "a=1=2", "a=\x7f", "a=\xc3\xa9", "a b=1"};
    struct trace_state read;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        const char *const fields[] = {"x=1", wrong[i], "y=2", NULL};
        assert_int_equal(state_of(&read, fields).len, 0);
    }
}

static void a_long_state_loses_its_end(void **state) {
    (void)state;
    struct trace_state read = {.len = 0};
    char fields[40][64];
    for (unsigned i = 0; i < 40; i++) {
        snprintf(fields[i], sizeof(fields[i]), "k%02u=1", i);
        trace_state_add(&read, str_from(fields[i]));
    }
    assert_true(str_ends(trace_state_str(&read), STR("k31=1")));

    read = (struct trace_state){.len = 0};
    for (unsigned i = 0; i < 20; i++) {
        snprintf(fields[i], sizeof(fields[i]), "k%02u=%030u", i, i);
        trace_state_add(&read, str_from(fields[i]));
    }
    trace_state_add(&read, STR("z=1")); /* nothing after what did not fit */
    struct str kept = trace_state_str(&read);
    assert_int_equal(kept.len, 14 * 34 + 13);
    assert_true(str_ends(kept, STR("13")));
}

static void both_are_one_text(void **state) {
    (void)state;
    struct trace_context trace, again;
    struct buf text;
    buf_init(&text, KIB);
    assert_true(trace_context_read(STR(PARENT), &trace));
    trace.state = STR("a=1 2,b=3");
    trace_context_put(&trace, &text);
    assert_str(buf_str(&text), PARENT " a=1 2,b=3");
    assert_true(trace_context_take(buf_str(&text), &again));
    assert_str(again.state, "a=1 2,b=3");
    assert_true(trace_context_take(STR(PARENT " a=1,B=2"), &again));
    assert_int_equal(again.state.len, 0); /* it was not written here */
    buf_clear(&text);
    assert_false(trace_context_read(STR(""), &trace));
    trace_context_put(&trace, &text);
    assert_int_equal(text.len, 0);
    assert_false(trace_context_take(STR(""), &again));
    buf_done(&text);
}

static void a_copy_has_a_state_of_its_own_and_a_child_shares_it(void **state) {
    (void)state;
    char text[] = "a=1";
    struct trace_context trace;
    struct arena *arena = arena_new(16 * KIB);
    assert_true(trace_context_read(STR(PARENT), &trace));
    trace.state = str_from(text);
    struct trace_context *copy = trace_context_copy(&trace, arena);
    struct trace_context *child = trace_context_child(copy, arena);
    text[0] = 'b';
    assert_str(copy->state, "a=1");
    assert_str(child->state, "a=1");
    assert_ids(copy, ID, SPAN);
    assert_memory_equal(child->id, copy->id, TRACE_ID_BYTES);
    assert_memory_not_equal(child->span, copy->span, TRACE_SPAN_BYTES);
    assert_int_equal(child->flags, TRACE_SAMPLED);
    struct trace_context *first = trace_context_child(NULL, arena);
    struct trace_context *second = trace_context_child(NULL, arena);
    assert_true(trace_context_known(first));
    assert_memory_not_equal(first->id, second->id, TRACE_ID_BYTES);
    assert_memory_not_equal(first->span, second->span, TRACE_SPAN_BYTES);
    assert_int_equal(first->flags, TRACE_SAMPLED | TRACE_RANDOM);
    arena_free(arena);
}

static void a_full_arena_makes_no_trace(void **state) {
    (void)state;
    struct trace_context trace;
    assert_true(trace_context_read(STR(PARENT), &trace));
    trace.state = STR("a=1");
    for (size_t room = 0; room < sizeof(trace) + sizeof("a=1"); room++) {
        struct arena *arena = arena_new(room);
        assert_null(trace_context_copy(&trace, arena));
        arena_free(arena);
    }
    struct arena *none = arena_new(0);
    assert_null(trace_context_child(&trace, none));
    arena_free(none);
}

static void an_id_is_read_as_its_bytes_and_written(void **state) {
    (void)state;
    static const unsigned char expected[] = {0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd,
                                             0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c};
    unsigned char bytes[TRACE_ID_BYTES] = {1};
    char text[TRACE_ID_DIGITS + 1];
    assert_true(trace_id_read(STR(ID), TRACE_ID_DIGITS, bytes));
    assert_memory_equal(bytes, expected, sizeof(expected));
    trace_id_write(bytes, TRACE_ID_DIGITS, text);
    assert_string_equal(text, ID);
    static const char *const wrong[] = {"", SPAN, ID "0", "0000000000000000",
                                        "0AF7651916CD43DD8448EB211C80319C"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_false(trace_id_read(str_from(wrong[i]), TRACE_ID_DIGITS, bytes));
    assert_memory_equal(bytes, expected, sizeof(expected));
}

static void random_ids_are_ids(void **state) {
    (void)state;
    char first[TRACE_ID_DIGITS + 1], second[TRACE_ID_DIGITS + 1], span[TRACE_SPAN_DIGITS + 1];
    trace_id_random(first, TRACE_ID_DIGITS);
    trace_id_random(second, TRACE_ID_DIGITS);
    trace_id_random(span, TRACE_SPAN_DIGITS);
    assert_true(trace_id_is(str_from(first), TRACE_ID_DIGITS));
    assert_true(trace_id_is(str_from(span), TRACE_SPAN_DIGITS));
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
        cmocka_unit_test(a_copy_has_a_state_of_its_own_and_a_child_shares_it),
        cmocka_unit_test(a_full_arena_makes_no_trace),
        cmocka_unit_test(an_id_is_read_as_its_bytes_and_written),
        cmocka_unit_test(random_ids_are_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
