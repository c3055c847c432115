#include "tool/template.h"

#include "helper/assert_str.h"

#include "base/buf.h"

/* "text|{argument}|{env:secret}|..." of a text, or "! why". */
static void pieces_of(struct str text, struct buf *out) {
    static const char *const marks[] = {"", "arg ", "env ", "call "};
    struct template_piece piece;
    struct err e;
    while (text.len) {
        if (!template_next(&text, &piece, &e)) {
            buf_printf(out, "! %s", e.text);
            return;
        }
        buf_printf(out, "%s" STR_FMT "|", marks[piece.kind], STR_ARG(piece.text));
    }
}

static void cut(const char *text, const char *expected) {
    struct buf out;
    buf_init(&out, KIB);
    struct str copy = exact_copy(str_from(text));
    pieces_of(copy, &out);
    assert_str(buf_str(&out), expected);
    free((void *)copy.at);
    buf_done(&out);
}

static void a_template_is_text_and_places(void **state) {
    (void)state;
    cut("plain", "plain|");
    cut("/u/{id}/x{env:KEY}{call:user}", "/u/|arg id|/x|env KEY|call user|");
    cut("{{{a}}}", "{|arg a|}|");
    cut("{a.b-c}", "arg a.b-c|");
}

static void a_brace_alone_is_refused(void **state) {
    (void)state;
    cut("a{b", "a|! a '{' has no '}'; a brace itself is '{{'");
    cut("a}b", "a|! a '}' has no '{'; a brace itself is '}}'");
    cut("{}", "! '{}' names nothing; write {argument}, {env:VARIABLE}, {call:user}, or '{{' "
              "for a brace itself");
    cut("{env:}", "! '{}' names nothing; write {argument}, {env:VARIABLE}, {call:user}, or "
                  "'{{' for a brace itself");
    cut("{a b}", "! '{a b}' names nothing; write {argument}, {env:VARIABLE}, {call:user}, or "
                 "'{{' for a brace itself");
}

static void only_the_first_place_is_reported(void **state) {
    struct template_piece piece;
    (void)state;
    assert_true(template_is_one(STR("{a}"), &piece));
    assert_str(piece.text, "a");
    assert_false(template_is_one(STR("{a}b"), &piece));
    assert_false(template_is_one(STR("{{"), &piece));
    assert_false(template_is_one(STR("{a"), &piece));
    assert_false(template_is_one(STR_EMPTY, &piece));
}

static void what_a_call_knows_has_names(void **state) {
    enum template_call which;
    (void)state;
    assert_true(template_call_find(STR("session"), &which));
    assert_int_equal(which, TEMPLATE_SESSION);
    assert_false(template_call_find(STR("sesion"), &which));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_template_is_text_and_places),
        cmocka_unit_test(a_brace_alone_is_refused),
        cmocka_unit_test(only_the_first_place_is_reported),
        cmocka_unit_test(what_a_call_knows_has_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
