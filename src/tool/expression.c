#include "tool/expression.h"

#include "tool/decimal.h"

#include <math.h>

struct parser {
    struct str text;
    size_t at;
    unsigned depth;
    struct err *e;
};

/* ---- What names stand for ---- */

static const struct {
    struct str name;
    double value;
} constants[] = {
    {STR_INIT("pi"), 3.14159265358979323846},
    {STR_INIT("e"), 2.71828182845904523536},
};

static struct decimal absolute(struct decimal a) {
    return a.real < 0 ? decimal_negate(a) : a;
}

static struct decimal smaller(struct decimal a, struct decimal b) {
    return decimal_compare(b, a) < 0 ? b : a;
}

static struct decimal larger(struct decimal a, struct decimal b) {
    return decimal_compare(b, a) > 0 ? b : a;
}

/* Exactly one of the three functions is set: of one value or of two. */
static const struct function {
    struct str name;
    double (*of_double)(double);
    struct decimal (*of_decimal)(struct decimal);
    struct decimal (*join)(struct decimal, struct decimal);
} functions[] = {
    /* clang-format off */
    {STR_INIT("sqrt"),  sqrt,  NULL,          NULL},
    {STR_INIT("abs"),   NULL,  absolute,      NULL},
    {STR_INIT("round"), NULL,  decimal_round, NULL},
    {STR_INIT("floor"), NULL,  decimal_floor, NULL},
    {STR_INIT("ceil"),  NULL,  decimal_ceil,  NULL},
    {STR_INIT("min"),   NULL,  NULL,          smaller},
    {STR_INIT("max"),   NULL,  NULL,          larger},
    {STR_INIT("ln"),    log,   NULL,          NULL},
    {STR_INIT("log"),   log10, NULL,          NULL},
    {STR_INIT("log10"), log10, NULL,          NULL},
    {STR_INIT("exp"),   exp,   NULL,          NULL},
    {STR_INIT("sin"),   sin,   NULL,          NULL},
    {STR_INIT("cos"),   cos,   NULL,          NULL},
    {STR_INIT("tan"),   tan,   NULL,          NULL},
    /* clang-format on */
};

/* ---- Places ---- */

/* The column of the byte at `at`, in characters, from 1. */
static size_t column(const struct parser *parser, size_t at) {
    size_t count = 1;
    for (size_t i = 0; i < at; i++) {
        if (((unsigned char)parser->text.at[i] & 0xC0) != 0x80) count++;
    }
    return count;
}

static bool expression_refuse(struct parser *parser, size_t at, const char *why) {
    return err_set(parser->e, ERR_INVALID_ARGUMENT, "column %zu: %s", column(parser, at), why);
}

/* Every step ends here. A value that is not finite is an error. */
static bool expression_keep(struct parser *parser, size_t at, struct decimal value,
                            struct decimal *ret) {
    if (!isfinite(value.real))
        return err_set(parser->e, ERR_OUT_OF_RANGE,
                       "column %zu: the value here is no finite number", column(parser, at));
    *ret = value;
    return true;
}

static bool go_deeper(struct parser *parser) {
    if (++parser->depth <= EXPRESSION_DEPTH_MAX) return true;
    return err_set(parser->e, ERR_INVALID_ARGUMENT,
                   "column %zu: more than %d levels of parentheses, signs and powers",
                   column(parser, parser->at), EXPRESSION_DEPTH_MAX);
}

/* ---- Tokens ---- */

static bool expression_is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void skip_space(struct parser *parser) {
    struct str rest = str_skip(parser->text, parser->at);
    size_t space = 0;
    while (space < rest.len && (rest.at[space] == ' ' || rest.at[space] == '\t' ||
                                rest.at[space] == '\n' || rest.at[space] == '\r'))
        space++;
    parser->at += space;
}

