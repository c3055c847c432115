#include "guardrail/filter.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "helper/assert_str.h"

#include <stdlib.h>

#define RULES_MAX 8

/* A list of rules that owns them. */
struct list_of_rules {
    struct guardrail *rules[RULES_MAX];
    size_t count;
};

static void add(struct list_of_rules *list, struct guardrail_rule rule) {
    struct err e;
    if (!guardrail_new(&rule, &list->rules[list->count], &e)) fail_msg("%s", e.text);
    list->count++;
}

static struct guardrails of(const struct list_of_rules *list) {
    return (struct guardrails){list->rules, list->count};
}

static void drop(struct list_of_rules *list) {
    while (list->count) guardrail_free(list->rules[--list->count]);
}

static void add_regex(struct list_of_rules *list, const char *pattern,
                      enum guardrail_action action) {
    add(list, (struct guardrail_rule){
                  .name = STR("r"), .pattern = str_from(pattern), .action = action});
}

static void add_personal(struct list_of_rules *list) {
    for (size_t i = 0; i < GUARDRAIL_PERSONAL_COUNT; i++) add(list, guardrail_personal[i]);
}

/* What comes out, and how it ends. */
struct outcome {
    struct buf text;
    struct filter_result result;
};

static void begin(struct outcome *outcome) {
    buf_init(&outcome->text, 16 * MIB);
}

static void end(struct outcome *outcome) {
    buf_done(&outcome->text);
}

static void pass(struct guardrails rules, struct str text, struct outcome *ret) {
    begin(ret);
    bool passed = filter_text(rules, text, &ret->text, &ret->result);
    assert_int_equal(passed, ret->result.blocked_by == NULL);
}

/* In pieces of `step` bytes, the first of `first`. */
static void pass_cut(struct guardrails rules, struct str text, size_t first, size_t step,
                     struct outcome *ret) {
    struct filter filter;
    begin(ret);
    filter_init(&filter, rules);
    bool passed = filter_feed(&filter, str_head(text, first), &ret->text);
    for (struct str rest = str_skip(text, first); passed && rest.len;
         rest = str_skip(rest, step))
        passed = filter_feed(&filter, str_head(rest, step), &ret->text);
    passed = passed && filter_end(&filter, &ret->text);
    assert_int_equal(passed, filter.result.blocked_by == NULL);
    ret->result = filter.result;
    filter_done(&filter);
}

static void assert_same(const struct outcome *a, const struct outcome *b) {
    assert_int_equal(a->text.len, b->text.len);
    assert_memory_equal(buf_str(&a->text).at, buf_str(&b->text).at, a->text.len);
    assert_ptr_equal(a->result.blocked_by, b->result.blocked_by);
    assert_int_equal(a->result.redacted, b->result.redacted);
    assert_int_equal(a->result.warned, b->result.warned);
    assert_int_equal(a->result.undecided, b->result.undecided);
}

/* However it is cut. */
static void assert_passes_as(struct guardrails rules, struct str text, const char *expect) {
    struct outcome whole;
    pass(rules, text, &whole);
    if (expect) assert_str(buf_str(&whole.text), expect);
    for (size_t first = 0; first <= text.len; first++) {
        static const size_t steps[] = {1, 2, 3, 7, 64, SIZE_MAX};
        for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
            struct outcome cut;
            pass_cut(rules, text, first, steps[i], &cut);
            assert_same(&whole, &cut);
            end(&cut);
        }
    }
    end(&whole);
}

/* --- actions ------------------------------------------------------------------------------ */

static void without_rules_a_text_passes_as_it_is(void **state) {
    (void)state;
    struct guardrails none = {NULL, 0};
    assert_passes_as(none, STR("anything \xFF"), "anything \xFF");
}

static void a_match_is_replaced_with_the_groups_it_names(void **state) {
    (void)state;
    struct list_of_rules list = {.count = 0};
    add(&list, (struct guardrail_rule){.name = STR("key"),
                                       .pattern = STR("(?P<kind>sk|pk)-([a-z0-9]{4,})"),
                                       .replacement = STR("<${kind} $1 $2 $$5 $>")});
    assert_passes_as(of(&list), STR("a sk-12345, b pk-abc pk-abcd"),
                     "a <sk sk 12345 $5 $>, b pk-abc <pk pk abcd $5 $>");
    drop(&list);
}

