/* Any result of an MCP tool: what the model reads of it is one JSON object, and a failure fits its
 * error. */
#include "mcp/tool_result.h"

#include "base/utf8.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct json result = {.kind = JSON_NONE}, read = {.kind = JSON_NONE};
    struct buf out;
    struct err e = {0};
    /* As deep as what stands in an answer of JSON-RPC. */
    if (!json_read_depth(str_of(data, size), JSON_DEPTH_MAX - 1, &result, &e)) return 0;
    buf_init(&out, SIZE_MAX);
    if (mcp_tool_result(result, &out, &e)) {
        bool good = json_read(buf_str(&out), &read, &e);
        assert(good && read.kind == JSON_OBJECT);
    } else {
        assert(err_text(&e).len && utf8_valid(err_text(&e)));
    }
    buf_done(&out);
    return 0;
}
