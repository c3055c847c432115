/* Which verdict a check gets, and what people are shown of a target's bytes. */
#include "validate/judge.h"

#include "base/utf8.h"
#include "helper/assert_str.h"

/* --- verdicts ------------------------------------------------------------------------------------ */

static const struct {
    enum level level;
    enum word word;
    bool strict;
    enum verdict broken, remark;
} verdicts[] = {
    {LEVEL_BASE, WORD_MUST, false, VERDICT_FAIL, VERDICT_WARN},
    {LEVEL_BASE, WORD_NONE, false, VERDICT_FAIL, VERDICT_WARN},
    {LEVEL_BASE, WORD_SHOULD, false, VERDICT_WARN, VERDICT_WARN},
    {LEVEL_BASE, WORD_SHOULD, true, VERDICT_WARN, VERDICT_WARN},
    {LEVEL_BASE, WORD_MUST, true, VERDICT_FAIL, VERDICT_WARN},
    {LEVEL_STRICT, WORD_MUST, false, VERDICT_WARN, VERDICT_WARN},
    {LEVEL_STRICT, WORD_MUST, true, VERDICT_FAIL, VERDICT_FAIL},
    {LEVEL_STRICT, WORD_SHOULD, true, VERDICT_FAIL, VERDICT_FAIL},
    {LEVEL_ADVISORY, WORD_NONE, true, VERDICT_WARN, VERDICT_WARN},
    {LEVEL_ADVISORY, WORD_MUST, false, VERDICT_FAIL, VERDICT_WARN},
    {LEVEL_ADVISORY, WORD_MUST_NOT, true, VERDICT_FAIL, VERDICT_WARN},
};

static void a_broken_check_gets_the_verdict_of_its_level(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(verdicts); i++) {
        for (unsigned remark = 0; remark < 2; remark++) {
            const struct check check = {.level = verdicts[i].level, .word = verdicts[i].word};
            const struct validate_options options = {.strict = verdicts[i].strict};
            struct finding finding;
            struct judge judge = {&options, &finding, NULL};
            finding_init(&finding, &check);
            assert_int_equal(finding.verdict, VERDICT_PASS);
            if (remark)
                assert_true(judge_warn(&judge, NULL, "so"));
            else
                assert_false(judge_break(&judge, NULL, "so"));
            assert_int_equal(finding.verdict, remark ? verdicts[i].remark : verdicts[i].broken);
            finding_done(&finding);
        }
    }
}

static void behind_a_proxy_what_a_proxy_may_break_warns(void **state) {
    (void)state;
    const struct check check = {.level = LEVEL_BASE, .word = WORD_MUST, .proxied = true};
    const struct validate_options options = {.behind_proxy = true};
    struct finding finding;
    struct judge judge = {&options, &finding, NULL};
    finding_init(&finding, &check);
    judge_break(&judge, NULL, "so");
    assert_int_equal(finding.verdict, VERDICT_WARN);
    finding_done(&finding);
}

static void the_first_break_decides_and_replaces_a_remark(void **state) {
    (void)state;
    const struct check check = {.level = LEVEL_BASE};
    const struct validate_options options = {.strict = false};
    const struct evidence one = {STR_INIT("GET /"), STR_INIT("200")};
    struct finding finding;
    struct judge judge = {&options, &finding, NULL};
    finding_init(&finding, &check);
    judge_warn(&judge, &one, "a remark");
    judge_warn(&judge, &one, "another");
    assert_str(buf_str(&finding.why), "a remark");
    judge_break(&judge, NULL, "%s", "broken");
    judge_break(&judge, &one, "again");
    judge_skip(&judge, "skipped");
    assert_str(buf_str(&finding.why), "broken");
    assert_str(buf_str(&finding.seen), "");
    assert_int_equal(finding.verdict, VERDICT_FAIL);
    assert_true(judge_is_settled(&judge));
    finding_done(&finding);
}

/* --- evidence -------------------------------------------------------------------------------------- */

static const struct {
    const char *bytes, *shown;
} shown[] = {
    {"plain\ntext\t", "plain\ntext\t"},
    {"\x1b[2J", "\\x1b[2J"},
    {"a\rb\r\n", "a\\rb\\r\n"},
    {"\x7f\x01", "\\x7f\\x01"},
    {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
    {"\xff\xfe.", "\\xff\\xfe."},
    {"\xc2\x9b"
     "1m",
     "\\xc2\\x9b1m"},
    {"\xc3", "\\xc3"},
    {"token-of-the-agent!", "***!"},
    {"x sk-proj-abcdefghijklmnopqrstuvwxyz0123456789 y", "x *** y"},
};

static void what_is_shown_has_no_control_bytes_and_no_secrets(void **state) {
    (void)state;
    const struct str secrets[] = {STR("token-of-the-agent")};
    for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
        struct buf out;
        buf_init(&out, 256);
        evidence_append(&out, str_from(shown[i].bytes), secrets, 1);
        assert_str(buf_str(&out), shown[i].shown);
        buf_done(&out);
    }
}

static void what_is_too_long_is_cut_at_every_limit(void **state) {
    (void)state;
    struct str bytes = STR("gr\xc3\xbc\xc3\x9f\x01 token-of-the-agent and more of it");
    const struct str secrets[] = {STR("token-of-the-agent")};
    for (size_t limit = 12; limit < 80; limit++) {
        struct buf out;
        buf_init(&out, limit);
        evidence_append(&out, bytes, secrets, 1);
        assert_true(out.len <= limit);
        assert_int_equal(str_find(buf_str(&out), STR("token-of")), out.len);
        bool cut = str_ends(buf_str(&out), STR(" ... (cut)"));
        assert_true(cut || str_ends(buf_str(&out), STR("of it")));
        buf_done(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_check_gets_the_verdict_of_its_level),
        cmocka_unit_test(behind_a_proxy_what_a_proxy_may_break_warns),
        cmocka_unit_test(the_first_break_decides_and_replaces_a_remark),
        cmocka_unit_test(what_is_shown_has_no_control_bytes_and_no_secrets),
        cmocka_unit_test(what_is_too_long_is_cut_at_every_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
