#include "exporter/answer.h"

#include "helper/assert_str.h"

static void a_collector_says_how_many_spans_it_refused(void **state) {
    (void)state;
    struct arena *arena = arena_new(16 * KIB);
    struct str body = STR("\x0a\x08\x08\x83\x01\x12\x03"
                          "bad");
    struct exporter_answer answer = exporter_answer_taken(body, arena);
    assert_int_equal(answer.rejected, 131);
    assert_str(answer.message, "bad");
    answer = exporter_answer_taken(STR_EMPTY, arena);
    assert_int_equal(answer.rejected, 0);
    assert_int_equal(answer.message.len, 0);
    arena_free(arena);
}

static void a_refusal_says_why(void **state) {
    (void)state;
    struct arena *arena = arena_new(16 * KIB);
    assert_str(exporter_answer_refused(STR("\x08\x03\x12\x04"
                                           "full"),
                                       arena)
                   .message,
               "full");
    assert_int_equal(exporter_answer_refused(STR_EMPTY, arena).message.len, 0);
    arena_free(arena);
}

static void what_is_no_such_message_says_nothing(void **state) {
    (void)state;
    static const struct str wrong[] = {STR_INIT("<html>no</html>"), STR_INIT("{}"),
                                       STR_INIT("\x12\x05no"),
                                       STR_INIT("\x0a\x03\x12\x01\xff")};
    struct arena *arena = arena_new(16 * KIB);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct exporter_answer taken = exporter_answer_taken(wrong[i], arena);
        assert_int_equal(taken.rejected, 0);
        assert_int_equal(taken.message.len, 0);
        assert_int_equal(exporter_answer_refused(wrong[i], arena).message.len, 0);
    }
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_collector_says_how_many_spans_it_refused),
        cmocka_unit_test(a_refusal_says_why),
        cmocka_unit_test(what_is_no_such_message_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