static void a_block_ends_the_text_where_its_match_begins(void **state) {
    (void)state;
    struct list_of_rules list = {.count = 0};
    add_regex(&list, "secret", GUARDRAIL_BLOCK);
    struct outcome outcome;
    assert_passes_as(of(&list), STR("this is a secret word"), "this is a ");
    pass(of(&list), STR("a secret"), &outcome);
    assert_str(guardrail_name(outcome.result.blocked_by), "r");
    assert_false(outcome.result.undecided);
    end(&outcome);
    drop(&list);
}

static void a_filter_that_blocked_lets_nothing_pass_any_more(void **state) {
    (void)state;
    struct list_of_rules list = {.count = 0};
    add_regex(&list, "x", GUARDRAIL_BLOCK);
    struct filter filter;
    struct buf out;
    buf_init(&out, KIB);
    filter_init(&filter, of(&list));
    assert_false(filter_feed(&filter, STR("x"), &out));
    assert_false(filter_feed(&filter, STR("fine"), &out));
    assert_false(filter_end(&filter, &out));
    assert_false(filter_feed(&filter, STR("fine"), &out));
    assert_str(buf_str(&out), "");
    filter_done(&filter);
    buf_done(&out);
    drop(&list);
}

static void a_warning_counts_and_the_text_passes(void **state) {
    (void)state;
    struct list_of_rules list = {.count = 0};
    add_regex(&list, "bad", GUARDRAIL_WARN);
    struct outcome outcome;
    pass(of(&list), STR("bad, bad text"), &outcome);
    assert_str(buf_str(&outcome.text), "bad, bad text");
    assert_int_equal(outcome.result.warned, 2);
    assert_int_equal(guardrail_counts(list.rules[0]).matches, 2);
    end(&outcome);
    assert_passes_as(of(&list), STR("bad, bad text"), "bad, bad text");
    drop(&list);
}

static void each_rule_reads_what_the_one_before_it_wrote(void **state) {
    (void)state;
    struct list_of_rules list = {.count = 0};
    add(&list, (struct guardrail_rule){
                   .name = STR("1"), .pattern = STR("ab+"), .replacement = STR("cd")});
    add(&list, (struct guardrail_rule){
                   .name = STR("2"), .pattern = STR("xcd"), .replacement = STR("yes")});
    assert_passes_as(of(&list), STR("xabbb ab xab"), "yes cd yes");
    drop(&list);
}

static void the_first_block_in_the_text_counts_whichever_rule_it_is_of(void **state) {
    (void)state;
    struct list_of_rules list = {.count = 0};
    add_regex(&list, "late", GUARDRAIL_BLOCK);
    add_regex(&list, "early", GUARDRAIL_BLOCK);
    assert_passes_as(of(&list), STR("an early and a late word"), "an ");
    assert_passes_as(of(&list), STR("a late and an early word"), "a ");
    drop(&list);
}

static void keywords_are_found_in_any_case_and_whole(void **state) {
    (void)state;
    struct list_of_rules list = {.count = 0};
    add(&list, (struct guardrail_rule){.name = STR("k"),
                                       .kind = GUARDRAIL_KEYWORD,
                                       .pattern = STR("pass, Password ,c++,\xC3\x84rger,,"),
                                       .replacement = STR("*")});
    assert_passes_as(of(&list), STR("PASSWORD pass C++ c+ \xC3\xA4RGER"), "* * * c+ *");
    drop(&list);
}

static void a_card_rule_can_ask_for_the_check_digit(void **state) {
    (void)state;
    struct list_of_rules list = {.count = 0};
    struct guardrail_rule card = guardrail_personal[1];
    card.luhn = true;
    add(&list, card);
    assert_passes_as(of(&list), STR("4111 1111 1111 1111 and 4111 1111 1111 1112"),
                     "[REDACTED-CC] and 4111 1111 1111 1112");
    drop(&list);
}

/* --- personal data ------------------------------------------------------------------------ */

static void personal_data_is_redacted_and_its_neighbours_are_not(void **state) {
    (void)state;
    static const struct {
        const char *text, *expect;
    } cases[] = {
        {"my ssn is 123-45-6789.", "my ssn is [REDACTED-SSN]."},
        {"123-45-67890 and 0123-45-6789", "123-45-67890 and 0123-45-6789"},
        {"card 4111 1111 1111 1111 please", "card [REDACTED-CC] please"},
        {"card 4111-1111-1111-1111, 5500000000000004", "card [REDACTED-CC], [REDACTED-CC]"},
        {"at 1700000000000 ms, 1700000000000000 us",
         "at 1700000000000 ms, 1700000000000000 us"},
        {"line\nwith a@b.example\nand 123-45-6789\n",
         "line\nwith [REDACTED-EMAIL]\nand [REDACTED-SSN]\n"},
        {"mail first.last+tag@mail.example.org!", "mail [REDACTED-EMAIL]!"},
        {"not@mail and user@host", "not@mail and user@host"},
        {"\xC3\xA9"
         "a@b.de\xC3\xA9",
         "\xC3\xA9[REDACTED-EMAIL]\xC3\xA9"},
        {"", ""},
    };
    struct list_of_rules list = {.count = 0};
    add_personal(&list);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_passes_as(of(&list), str_from(cases[i].text), cases[i].expect);
    drop(&list);
}

