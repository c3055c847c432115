#include "provider/price.h"

#include "base/buf.h"
#include "helper/assert_str.h"

#include <limits.h>

#define DAY_MS (INT64_C(24) * 60 * 60 * 1000)
#define TODAY 20780 /* 2026-11-23 */
#define DOLLAR INT64_C(1000000000)

static struct price price(const char *model, int64_t from_day, int64_t input) {
    return (struct price){str_from(model), from_day,       input,         2 * input,
                          TOKENS_UNKNOWN,  TOKENS_UNKNOWN, TOKENS_UNKNOWN};
}

/* The input price of `model` on a day: 0 when there is none. */
static int64_t input_of(const struct price_book *book, const char *model, int64_t day) {
    const struct price *found = price_find(book, str_from(model), day * DAY_MS + DAY_MS / 2);
    return found ? found->input : 0;
}

static struct event_usage usage(int64_t prompt, int64_t completion, int64_t cached) {
    struct event_usage usage = USAGE_UNKNOWN;
    usage.prompt = prompt;
    usage.completion = completion;
    usage.cached = cached;
    return usage;
}

/* --- finding ------------------------------------------------------------------------------ */

static void a_name_beats_a_pattern_and_a_long_pattern_a_short_one(void **state) {
    (void)state;
    const struct price own[] = {price("*", 0, 1), price("lab-*", 0, 2),
                                price("lab-large*", 0, 3), price("lab-large", 0, 4)};
    struct price_book *book = price_book_new(own, 4);
    assert_int_equal(input_of(book, "lab-large", TODAY), 4);
    assert_int_equal(input_of(book, "lab-large-2", TODAY), 3);
    assert_int_equal(input_of(book, "lab-", TODAY), 2);
    assert_int_equal(input_of(book, "lab", TODAY), 1);
    assert_int_equal(input_of(book, "", TODAY), 1);
    price_book_free(book);
}

static void the_newest_entry_that_had_begun_counts(void **state) {
    (void)state;
    const struct price own[] = {price("m", 100, 3), price("m", 10, 1), price("m", 50, 2)};
    struct price_book *book = price_book_new(own, 3);
    const int64_t expected[][2] = {{9, 0}, {10, 1}, {49, 1}, {50, 2}, {99, 2}, {100, 3}};
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(input_of(book, "m", expected[i][0]), expected[i][1]);
    }
    assert_int_equal(price_find(book, STR("m"), 50 * DAY_MS - 1)->input, 1);
    assert_int_equal(price_find(book, STR("m"), 50 * DAY_MS)->input, 2);
    price_book_free(book);
}

static void an_older_whole_name_beats_a_younger_pattern(void **state) {
    (void)state;
    const struct price own[] = {price("m*", 100, 1), price("m", 10, 2)};
    struct price_book *book = price_book_new(own, 2);
    assert_int_equal(input_of(book, "m", TODAY), 2);
    price_book_free(book);
}

static void prefixes_that_say_who_serves_it_do_not_count(void **state) {
    (void)state;
    const struct price own[] = {price("lab-1", 0, 1), price("gateway/lab-1", 0, 2)};
    struct price_book *book = price_book_new(own, 2);
    assert_int_equal(input_of(book, "lab-1", TODAY), 1);
    assert_int_equal(input_of(book, "models/lab-1", TODAY), 1);
    assert_int_equal(input_of(book, "a/b/c/lab-1", TODAY), 1);
    assert_int_equal(input_of(book, "gateway/lab-1", TODAY), 2); /* one that is named, does */
    assert_int_equal(input_of(book, "far/gateway/lab-1", TODAY), 2);
    assert_int_equal(input_of(book, "lab-1/", TODAY), 0);
    assert_int_equal(input_of(book, "/", TODAY), 0);
    price_book_free(book);
}

