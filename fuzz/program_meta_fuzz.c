/* Any params of a request to an MCP server that is a program: what is written says the trace once,
 * and everything else as often as before. */
#include "sidecar/program_meta.h"

#include <assert.h>
#include <string.h>

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written(struct json params, struct str text) {
    char parent[TRACE_PARENT_BYTES + 1];
    struct trace_state state;
    struct json written = {.kind = JSON_NONE};
    struct err e;
    bool good = json_read(text, &written, &e);
    assert(good);
    if (written.kind != JSON_OBJECT) return;
    static const char *const once[] = {"_meta", NULL};
    good = json_check_once(written, once, &e) && program_meta_read(written, parent, &state);
    assert(good && strcmp(parent, PARENT) == 0);
    assert(str_equal(trace_state_str(&state), STR("a=1")));
    if (json_find(params, STR("_meta")).kind == JSON_NONE)
        assert(json_count(written) == json_count(params) + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct json params = {.kind = JSON_NONE};
    char parent[TRACE_PARENT_BYTES + 1];
    struct trace_state state;
    struct buf out;
    struct err e;
    if (!json_read(str_of((const char *)data, size), &params, &e)) return 0;
    if (program_meta_read(params, parent, &state)) assert(strlen(parent) == TRACE_PARENT_BYTES);
    buf_init(&out, 8 * size + KIB);
    program_meta_write(params, STR(PARENT), STR("a=1"), &out);
    assert(buf_ok(&out));
    check_written(params, buf_str(&out));
    buf_done(&out);
    return 0;
}