/* The next byte that is not a space; NUL at the end. */
static char peek(struct parser *parser) {
    skip_space(parser);
    return parser->at < parser->text.len ? parser->text.at[parser->at] : '\0';
}

static bool accept(struct parser *parser, char byte) {
    if (peek(parser) != byte) return false;
    parser->at++;
    return true;
}

static struct str expression_take_name(struct parser *parser) {
    struct str rest = str_skip(parser->text, parser->at);
    size_t len = 0;
    while (len < rest.len && (is_letter(rest.at[len]) || expression_is_digit(rest.at[len])))
        len++;
    parser->at += len;
    return str_head(rest, len);
}

static size_t digits_len(struct str text) {
    size_t len = 0;
    while (len < text.len && expression_is_digit(text.at[len])) len++;
    return len;
}

static struct str expression_take_number(struct parser *parser) {
    struct str rest = str_skip(parser->text, parser->at);
    size_t len = digits_len(rest);
    if (len < rest.len && rest.at[len] == '.') len += 1 + digits_len(str_skip(rest, len + 1));

    struct str exponent = str_skip(rest, len);
    if (exponent.len > 1 && (exponent.at[0] == 'e' || exponent.at[0] == 'E')) {
        size_t sign = exponent.at[1] == '-' || exponent.at[1] == '+' ? 1 : 0;
        size_t digits = digits_len(str_skip(exponent, 1 + sign));
        if (digits > 0) len += 1 + sign + digits;
    }
    parser->at += len;
    return str_head(rest, len);
}

/* ---- The grammar ---- */

static bool parse_sum(struct parser *parser, struct decimal *ret);
static bool parse_signed(struct parser *parser, struct decimal *ret);

static bool parse_number(struct parser *parser, struct decimal *ret) {
    size_t at = parser->at;
    struct decimal value = {0};
    if (!decimal_read(expression_take_number(parser), &value))
        return expression_refuse(parser, at, "this number cannot be read");
    return expression_keep(parser, at, value, ret);
}

static bool close_parenthesis(struct parser *parser, size_t opened) {
    if (accept(parser, ')')) return true;
    return err_set(parser->e, ERR_INVALID_ARGUMENT,
                   "column %zu: expected ')' for the '(' at column %zu",
                   column(parser, parser->at), column(parser, opened));
}

static bool parse_parentheses(struct parser *parser, struct decimal *ret) {
    size_t opened = parser->at;
    if (!go_deeper(parser) || !accept(parser, '(')) return false;
    if (!parse_sum(parser, ret) || !close_parenthesis(parser, opened)) return false;
    parser->depth--;
    return true;
}

static bool apply(struct parser *parser, size_t at, const struct function *function,
                  struct decimal value, struct decimal *ret) {
    if (function->of_decimal) value = function->of_decimal(value);
    if (function->of_double) value = decimal_of(function->of_double(value.real));
    return expression_keep(parser, at, value, ret);
}

static bool parse_call(struct parser *parser, size_t at, const struct function *function,
                       struct decimal *ret) {
    struct decimal value = {0}, next = {0};
    skip_space(parser);
    size_t opened = parser->at;
    if (!accept(parser, '('))
        return err_set(parser->e, ERR_INVALID_ARGUMENT,
                       "column %zu: expected '(' after '" STR_FMT "'", column(parser, opened),
                       STR_ARG(function->name));
    if (!go_deeper(parser) || !parse_sum(parser, &value)) return false;
    while (function->join && accept(parser, ',')) {
        if (!parse_sum(parser, &next)) return false;
        value = function->join(value, next);
    }
    if (!close_parenthesis(parser, opened)) return false;
    parser->depth--;
    return apply(parser, at, function, value, ret);
}

