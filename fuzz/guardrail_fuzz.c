/* guardrail: whatever the pattern and the text are, the text passes the same however it is cut.
 *
 *     STEP ACTION pattern '\n' replacement '\n' text
 *
 * The text arrives STEP + 1 bytes at a time, through this rule and the default ones. */
#include "guardrail/filter.h"

#include "base/utf8.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void pass_cut(struct guardrails rules, struct str text, size_t step, struct buf *out,
                     struct filter_result *ret) {
    struct filter filter;
    filter_init(&filter, rules);
    bool passed = true;
    for (; passed && text.len; text = str_skip(text, step)) {
        passed = filter_feed(&filter, str_head(text, step), out);
        assert(utf8_valid(buf_str(out)));
        assert(filter_held(&filter) <= rules.count * GUARDRAIL_MATCH_MAX_BYTES + 3);
    }
    passed = passed && filter_end(&filter, out);
    assert(passed == !filter.result.blocked_by);
    *ret = filter.result;
    filter_done(&filter);
}

static void check(struct guardrails rules, struct str text, size_t step) {
    struct buf whole, cut;
    struct filter_result of_whole, of_cut;
    buf_init(&whole, 64 * MIB);
    buf_init(&cut, 64 * MIB);
    bool passed = filter_text(rules, text, &whole, &of_whole);
    assert(passed == !of_whole.blocked_by);
    pass_cut(rules, text, step, &cut, &of_cut);
    /* A search that was given up depends on how long it was. */
    if (!of_whole.undecided && !of_cut.undecided) {
        assert(of_whole.blocked_by == of_cut.blocked_by);
        assert(of_whole.redacted == of_cut.redacted && of_whole.warned == of_cut.warned);
        assert(str_equal(buf_str(&whole), buf_str(&cut)));
    }
    buf_done(&whole);
    buf_done(&cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    struct guardrail *rules[1 + GUARDRAIL_PERSONAL_COUNT];
    struct str rest = str_of(data + 2, size - 2);
    struct guardrail_rule rule = {.name = STR("fuzz"),
                                  .action = (enum guardrail_action)(data[1] % 3),
                                  .kind = data[1] & 0x80 ? GUARDRAIL_KEYWORD : GUARDRAIL_REGEX,
                                  .luhn = (data[1] & 0x40) != 0};
    struct err e;
    rule.pattern = str_split(rest, '\n', &rest);
    rule.replacement = str_split(rest, '\n', &rest);
    if (!guardrail_new(&rule, &rules[0], &e)) {
        assert(e.text[0]);
        return 0;
    }
    for (size_t i = 0; i < GUARDRAIL_PERSONAL_COUNT; i++) {
        bool made = guardrail_new(&guardrail_personal[i], &rules[i + 1], &e);
        assert(made);
    }
    check((struct guardrails){rules, ARRAY_LEN(rules)}, rest, (size_t)data[0] + 1);
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) guardrail_free(rules[i]);
    return 0;
}