static void the_settings_beat_what_is_built_in_from_their_day_on(void **state) {
    (void)state;
    const struct price own[] = {price("gpt-4o", 0, 7), price("o3", TODAY, 8)};
    struct price_book *book = price_book_new(own, 2), *bare = price_book_new(NULL, 0);
    assert_int_equal(input_of(book, "gpt-4o", TODAY), 7);
    assert_int_equal(input_of(book, "openai/gpt-4o", TODAY), 7);
    assert_int_equal(input_of(book, "o3", TODAY - 1), 2 * DOLLAR);
    assert_int_equal(input_of(book, "o3", TODAY), 8);
    assert_int_equal(input_of(bare, "gpt-4o", TODAY), DOLLAR * 5 / 2);
    price_book_free(book);
    price_book_free(bare);
    price_book_free(NULL);
}

static void a_book_keeps_copies(void **state) {
    (void)state;
    char name[] = "lab-1";
    const struct price own[] = {price(name, 0, 1)};
    struct price_book *book = price_book_new(own, 1);
    name[0] = 'x';
    assert_int_equal(input_of(book, "lab-1", TODAY), 1);
    price_book_free(book);
}

/* What is built in: the vendors' pages in November 2026. */
static void variants_that_cost_something_else_have_no_price_of_their_family(void **state) {
    (void)state;
    struct price_book *book = price_book_new(NULL, 0);
    static const char *const unknown[] = {
        "gpt-4o-audio-preview",
        "gpt-4o-2024-05-13",
        "gpt-5-pro",
        "gpt-5.4",
        "o3-pro",
        "o3-deep-research",
        "claude-opus-6",
        "gpt-4",
        "demo",
        "",
        "claude-haiku-5-5",
        "gemini-2.5-pro",
        "claude-sonnet-50",
    };
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
        if (input_of(book, unknown[i], TODAY)) fail_msg("%s has a price", unknown[i]);
    }
    assert_int_equal(input_of(book, "gpt-5-2025-08-07", TODAY), DOLLAR * 5 / 4);
    assert_int_equal(input_of(book, "claude-opus-4-1-20250805", TODAY), 15 * DOLLAR);
    assert_int_equal(input_of(book, "claude-opus-4-20250514", TODAY), 15 * DOLLAR);
    assert_int_equal(input_of(book, "claude-opus-4-5-20251101", TODAY), 5 * DOLLAR);
    assert_int_equal(input_of(book, "anthropic/claude-sonnet-4-6", TODAY), 3 * DOLLAR);
    price_book_free(book);
}

static void a_price_that_changed_is_known_before_and_after(void **state) {
    (void)state;
    struct price_book *book = price_book_new(NULL, 0);
    const int64_t change = 20733; /* 2026-10-07 */
    struct str model = STR("claude-sonnet-5-5");
    assert_int_equal(price_find(book, model, change * DAY_MS - 1)->cached, DOLLAR / 5);
    assert_int_equal(price_find(book, model, change * DAY_MS)->cached, DOLLAR / 10);
    price_book_free(book);
}

/* --- what a call costs -------------------------------------------------------------------- */

static void a_call_costs_its_tokens(void **state) {
    (void)state;
    const struct price cheap = {
        STR("m"), 0, 5 * DOLLAR, 25 * DOLLAR, DOLLAR / 2, TOKENS_UNKNOWN, TOKENS_UNKNOWN};
    struct event_usage both = usage(1000, 200, 0), some = usage(1000, 200, 900);
    struct event_usage all = usage(10, 0, 50), none = usage(0, 0, 0);
    assert_int_equal(price_of(&cheap, &both), 5000000 + 5000000);
    assert_int_equal(price_of(&cheap, &some), 500000 + 450000 + 5000000);
    assert_int_equal(price_of(&cheap, &all), 10 * 500); /* no more was cached than was sent */
    assert_int_equal(price_of(&cheap, &none), 0);
}

static void tokens_from_a_cache_cost_as_input_by_default(void **state) {
    (void)state;
    const struct price plain = {
        STR("m"), 0, DOLLAR, DOLLAR, TOKENS_UNKNOWN, TOKENS_UNKNOWN, TOKENS_UNKNOWN};
    const struct price free_reads = {STR("m"),      0, DOLLAR, DOLLAR, 0, TOKENS_UNKNOWN,
                                     TOKENS_UNKNOWN};
    struct event_usage cached = usage(10, 0, 10), silent = usage(10, 0, TOKENS_UNKNOWN);
    assert_int_equal(price_of(&plain, &cached), 10000);
    assert_int_equal(price_of(&plain, &silent), 10000);
    assert_int_equal(price_of(&free_reads, &cached), 0);
    assert_int_equal(price_of(&free_reads, &silent), 10000);
}

