/* Which words are a decision. Source: checks.md K29; B1 of a newcomer's findings. */
#include "wire/yes_no.h"

#include "helper/assert_str.h"

static void assert_all(const char *const *words, size_t count, enum yes_no expected) {
    for (size_t i = 0; i < count; i++) {
        if (yes_no_read(str_from(words[i]), NULL) != expected)
            fail_msg("'%s' is read as %d", words[i], yes_no_read(str_from(words[i]), NULL));
    }
}

static void what_is_plainly_and_only_a_yes_is_one(void **state) {
    (void)state;
    static const char *const words[] = {
        "yes",       "Yes",        "YES!",        " yes ",       "yes.",    "yes!!!",
        "y",         "Y",          "ok",          "OK.",         "Okay",    "ok, go ahead",
        "go ahead",  "Go  ahead!", "Yes, please", "yes please.", "approve", "Approved.",
        "allow",     "confirm",    "sure",        "Sure!",       "do it",   "accept",
        "\tyes\r\n", "true",       "👍",           "👍🏽",    " 👍\n",    "👍🏿!",
        "yes…",
    };
    assert_all(words, ARRAY_LEN(words), YES_NO_YES);
}

static void what_is_plainly_and_only_a_no_is_one(void **state) {
    (void)state;
    static const char *const words[] = {
        "no",           "No.",    "NO!",   "n",     "nope",   "No, thanks", "refuse",
        "Rejected",     "deny",   "stop",  "Stop!", "cancel", "don't",      "don’t",
        "Don't!",       "do not", "never", "false", "👎",      "👎🏻",   "no thank you",
        "do not do it",
    };
    assert_all(words, ARRAY_LEN(words), YES_NO_NO);
}

static void everything_else_decides_nothing(void **state) {
    (void)state;
    static const char *const words[] = {
        "",
        " ",
        "?",
        "!",
        "...",
        "what would this do?",
        "What happens if I say yes?",
        "Ok, how much does it cost?",
        "I would rather you go home",
        "what would this do exactly?",
        "yes?",
        "ok?",
        "ok?!",
        "yes... no",
        "yes. no.",
        "yes no",
        "yes, but only 5",
        "yes if it is cheap",
        "no, not there",
        "not today",
        "not sure",
        "I am not sure",
        "sure about that?",
        "do",
        "go",
        "wait",
        "maybe",
        "yesterday",
        "noon",
        "ok google",
        "approve nothing",
        "do not approve",
        "don't stop",
        "never mind, go ahead",
        "go ahead and tell me more",
        "ja, gerne",
        "sí",
        "はい",
        "👍?",
        "👍👎",
        "not 👍",
        "!yes",
        "...yes",
        "(yes)",
        "'yes'",
        "\"yes\"",
        "{\"approved\":true}",
        "{\"decision\": \"approve\"}",
        "1",
        "0",
        "y n",
        "yes\xff",
        "\xf0\x9f\x91",
    };
    assert_all(words, ARRAY_LEN(words), YES_NO_NEITHER);
    char long_one[YES_NO_MAX_BYTES + 2];
    memset(long_one, ' ', sizeof(long_one));
    memcpy(long_one, "yes", 3);
    assert_int_equal(yes_no_read(str_of(long_one, YES_NO_MAX_BYTES), NULL), YES_NO_YES);
    assert_int_equal(yes_no_read(str_of(long_one, YES_NO_MAX_BYTES + 1), NULL), YES_NO_NEITHER);
    assert_int_equal(yes_no_read(str_of("yes\0", 4), NULL), YES_NO_NEITHER);
}