/* --- cutting ------------------------------------------------------------------------------ */

static void what_looks_around_a_match_sees_the_same_however_a_text_is_cut(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *expect; /* NULL: only the same */
    } cases[] = {
        {"^foo", "[REDACTED] foo bar\nfoo foobar barfoo"},
        {"(?m)^foo", "[REDACTED] foo bar\n[REDACTED] foobar barfoo"},
        {"foo$", "foo foo bar\nfoo foobar bar[REDACTED]"},
        {"(?m)foo$", NULL},
        {"\\Afoo|foo\\z", "[REDACTED] foo bar\nfoo foobar bar[REDACTED]"},
        {"\\bfoo\\b", "[REDACTED] [REDACTED] bar\n[REDACTED] foobar barfoo"},
        {"foo(?!bar)", "[REDACTED] [REDACTED] bar\n[REDACTED] foobar bar[REDACTED]"},
        {"foo(?=bar)", "foo foo bar\nfoo [REDACTED]bar barfoo"},
        {"(?<!bar)foo", "[REDACTED] [REDACTED] bar\n[REDACTED] [REDACTED]bar barfoo"},
        {"(?<=^foo )foo", "foo [REDACTED] bar\nfoo foobar barfoo"},
        {".*bar", NULL},
        {"(?s)foo.*?foo", NULL},
        {"(foo) \\1", "[REDACTED] bar\n[REDACTED]bar barfoo"},
        {"o*", NULL},
        {"foo|foobar", NULL},
        {"foobar|foo", NULL},
        {"[^ ]+", NULL},
        {"\\R", NULL},
        {"\\X", NULL},
        {"(?>fo+)b", NULL},
        {"f(?<x>o)+(?(x)b|z)", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct list_of_rules list = {.count = 0};
        add_regex(&list, cases[i].pattern, GUARDRAIL_REDACT);
        assert_passes_as(of(&list), STR("foo foo bar\nfoo foobar barfoo"), cases[i].expect);
        drop(&list);
    }
}

static void a_character_is_never_cut(void **state) {
    (void)state;
    struct list_of_rules list = {.count = 0};
    add_regex(&list, "\xE2\x82\xAC+", GUARDRAIL_REDACT);
    struct str text = STR("\xF0\x9F\x98\x80 5\xE2\x82\xAC\xE2\x82\xAC \xE2\x82q \xC3");
    assert_passes_as(of(&list), text,
                     "\xF0\x9F\x98\x80 5[REDACTED] \xEF\xBF\xBDq \xEF\xBF\xBD");
    for (size_t len = 0; len <= text.len; len++) {
        struct filter filter;
        struct buf out;
        buf_init(&out, KIB);
        filter_init(&filter, of(&list));
        assert_true(filter_feed(&filter, str_head(text, len), &out));
        assert_true(utf8_valid(buf_str(&out)));
        filter_done(&filter);
        buf_done(&out);
    }
    drop(&list);
}

/* Texts of many matches, in random cuts. The numbers are always the same ones. */
static void random_texts_pass_the_same_however_they_are_cut(void **state) {
    (void)state;
    static const char *const parts[] = {"foo", "bar",     " ",   "\n",           "a@b.de",
                                        "4",   "4111 11", "1-2", "\xE2\x82\xAC", "xyzzy"};
    static const char *const patterns[] = {"(foo|bar)+", "\\w+@", "x.*y", "\\s{2,}(?=f)",
                                           "(?s)foo.{0,40}bar"};
    unsigned random = 1;
    for (unsigned round = 0; round < 300; round++) {
        struct list_of_rules list = {.count = 0};
        struct buf text;
        buf_init(&text, 64 * KIB);
        for (unsigned i = 0; i < round; i++) {
            random = random * 1103515245u + 12345u;
            buf_append(&text, str_from(parts[(random >> 16) % ARRAY_LEN(parts)]));
        }
        add_regex(&list, patterns[round % ARRAY_LEN(patterns)], GUARDRAIL_REDACT);
        add_personal(&list);
        struct outcome whole;
        pass(of(&list), buf_str(&text), &whole);
        for (size_t step = 1; step < 40; step += 1 + step / 3) {
            struct outcome cut;
            pass_cut(of(&list), buf_str(&text), (random >> 8) % (step + 1), step, &cut);
            assert_same(&whole, &cut);
            end(&cut);
        }
        end(&whole);
        buf_done(&text);
        drop(&list);
    }
}