static void tokens_put_into_a_cache_cost_more_or_their_own_price(void **state) {
    (void)state;
    const struct price usual = {STR("m"),      0, 4 * DOLLAR, DOLLAR, DOLLAR, TOKENS_UNKNOWN,
                                TOKENS_UNKNOWN};
    const struct price own = {STR("m"), 0, 4 * DOLLAR, DOLLAR, DOLLAR, 0, 7 * DOLLAR};
    struct event_usage put = usage(1000, 0, 100);
    put.cache_write = 200;
    put.cache_write_hour = 300;
    assert_int_equal(price_of(&usual, &put), 400 * 4000 + 100 * 1000 + 200 * 5000 + 300 * 8000);
    assert_int_equal(price_of(&own, &put), 400 * 4000 + 100 * 1000 + 300 * 7000);
    put.cache_write = put.cache_write_hour = TOKENS_UNKNOWN;
    assert_int_equal(price_of(&usual, &put), 900 * 4000 + 100 * 1000);
    put.cache_write = 2000; /* more than was sent */
    assert_int_equal(price_of(&usual, &put), 100 * 1000 + 900 * 5000);
}

static void a_part_of_a_nano_dollar_is_a_whole_one(void **state) {
    (void)state;
    const struct price tiny = {STR("m"),      0, 1, 1, TOKENS_UNKNOWN, TOKENS_UNKNOWN,
                               TOKENS_UNKNOWN}; /* for a million tokens */
    struct event_usage one = usage(1, 0, 0), million = usage(1000000, 0, 0);
    struct event_usage more = usage(1000000, 1, 0);
    assert_int_equal(price_of(&tiny, &one), 1);
    assert_int_equal(price_of(&tiny, &million), 1);
    assert_int_equal(price_of(&tiny, &more), 2);
}

static void uncounted_or_unpriced_usage_has_an_unknown_cost(void **state) {
    (void)state;
    const struct price plain = {
        STR("m"), 0, DOLLAR, DOLLAR, TOKENS_UNKNOWN, TOKENS_UNKNOWN, TOKENS_UNKNOWN};
    struct event_usage known = usage(1, 1, 0), no_prompt = usage(TOKENS_UNKNOWN, 1, 0);
    struct event_usage no_reply = usage(1, TOKENS_UNKNOWN, 0), nonsense = usage(-7, 1, 0);
    assert_int_equal(price_of(NULL, &known), TOKENS_UNKNOWN);
    assert_int_equal(price_of(&plain, &no_prompt), TOKENS_UNKNOWN);
    assert_int_equal(price_of(&plain, &no_reply), TOKENS_UNKNOWN);
    assert_int_equal(price_of(&plain, &nonsense), TOKENS_UNKNOWN);
    assert_int_equal(price_of(&plain, &known), 2000);
}

static void a_sum_that_has_no_room_is_the_largest(void **state) {
    (void)state;
    const struct price dear = {
        STR("m"), 0, INT64_MAX, INT64_MAX, INT64_MAX, TOKENS_UNKNOWN, TOKENS_UNKNOWN};
    struct event_usage much = usage(INT64_MAX / 2, INT64_MAX / 2, 1);
    struct event_usage fits = usage(1000000, 0, 0);
    assert_int_equal(price_of(&dear, &much), INT64_MAX);
    assert_int_equal(price_of(&dear, &fits), INT64_MAX);
}

/* --- dollars as text ---------------------------------------------------------------------- */

static void assert_dollars(const char *text, int64_t nano) {
    struct err e;
    int64_t got = -1;
    if (!price_read_dollars(str_from(text), &got, &e)) fail_msg("%s: %s", text, e.text);
    assert_int_equal(got, nano);
}