static void an_operator_adds_his_own_language(void **state) {
    (void)state;
    static const struct str yes[] = {STR_INIT("Ja, gerne"), STR_INIT("sí"), STR_INIT("да")};
    static const struct str no[] = {STR_INIT("nein danke."), STR_INIT("ΟΧΙ"), STR_INIT("ok")};
    const struct yes_no_words more = {{yes, ARRAY_LEN(yes)}, {no, ARRAY_LEN(no)}};
    assert_int_equal(yes_no_read(STR("ja gerne!"), &more), YES_NO_YES);
    assert_int_equal(yes_no_read(STR("JA, GERNE"), &more), YES_NO_YES);
    assert_int_equal(yes_no_read(STR("¡SÍ!"), &more), YES_NO_YES);
    assert_int_equal(yes_no_read(STR("Да."), &more), YES_NO_YES);
    assert_int_equal(yes_no_read(STR("yes"), &more), YES_NO_YES);
    assert_int_equal(yes_no_read(STR("Nein, danke"), &more), YES_NO_NO);
    assert_int_equal(yes_no_read(STR("οχι"), &more), YES_NO_NO);
    assert_int_equal(yes_no_read(STR("ja"), &more), YES_NO_NEITHER);
    assert_int_equal(yes_no_read(STR("ok"), &more), YES_NO_NEITHER); /* it is in both */
}

static void an_answer_may_say_it_in_json(void **state) {
    (void)state;
    static const struct {
        const char *answer;
        enum yes_no said;
    } rows[] = {
        {"true", YES_NO_YES},
        {" {\"approved\":true} ", YES_NO_YES},
        {"{\"decision\":\"approve\"}", YES_NO_YES},
        {"{\"decision\":\"edit\",\"args\":{}}", YES_NO_YES},
        {"\"Yes!\"", YES_NO_YES},
        {"ok", YES_NO_YES},
        {"false", YES_NO_NO},
        {"{\"approved\":false}", YES_NO_NO},
        {"{\"decision\":\"refuse\"}", YES_NO_NO},
        {"\"no\"", YES_NO_NO},
        {"{\"approved\":true,\"approved\":true}", YES_NO_NEITHER},
        {"{\"decision\":\"no\",\"approved\":true}", YES_NO_NEITHER},
        {"{\"approved\":\"yes\"}", YES_NO_NEITHER},
        {"{\"text\":\"yes\"}", YES_NO_NEITHER},
        {"{}", YES_NO_NEITHER},
        {"[true]", YES_NO_NEITHER},
        {"null", YES_NO_NEITHER},
        {"1", YES_NO_NEITHER},
        {"\"what would yes do?\"", YES_NO_NEITHER},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (yes_no_of(str_from(rows[i].answer), NULL) != rows[i].said)
            fail_msg("%s", rows[i].answer);
    }
}

/* Every entry is what its list says, also as a person types it. */
static void check_yes(struct str entry, void *ctx) {
    (void)ctx;
    assert_int_equal(yes_no_read(entry, NULL), YES_NO_YES);
}

static void check_no(struct str entry, void *ctx) {
    (void)ctx;
    assert_int_equal(yes_no_read(entry, NULL), YES_NO_NO);
}

static void append_entry(struct str entry, void *ctx) {
    buf_append(ctx, entry);
    buf_append(ctx, STR(","));
}

static void no_entry_is_in_both_lists(void **state) {
    (void)state;
    struct buf out;
    static const struct str ja = STR_INIT("ja");
    const struct yes_no_words more = {.yes = {&ja, 1}};
    yes_no_each(YES_NO_YES, NULL, check_yes, NULL);
    yes_no_each(YES_NO_NO, NULL, check_no, NULL);
    buf_init(&out, KIB);
    yes_no_each(YES_NO_YES, &more, append_entry, &out);
    assert_true(str_starts(buf_str(&out), STR("yes,y,")));
    assert_true(str_ends(buf_str(&out), STR("👍,ja,")));
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_plainly_and_only_a_yes_is_one),
        cmocka_unit_test(what_is_plainly_and_only_a_no_is_one),
        cmocka_unit_test(everything_else_decides_nothing),
        cmocka_unit_test(an_operator_adds_his_own_language),
        cmocka_unit_test(an_answer_may_say_it_in_json),
        cmocka_unit_test(no_entry_is_in_both_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