/* --- limits ------------------------------------------------------------------------------- */

static void fill(struct buf *text, const char *part, size_t len) {
    buf_init(text, len + 64);
    while (text->len < len) buf_append(text, str_from(part));
}

static void a_match_that_would_be_longer_than_the_most_is_judged_in_parts(void **state) {
    (void)state;
    struct list_of_rules list = {.count = 0};
    struct buf text;
    fill(&text, "a", GUARDRAIL_MATCH_MAX_BYTES + 10);
    buf_append(&text, STR(" b"));
    add_regex(&list, "a+", GUARDRAIL_REDACT);
    struct outcome whole;
    pass(of(&list), buf_str(&text), &whole);
    assert_str(buf_str(&whole.text), "[REDACTED][REDACTED] b");
    for (size_t first = 1; first < 3 * KIB; first += 111) {
        struct outcome cut;
        pass_cut(of(&list), buf_str(&text), first, 1 + first % 500, &cut);
        assert_same(&whole, &cut);
        end(&cut);
    }
    end(&whole);
    buf_done(&text);
    drop(&list);
}

static void a_stream_holds_back_no_more_than_the_longest_match(void **state) {
    (void)state;
    struct list_of_rules list = {.count = 0};
    struct str piece = STR("text \xE2\x82\xAC here");
    add_regex(&list, "(?s)begin.*end", GUARDRAIL_REDACT);
    add_regex(&list, "(?s)first.*last", GUARDRAIL_REDACT);
    struct filter filter;
    struct buf out;
    size_t fed = 0, most = 0;
    buf_init(&out, MIB);
    filter_init(&filter, of(&list));
    for (unsigned i = 0; i < 4000; i++) {
        struct str text = i % 100 == 0 ? STR("first begin ") : piece;
        assert_true(filter_feed(&filter, text, &out));
        fed += text.len;
        size_t held = filter_held(&filter);
        if (held > most) most = held;
        assert_int_equal(out.len + held, fed);
    }
    assert_true(most > GUARDRAIL_MATCH_MAX_BYTES / 2);
    assert_true(most <= list.count * GUARDRAIL_MATCH_MAX_BYTES);
    filter_done(&filter);
    buf_done(&out);
    drop(&list);
}

/* Patterns that would take for ever. Each is decided or given up, and given up means blocked. */
static void a_pattern_that_runs_away_blocks_its_text(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *part;
    } cases[] = {
        {"(a+)+b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac"},
        {"(a|aa)+$", "a"},
        {"(\\w+\\s?)+:", "word "},
        {"(.*)(.*)(.*)[=;]", "x"}, /* a class: with one byte, PCRE2 looks for that byte first */
        {"((a*)*)*c", "aaaaab"},
        {"(?:(?:a?){30}){30}a{900}z", "a"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct list_of_rules list = {.count = 0};
        struct buf text;
        struct outcome outcome;
        fill(&text, cases[i].part, 64 * KIB);
        add_regex(&list, cases[i].pattern, GUARDRAIL_REDACT);
        pass(of(&list), buf_str(&text), &outcome);
        assert_true(outcome.result.undecided);
        assert_ptr_equal(outcome.result.blocked_by, list.rules[0]);
        assert_int_equal(guardrail_counts(list.rules[0]).undecided, 1);
        end(&outcome);
        buf_done(&text);
        drop(&list);
    }
}

static void a_pattern_that_runs_away_and_only_warns_lets_the_text_pass(void **state) {
    (void)state;
    struct list_of_rules list = {.count = 0};
    struct buf text;
    struct outcome outcome;
    fill(&text, "a", 8 * KIB);
    add_regex(&list, "(a|aa)+$", GUARDRAIL_WARN);
    pass(of(&list), buf_str(&text), &outcome);
    assert_null(outcome.result.blocked_by);
    assert_int_equal(outcome.text.len, text.len);
    assert_true(guardrail_counts(list.rules[0]).undecided > 0);
    end(&outcome);
    buf_done(&text);
    drop(&list);
}

