/* Whatever an expression comes to is a JSON number that comes to itself. */
#include "tool/expression.h"

#include "wire/json.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct err e;
    struct buf out, again;
    struct json number;
    buf_init(&out, 64);
    buf_init(&again, 64);
    if (expression_evaluate(str_of(data, size), &out, &e)) {
        assert(json_read(buf_str(&out), &number, &e) && number.kind == JSON_NUMBER);
        assert(expression_evaluate(buf_str(&out), &again, &e));
        assert(str_equal(buf_str(&out), buf_str(&again)));
    } else {
        assert(e.text[0] && out.len == 0);
    }
    buf_done(&again);
    buf_done(&out);
    return 0;
}
