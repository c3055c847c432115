#include "sidecar/trace.h"

#include "helper/assert_str.h"

#define ID "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"

static void the_callers_trace_goes_on(void **state) {
    (void)state;
    struct trace trace;
    trace_begin(&trace, STR(ID), STR(""));
    assert_str(trace_id(&trace), ID);
    assert_string_equal(trace.parent, "");
    trace_begin(&trace, STR(""), STR("00-" ID "-" SPAN "-00"));
    assert_str(trace_id(&trace), ID);
    assert_string_equal(trace.parent, SPAN);
    assert_false(trace.sampled);
    trace_begin(&trace, STR(""), STR("cc-" ID "-" SPAN "-01-what-later-versions-add"));
    assert_str(trace_id(&trace), ID);
    assert_true(trace.sampled);
}

/* Two headers that differ: X-Trace-Id is the contract's, and the span is of another trace. */
static void the_contracts_header_wins(void **state) {
    (void)state;
    struct trace trace;
    trace_begin(&trace, STR(ID), STR("00-11111111111111111111111111111111-" SPAN "-00"));
    assert_str(trace_id(&trace), ID);
    assert_string_equal(trace.parent, "");
    assert_true(trace.sampled);
}

static void nonsense_begins_a_new_trace(void **state) {
    (void)state;
    static const char *const parents[] = {
        "",
        "00-" ID "-" SPAN,
        "ff-" ID "-" SPAN "-01",
        "00-" ID "-" SPAN "-01-more",
        "00-" ID "-" SPAN "-0g",
        "00-" ID "-0000000000000000-01",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00_" ID "-" SPAN "-01",
        "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
    };
    for (size_t i = 0; i < ARRAY_LEN(parents); i++) {
        struct trace first, second;
        trace_begin(&first, STR("xyz"), str_from(parents[i]));
        trace_begin(&second, STR(""), str_from(parents[i]));
        assert_true(trace_id_ok(trace_id(&first)));
        assert_false(str_equal(trace_id(&first), STR(ID)));
        assert_false(str_equal(trace_id(&first), trace_id(&second)));
    }
}

static void what_is_passed_on_has_a_span_of_ours(void **state) {
    (void)state;
    struct trace trace, next;
    char parent[TRACE_PARENT_BYTES + 1];
    trace_begin(&trace, STR(""), STR("00-" ID "-" SPAN "-00"));
    trace_write_parent(&trace, parent);
    assert_int_equal(strlen(parent), TRACE_PARENT_BYTES);
    trace_begin(&next, STR(""), str_from(parent));
    assert_str(trace_id(&next), ID);
    assert_string_equal(next.parent, trace.span);
    assert_string_not_equal(trace.span, SPAN);
    assert_false(next.sampled);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_callers_trace_goes_on),
        cmocka_unit_test(the_contracts_header_wins),
        cmocka_unit_test(nonsense_begins_a_new_trace),
        cmocka_unit_test(what_is_passed_on_has_a_span_of_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