/* Steps alone do not bound this one: each place is cheap enough, and there are many. */
static void a_text_of_many_cheap_failures_has_an_end_as_well(void **state) {
    (void)state;
    struct list_of_rules list = {.count = 0};
    struct buf text;
    struct outcome outcome;
    fill(&text, " ", 8 * MIB);
    add_regex(&list, " +x", GUARDRAIL_BLOCK);
    pass(of(&list), buf_str(&text), &outcome);
    assert_true(outcome.result.undecided);
    end(&outcome);
    buf_done(&text);
    drop(&list);
}

static void long_texts_pass_the_default_rules(void **state) {
    (void)state;
    struct list_of_rules list = {.count = 0};
    struct buf text;
    struct outcome outcome;
    fill(&text, "The quick brown fox, 42 of them, jumps over a lazy dog. ", 4 * MIB);
    add_personal(&list);
    pass(of(&list), buf_str(&text), &outcome);
    assert_null(outcome.result.blocked_by);
    assert_int_equal(outcome.text.len, text.len);
    end(&outcome);
    buf_done(&text);
    drop(&list);
}

/* --- JSON --------------------------------------------------------------------------------- */

static void json_keeps_all_bytes_but_the_strings_that_match(void **state) {
    (void)state;
    static const struct {
        const char *text, *expect;
    } cases[] = {
        {"{ \"a@b.de\" : \"mail a@b.de\\nnow\", \"n\": 1.50e1 }",
         "{ \"a@b.de\" : \"mail [REDACTED-EMAIL]\\nnow\", \"n\": 1.50e1 }"},
        {"[\"\\u0041 \\\"quoted\\\\\", 4111111111111111]",
         "[\"\\u0041 \\\"quoted\\\\\", 4111111111111111]"},
        {"\"123-45-6789\"", "\"[REDACTED-SSN]\""},
        {"[\"123-45\",\"-6789\"]", "[\"123-45\",\"-6789\"]"},
        {"no JSON, a@b.de", "no JSON, [REDACTED-EMAIL]"},
        {"12345678901234567890123", "12345678901234567890123"},
    };
    struct list_of_rules list = {.count = 0};
    add_personal(&list);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct outcome outcome;
        begin(&outcome);
        assert_true(
            filter_json(of(&list), str_from(cases[i].text), &outcome.text, &outcome.result));
        assert_str(buf_str(&outcome.text), cases[i].expect);
        end(&outcome);
    }
    drop(&list);
}

static void json_is_blocked_by_a_value_and_not_by_a_key(void **state) {
    (void)state;
    struct list_of_rules list = {.count = 0};
    add_regex(&list, "bomb", GUARDRAIL_BLOCK);
    struct outcome outcome;
    begin(&outcome);
    assert_true(
        filter_json(of(&list), STR("{\"bomb\": \"no\"}"), &outcome.text, &outcome.result));
    assert_false(filter_json(of(&list), STR("{\"a\": [\"bo\\u006db\"]}"), &outcome.text,
                             &outcome.result));
    assert_non_null(outcome.result.blocked_by);
    end(&outcome);
    drop(&list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_rules_a_text_passes_as_it_is),
        cmocka_unit_test(a_match_is_replaced_with_the_groups_it_names),
        cmocka_unit_test(a_block_ends_the_text_where_its_match_begins),
        cmocka_unit_test(a_filter_that_blocked_lets_nothing_pass_any_more),
        cmocka_unit_test(a_warning_counts_and_the_text_passes),
        cmocka_unit_test(each_rule_reads_what_the_one_before_it_wrote),
        cmocka_unit_test(the_first_block_in_the_text_counts_whichever_rule_it_is_of),
        cmocka_unit_test(keywords_are_found_in_any_case_and_whole),
        cmocka_unit_test(a_card_rule_can_ask_for_the_check_digit),
        cmocka_unit_test(personal_data_is_redacted_and_its_neighbours_are_not),
        cmocka_unit_test(what_looks_around_a_match_sees_the_same_however_a_text_is_cut),
        cmocka_unit_test(a_character_is_never_cut),
        cmocka_unit_test(random_texts_pass_the_same_however_they_are_cut),
        cmocka_unit_test(a_match_that_would_be_longer_than_the_most_is_judged_in_parts),
        cmocka_unit_test(a_stream_holds_back_no_more_than_the_longest_match),
        cmocka_unit_test(a_pattern_that_runs_away_blocks_its_text),
        cmocka_unit_test(a_pattern_that_runs_away_and_only_warns_lets_the_text_pass),
        cmocka_unit_test(a_text_of_many_cheap_failures_has_an_end_as_well),
        cmocka_unit_test(long_texts_pass_the_default_rules),
        cmocka_unit_test(json_keeps_all_bytes_but_the_strings_that_match),
        cmocka_unit_test(json_is_blocked_by_a_value_and_not_by_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