static bool parse_name(struct parser *parser, struct decimal *ret) {
    size_t at = parser->at;
    struct str name = expression_take_name(parser);
    for (size_t i = 0; i < ARRAY_LEN(constants); i++) {
        if (str_equal_nocase(name, constants[i].name))
            return expression_keep(parser, at, decimal_of(constants[i].value), ret);
    }
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        if (str_equal_nocase(name, functions[i].name))
            return parse_call(parser, at, &functions[i], ret);
    }
    return err_set(parser->e, ERR_INVALID_ARGUMENT,
                   "column %zu: no constant or function '" STR_FMT
                   "'; there are pi e sqrt abs round floor ceil min max ln log exp sin cos tan",
                   column(parser, at), STR_ARG(str_head(name, 32)));
}

static bool parse_atom(struct parser *parser, struct decimal *ret) {
    char next = peek(parser);
    if (next == '(') return parse_parentheses(parser, ret);
    if (is_letter(next)) return parse_name(parser, ret);
    if (expression_is_digit(next) || next == '.') return parse_number(parser, ret);
    return expression_refuse(parser, parser->at, "expected a number, a name or '('");
}

static bool parse_power(struct parser *parser, struct decimal *ret) {
    struct decimal base = {0}, exponent = {0};
    if (!parse_atom(parser, &base)) return false;
    skip_space(parser);
    size_t at = parser->at;
    if (!accept(parser, '^')) {
        *ret = base;
        return true;
    }
    if (!go_deeper(parser) || !parse_signed(parser, &exponent)) return false;
    parser->depth--;
    return expression_keep(parser, at, decimal_power(base, exponent), ret);
}

static bool parse_signed(struct parser *parser, struct decimal *ret) {
    char sign = peek(parser);
    if (sign != '-' && sign != '+') return parse_power(parser, ret);
    parser->at++;
    if (!go_deeper(parser) || !parse_signed(parser, ret)) return false;
    parser->depth--;
    if (sign == '-') *ret = decimal_negate(*ret);
    return true;
}

static bool parse_product(struct parser *parser, struct decimal *ret) {
    struct decimal value = {0}, next = {0};
    if (!parse_signed(parser, &value)) return false;
    for (;;) {
        char sign = peek(parser);
        size_t at = parser->at;
        if (sign != '*' && sign != '/' && sign != '%') break;
        parser->at++;
        if (!parse_signed(parser, &next)) return false;
        if (sign != '*' && next.real == 0)
            return err_set(parser->e, ERR_OUT_OF_RANGE, "column %zu: division by zero",
                           column(parser, at));
        if (sign == '*') value = decimal_multiply(value, next);
        if (sign == '/') value = decimal_divide(value, next);
        if (sign == '%') value = decimal_remainder(value, next);
        if (!expression_keep(parser, at, value, &value)) return false;
    }
    *ret = value;
    return true;
}

static bool parse_sum(struct parser *parser, struct decimal *ret) {
    struct decimal value = {0}, next = {0};
    if (!parse_product(parser, &value)) return false;
    for (;;) {
        char sign = peek(parser);
        size_t at = parser->at;
        if (sign != '+' && sign != '-') break;
        parser->at++;
        if (!parse_product(parser, &next)) return false;
        value = sign == '+' ? decimal_add(value, next) : decimal_subtract(value, next);
        if (!expression_keep(parser, at, value, &value)) return false;
    }
    *ret = value;
    return true;
}

bool expression_evaluate(struct str text, struct buf *out, struct err *e) {
    struct parser parser = {.text = text, .e = e};
    struct decimal value = {0};
    if (text.len > EXPRESSION_MAX_BYTES)
        return err_set(e, ERR_TOO_LARGE, "the expression is longer than %zu bytes",
                       EXPRESSION_MAX_BYTES);
    if (!parse_sum(&parser, &value)) return false;
    skip_space(&parser);
    if (parser.at < text.len)
        return expression_refuse(&parser, parser.at, "expected + - * / % ^ or the end");
    return decimal_put(out, value) ||
           err_set(e, ERR_TOO_LARGE, "there is no room for the value");
}
