/* Of JSON comes JSON that has no NUL and no large exponent, and comes again as it is. */
#include "orchestrator/jsonb.h"
#include "wire/json.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str text = str_of(data, size);
    struct buf first, second;
    struct json json;
    struct err e;
    if (!json_read(text, &json, &e)) return 0;
    buf_init(&first, 3 * size + 1);
    buf_init(&second, 3 * size + 1);
    jsonb_put(text, &first);
    assert(buf_ok(&first) && json_read(buf_str(&first), &json, &e));
    jsonb_put(buf_str(&first), &second);
    assert(str_equal(buf_str(&first), buf_str(&second)));
    buf_done(&first);
    buf_done(&second);
    return 0;
}
