#include "tool/expression.h"

#include "helper/assert_str.h"

#include "wire/json.h"

static void assert_is(const char *text, const char *expected) {
    struct err e;
    struct buf out;
    buf_init(&out, 64);
    struct str copy = exact_copy(str_from(text));
    if (!expression_evaluate(copy, &out, &e)) fail_msg("%s: %s", text, e.text);
    assert_str(buf_str(&out), expected);
    free((void *)copy.at);
    buf_done(&out);
}

static void assert_refused(const char *text, enum err_code code, const char *why) {
    struct err e;
    struct buf out;
    buf_init(&out, 64);
    struct str copy = exact_copy(str_from(text));
    assert_false(expression_evaluate(copy, &out, &e));
    assert_str(err_text(&e), why);
    assert_int_equal(e.code, code);
    assert_int_equal(out.len, 0);
    free((void *)copy.at);
    buf_done(&out);
}

static void products_come_before_sums_and_powers_before_both(void **state) {
    (void)state;
    assert_is("1+2*3", "7");
    assert_is("(1+2)*3", "9");
    assert_is("2*3^2", "18");
    assert_is("10-4-3", "3");
    assert_is("100/10/5", "2");
    assert_is("7%4*2", "6");
    assert_is(" 1\t+\n2 ", "3");
}

static void powers_group_from_the_right_and_before_a_sign(void **state) {
    (void)state;
    assert_is("2^3^2", "512");
    assert_is("-2^2", "-4");
    assert_is("(-2)^2", "4");
    assert_is("2^-1", "0.5");
    assert_is("--3", "3");
    assert_is("2*-3", "-6");
    assert_is("+-+4", "-4");
    assert_is("0^0", "1");
    assert_is("4^0.5", "2");
}

static void decimals_are_exact(void **state) {
    (void)state;
    assert_is("0.1+0.2", "0.3");
    assert_is("1.1*10", "11");
    assert_is("0.1*3-0.3", "0");
    assert_is("19.99*3", "59.97");
    assert_is("1/8", "0.125");
    assert_is("-1/8", "-0.125");
    assert_is("5.5%2", "1.5");
    assert_is("-7%3", "-1");
    assert_is("1.10", "1.1");
    assert_is(".5+1.5e1+2E-1", "15.7");
    assert_is("1.05^2", "1.1025");
}

static void whole_numbers_are_exact_beyond_the_precision_of_a_double(void **state) {
    (void)state;
    assert_is("2^53+1", "9007199254740993");
    assert_is("9007199254740991*1", "9007199254740991");
    assert_is("999999999999999999", "999999999999999999");
    assert_is("123456789*987654321", "121932631112635269");
    assert_is("1/3*3", "1");
    assert_is("sqrt(16)+1", "5");
}

static void what_has_no_end_goes_on_as_a_double(void **state) {
    (void)state;
    assert_is("1/3", "0.3333333333333333");
    assert_is("2^0.5", "1.4142135623730951");
    assert_is("10^30", "1e+30");
    assert_is("1e308/10*10", "1e+308");
    assert_is("0.000000000000000000001", "1e-21");
    assert_is("123456789012345678901234567890", "1.2345678901234568e+29");
}

static void functions_and_constants_are_known_by_name(void **state) {
    (void)state;
    assert_is("sqrt(2)^2", "2.0000000000000004");
    assert_is("abs(-3.5)", "3.5");
    assert_is("round(2.5)", "3");
    assert_is("round(-2.5)", "-3");
    assert_is("floor(-0.5)", "-1");
    assert_is("ceil(-0.5)", "0");
    assert_is("ceil(2.1)", "3");
    assert_is("min(3, 1.5, 2)", "1.5");
    assert_is("max(3)", "3");
    assert_is("MAX(-1, 2 + 3)", "5");
    assert_is("ln(e)", "1");
    assert_is("log(1000)", "3");
    assert_is("exp(0)+sin(0)+cos(0)+tan(0)", "2");
    assert_is("cos(pi)", "-1");
}

static void an_error_names_its_column(void **state) {
    (void)state;
    enum err_code wrong = ERR_INVALID_ARGUMENT;
    assert_refused("", wrong, "column 1: expected a number, a name or '('");
    assert_refused("1+", wrong, "column 3: expected a number, a name or '('");
    assert_refused("1 2", wrong, "column 3: expected + - * / % ^ or the end");
    assert_refused("1,000", wrong, "column 2: expected + - * / % ^ or the end");
    assert_refused("(1", wrong, "column 3: expected ')' for the '(' at column 1");
    assert_refused("1)", wrong, "column 2: expected + - * / % ^ or the end");
    assert_refused("1.", wrong, "column 1: this number cannot be read");
    assert_refused(".", wrong, "column 1: this number cannot be read");
    assert_refused("1.2.3", wrong, "column 4: expected + - * / % ^ or the end");
    assert_refused("sqrt 4", wrong, "column 6: expected '(' after 'sqrt'");
    assert_refused("sqrt(1,2)", wrong, "column 7: expected ')' for the '(' at column 5");
    assert_refused("2 \xC3\x97 3", wrong, "column 3: expected + - * / % ^ or the end");
    assert_refused("\xC3\xA9+\xC3\xA9", wrong, "column 1: expected a number, a name or '('");
    assert_refused(
        "1+foo", wrong,
        "column 3: no constant or function 'foo'; there are pi e sqrt abs round floor "
        "ceil min max ln log exp sin cos tan");
}

