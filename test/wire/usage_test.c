#include "wire/usage.h"

#include "helper/assert_str.h"
#include "wire/event.h"
#include "wire/event_json.h"
#include "wire/json.h"

/* Each number another one, so that no field passes for its neighbour. */
static struct event_usage some_usage(void) {
    struct event_usage usage = {.model = STR("m")};
    for (size_t i = 0; i < USAGE_FIELD_COUNT; i++) {
        if (usage_fields[i].type != USAGE_FLAG)
            *usage_at(&usage, &usage_fields[i]) = 100 + (int64_t)i;
    }
    usage.estimated = true;
    return usage;
}

static void every_count_has_a_name_and_a_place_of_its_own(void **state) {
    (void)state;
    for (size_t i = 0; i < USAGE_FIELD_COUNT; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(usage_fields[i].name, usage_fields[j].name);
            assert_true(usage_fields[i].at != usage_fields[j].at);
        }
    }
}

static void uncounted_usage_is_unknown_and_not_zero(void **state) {
    (void)state;
    const struct event_usage usage = USAGE_UNKNOWN;
    for (size_t i = 0; i < USAGE_FIELD_COUNT; i++) {
        const struct usage_field *field = &usage_fields[i];
        if (field->type == USAGE_TOKENS) assert_int_equal(usage_get(&usage, field), -1);
        if (field->type == USAGE_NUMBER) assert_int_equal(usage_get(&usage, field), 0);
    }
    assert_false(usage.estimated);
    assert_int_equal(usage.model.len, 0);
}

static void every_count_comes_back_from_the_disk(void **state) {
    (void)state;
    struct event event = {.kind = EVENT_USAGE, .agent = STR("a"), .usage = some_usage()};
    struct event seen = {0};
    struct buf bytes;
    struct err e;
    buf_init(&bytes, 1 * KIB);
    assert_true(event_encode(&event, &bytes));
    struct str rest = buf_str(&bytes);
    assert_true(event_decode(&rest, &seen, &e));
    for (size_t i = 0; i < USAGE_FIELD_COUNT; i++) {
        const struct usage_field *field = &usage_fields[i];
        if (field->type != USAGE_FLAG)
            assert_int_equal(usage_get(&seen.usage, field), usage_get(&event.usage, field));
    }
    assert_true(seen.usage.estimated);
    buf_done(&bytes);
}

static void an_event_as_json_shows_every_count_by_its_name(void **state) {
    (void)state;
    struct event event = {.kind = EVENT_USAGE, .agent = STR("a"), .usage = some_usage()};
    struct buf text;
    struct json json;
    struct err e;
    buf_init(&text, 4 * KIB);
    assert_true(event_to_json(&event, &text));
    assert_true(json_read(buf_str(&text), &json, &e));
    for (size_t i = 0; i < USAGE_FIELD_COUNT; i++) {
        const struct usage_field *field = &usage_fields[i];
        if (field->shown == USAGE_NEVER) continue;
        int64_t number;
        assert_true(json_i64(json_find(json, str_from(field->event_name)), &number));
        assert_int_equal(number, usage_get(&event.usage, field));
    }
    buf_done(&text);
}

static void sums_take_what_was_counted_and_stay_at_the_largest_number(void **state) {
    (void)state;
    struct event_usage sums = {.prompt = 1, .cached = INT64_MAX - 1};
    struct event_usage more = USAGE_UNKNOWN;
    more.prompt = 2, more.cached = 3, more.cache_write = 4, more.call_sequence = 5;
    usage_add(&sums, &more);
    assert_int_equal(sums.prompt, 3);
    assert_int_equal(sums.completion, 0);
    assert_true(sums.cached == INT64_MAX);
    assert_int_equal(sums.cache_write, 0); /* the store has no column for it */
    assert_int_equal(sums.call_sequence, 0);
    assert_true(usage_sum(INT64_MAX, 1) == INT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_count_has_a_name_and_a_place_of_its_own),
        cmocka_unit_test(uncounted_usage_is_unknown_and_not_zero),
        cmocka_unit_test(every_count_comes_back_from_the_disk),
        cmocka_unit_test(an_event_as_json_shows_every_count_by_its_name),
        cmocka_unit_test(sums_take_what_was_counted_and_stay_at_the_largest_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
