/* calculator: the tool that evaluates arithmetic, because models guess.
 *
 * {"expression":"(12.5 + 3) * 4"} gives {"expression":"(12.5 + 3) * 4","result":62}. What an
 * expression may contain is described in tool/expression.h.
 */
#include "tool/computed.h"
#include "tool/expression.h"
#include "tool/local.h"

#define NUMBER_MAX_BYTES 64

static bool calculate(struct json args, struct arena *arena, struct buf *out, struct err *e) {
    struct str expression;
    struct buf number;
    if (!json_str(json_find(args, STR("expression")), arena, &expression))
        return err_set(e, ERR_INVALID_ARGUMENT, "'expression' must be a string");

    buf_init(&number, NUMBER_MAX_BYTES);
    bool counted = expression_evaluate(expression, &number, e);
    if (counted) {
        struct json_writer w = json_writer(out);
        json_open_object(&w);
        json_member_str(&w, "expression", expression);
        json_member_raw(&w, "result", buf_str(&number));
        json_close(&w);
    }
    buf_done(&number);
    return counted;
}

const struct computed calculator_tool = {
    .name = STR_INIT("calculator"),
    .description = STR_INIT("Work out an arithmetic expression exactly."),
    .parameters = STR_INIT(
        "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"expression\"],"
        "\"properties\":{"
        "\"expression\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4096,"
        "\"description\":\"For example (12.5 + 3) * 4. Operators + - * / % ^ and parentheses; "
        "functions sqrt abs round floor ceil min max ln log exp sin cos tan; constants pi "
        "e.\"}," LOCAL_DESCRIPTION "}}"),
    .idempotent = true,
    .compute = calculate,
};
