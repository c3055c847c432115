#include "spans/spans.h"

#include "helper/assert_str.h"
#include "wire/json.h"

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static void report(struct str what, struct str error) {
    struct trace_context self;
    assert_true(trace_context_read(STR(PARENT), &self));
    const struct span_attribute attributes[] = {
        SPAN_TEXT("a.text", STR("x\"y")), SPAN_TEXT("a.empty", STR_EMPTY),
        SPAN_NUMBER("a.number", 7), SPAN_NUMBER("a.unknown", -1)};
    spans_report(&(struct span){.self = &self,
                                .parent = STR("00f067aa0ba902b7"),
                                .operation = "chat",
                                .what = what,
                                .kind = SPAN_CLIENT,
                                .ended_unix_ms = 1500,
                                .took_ms = 500,
                                .attributes = attributes,
                                .count = ARRAY_LEN(attributes),
                                .error = error});
}

static void nothing_is_kept_until_it_is_wanted(void **state) {
    (void)state;
    assert_false(spans_wanted());
    report(STR("m"), STR_EMPTY);
    spans_stop();
}

static void a_span_is_written_as_otlp_has_it(void **state) {
    (void)state;
    struct buf out;
    uint64_t dropped;
    spans_start();
    report(STR("m"), STR("TIMEOUT"));
    report(STR("n"), STR_EMPTY);
    buf_init(&out, 16 * KIB);
    assert_true(spans_take(&out, &dropped));
    assert_int_equal(dropped, 0);
    struct str first = str_head(buf_str(&out), str_find(buf_str(&out), STR(",{\"traceId\"")));
    assert_str(first, "{\"traceId\":\"0af7651916cd43dd8448eb211c80319c\","
                      "\"spanId\":\"b7ad6b7169203331\",\"parentSpanId\":\"00f067aa0ba902b7\","
                      "\"name\":\"chat m\",\"kind\":3,\"startTimeUnixNano\":\"1000000000\","
                      "\"endTimeUnixNano\":\"1500000000\",\"attributes\":["
                      "{\"key\":\"a.text\",\"value\":{\"stringValue\":\"x\\\"y\"}},"
                      "{\"key\":\"a.number\",\"value\":{\"intValue\":\"7\"}},"
                      "{\"key\":\"error.type\",\"value\":{\"stringValue\":\"TIMEOUT\"}}],"
                      "\"status\":{\"code\":2}}");
    assert_false(spans_take(&out, &dropped));
    buf_done(&out);
    spans_stop();
}

static void what_does_not_fit_is_dropped_and_counted(void **state) {
    (void)state;
    struct buf out;
    uint64_t dropped;
    spans_start();
    for (unsigned i = 0; i < 20000; i++)
        report(STR("a model with a rather long name"), STR("X"));
    buf_init(&out, SPANS_MAX_BYTES + KIB);
    assert_true(spans_take(&out, &dropped));
    assert_true(dropped > 1000);
    assert_true(out.len <= SPANS_MAX_BYTES && out.len > SPANS_MAX_BYTES - KIB);
    report(STR("m"), STR_EMPTY); /* there is room again */
    buf_clear(&out);
    assert_true(spans_take(&out, &dropped));
    assert_int_equal(dropped, 0);
    buf_done(&out);
    spans_stop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_kept_until_it_is_wanted),
        cmocka_unit_test(a_span_is_written_as_otlp_has_it),
        cmocka_unit_test(what_does_not_fit_is_dropped_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