static void a_value_that_is_no_finite_number_is_an_error(void **state) {
    (void)state;
    assert_refused("1/0", ERR_OUT_OF_RANGE, "column 2: division by zero");
    assert_refused("1%(2-2)", ERR_OUT_OF_RANGE, "column 2: division by zero");
    assert_refused("1+sqrt(-1)", ERR_OUT_OF_RANGE,
                   "column 3: the value here is no finite number");
    assert_refused("ln(0)", ERR_OUT_OF_RANGE, "column 1: the value here is no finite number");
    assert_refused("10^400", ERR_OUT_OF_RANGE, "column 3: the value here is no finite number");
    assert_refused("1e400", ERR_OUT_OF_RANGE, "column 1: the value here is no finite number");
    assert_refused("(-8)^(1/3)", ERR_OUT_OF_RANGE,
                   "column 5: the value here is no finite number");
}

static void nesting_has_a_bound(void **state) {
    (void)state;
    static const struct {
        const char *open, *close;
    } kinds[] = {{"(", ")"}, {"-", ""}, {"1^", ""}, {"abs(", ")"}};
    for (size_t kind = 0; kind < ARRAY_LEN(kinds); kind++) {
        for (int depth = 0; depth <= EXPRESSION_DEPTH_MAX + 1; depth++) {
            struct err e;
            struct buf text, out;
            buf_init(&text, EXPRESSION_MAX_BYTES);
            buf_init(&out, 64);
            for (int i = 0; i < depth; i++) buf_append(&text, str_from(kinds[kind].open));
            buf_append(&text, STR("0"));
            for (int i = 0; i < depth; i++) buf_append(&text, str_from(kinds[kind].close));
            assert_int_equal(expression_evaluate(buf_str(&text), &out, &e),
                             depth <= EXPRESSION_DEPTH_MAX);
            buf_done(&out);
            buf_done(&text);
        }
    }
}

static void a_text_that_is_too_long_is_not_looked_at(void **state) {
    (void)state;
    struct err e;
    struct buf text, out;
    buf_init(&text, MIB);
    buf_init(&out, 64);
    while (text.len < EXPRESSION_MAX_BYTES) buf_append(&text, STR(" "));
    text.at[EXPRESSION_MAX_BYTES - 1] = '7';
    assert_true(expression_evaluate(buf_str(&text), &out, &e));
    buf_append(&text, STR(" "));
    assert_false(expression_evaluate(buf_str(&text), &out, &e));
    assert_int_equal(e.code, ERR_TOO_LARGE);
    buf_done(&out);
    buf_done(&text);
}

static void every_beginning_is_a_value_or_an_error_and_nothing_else(void **state) {
    (void)state;
    struct str text = STR("-max(1.5e2, sqrt(2)^-pi, abs(-3 % 2)) / (.5 - 7)");
    size_t half = str_find(text, STR(" /"));
    for (size_t cut = 0; cut <= text.len; cut++) {
        struct err e;
        struct buf out;
        struct json number;
        buf_init(&out, 64);
        struct str copy = exact_copy(str_head(text, cut));
        bool counted = expression_evaluate(copy, &out, &e);
        assert_int_equal(counted, cut == text.len || cut == half || cut == half + 1);
        if (counted) assert_true(json_read(buf_str(&out), &number, &e));
        if (!counted) assert_int_equal(out.len, 0);
        free((void *)copy.at);
        buf_done(&out);
    }
}

static void a_value_reads_back_as_itself(void **state) {
    (void)state;
    static const char *const texts[] = {"1/3",   "-0.1",   "2^70", "5e-324",
                                        "10^18", "-1/7^9", "e"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct err e;
        struct buf out, again;
        buf_init(&out, 64);
        buf_init(&again, 64);
        assert_true(expression_evaluate(str_from(texts[i]), &out, &e));
        assert_true(expression_evaluate(buf_str(&out), &again, &e));
        assert_true(str_equal(buf_str(&out), buf_str(&again)));
        buf_done(&again);
        buf_done(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_come_before_sums_and_powers_before_both),
        cmocka_unit_test(powers_group_from_the_right_and_before_a_sign),
        cmocka_unit_test(decimals_are_exact),
        cmocka_unit_test(whole_numbers_are_exact_beyond_the_precision_of_a_double),
        cmocka_unit_test(what_has_no_end_goes_on_as_a_double),
        cmocka_unit_test(functions_and_constants_are_known_by_name),
        cmocka_unit_test(an_error_names_its_column),
        cmocka_unit_test(a_value_that_is_no_finite_number_is_an_error),
        cmocka_unit_test(nesting_has_a_bound),
        cmocka_unit_test(a_text_that_is_too_long_is_not_looked_at),
        cmocka_unit_test(every_beginning_is_a_value_or_an_error_and_nothing_else),
        cmocka_unit_test(a_value_reads_back_as_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