static void dollars_are_read_to_the_last_nano(void **state) {
    (void)state;
    assert_dollars("0", 0);
    assert_dollars("2.50", DOLLAR * 5 / 2);
    assert_dollars("2.", 2 * DOLLAR);
    assert_dollars(".5", DOLLAR / 2);
    assert_dollars("007", 7 * DOLLAR);
    assert_dollars("0.000000001", 1);
    assert_dollars("1.000000000000", DOLLAR); /* more zeros change nothing */
    assert_dollars("123456789.987654321", INT64_C(123456789987654321));
    assert_dollars("9000000000", INT64_C(9000000000) * DOLLAR);
}

static void a_malformed_amount_is_refused_and_changes_nothing(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",      ".",   "-1",           "+1",          "1e3",
        "1.2.3", "1,5", " 1",           "1 ",          "$1",
        "0x10",  "nan", "0.0000000001", "10000000000", "99999999999999999999",
        "1.5a"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e;
        int64_t nano = 42;
        if (price_read_dollars(str_from(bad[i]), &nano, &e)) fail_msg("'%s' was read", bad[i]);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_int_equal(nano, 42);
    }
}

static void every_amount_reads_as_it_was_written(void **state) {
    (void)state;
    struct buf text;
    buf_init(&text, 64);
    /* Each digit by itself at each place, and all of them together. */
    int64_t amounts[200];
    size_t count = 0;
    for (int64_t unit = 1; unit <= INT64_C(100000000000000000); unit *= 10) {
        for (int64_t digit = 1; digit <= 9; digit++) amounts[count++] = unit * digit;
    }
    amounts[count++] = 0;
    amounts[count++] = INT64_C(123456789987654321);
    amounts[count++] = INT64_C(900000000000000009);
    for (size_t i = 0; i < count; i++) {
        struct err e;
        int64_t again = -1;
        buf_clear(&text);
        price_append_dollars(&text, amounts[i]);
        if (!price_read_dollars(buf_str(&text), &again, &e)) fail_msg("%s", e.text);
        assert_int_equal(again, amounts[i]);
    }
    buf_done(&text);
}

static void dollars_are_written_with_two_digits_or_as_many_as_it_takes(void **state) {
    (void)state;
    static const struct {
        int64_t nano;
        const char *text;
    } cases[] = {{0, "0.00"},           {3 * DOLLAR, "3.00"},
                 {DOLLAR / 10, "0.10"}, {12500000, "0.0125"},
                 {1, "0.000000001"},    {INT64_MAX, "9223372036.854775807"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf text;
        buf_init(&text, 64);
        price_append_dollars(&text, cases[i].nano);
        assert_str(buf_str(&text), cases[i].text);
        buf_done(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_beats_a_pattern_and_a_long_pattern_a_short_one),
        cmocka_unit_test(the_newest_entry_that_had_begun_counts),
        cmocka_unit_test(an_older_whole_name_beats_a_younger_pattern),
        cmocka_unit_test(prefixes_that_say_who_serves_it_do_not_count),
        cmocka_unit_test(the_settings_beat_what_is_built_in_from_their_day_on),
        cmocka_unit_test(a_book_keeps_copies),
        cmocka_unit_test(variants_that_cost_something_else_have_no_price_of_their_family),
        cmocka_unit_test(a_price_that_changed_is_known_before_and_after),
        cmocka_unit_test(a_call_costs_its_tokens),
        cmocka_unit_test(tokens_from_a_cache_cost_as_input_by_default),
        cmocka_unit_test(tokens_put_into_a_cache_cost_more_or_their_own_price),
        cmocka_unit_test(a_part_of_a_nano_dollar_is_a_whole_one),
        cmocka_unit_test(uncounted_or_unpriced_usage_has_an_unknown_cost),
        cmocka_unit_test(a_sum_that_has_no_room_is_the_largest),
        cmocka_unit_test(dollars_are_read_to_the_last_nano),
        cmocka_unit_test(a_malformed_amount_is_refused_and_changes_nothing),
        cmocka_unit_test(every_amount_reads_as_it_was_written),
        cmocka_unit_test(dollars_are_written_with_two_digits_or_as_many_as_it_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
