/* Any schema and any arguments of an MCP tool: the headers that it wants are headers, the params
 * of a stateless request are JSON, and so are those of the next round.
 *
 *     SCHEMA NUL ARGUMENTS */
#include "mcp/asked.h"
#include "mcp/generation.h"
#include "mcp/param_headers.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_headers(struct json schema, struct json args) {
    struct http_header headers[PARAM_HEADERS_MAX];
    struct buf room;
    struct err e;
    if (!param_headers_check(schema, &e)) return;
    buf_init(&room, 64 * KIB);
    size_t count = param_headers_write(schema, args, &room, headers);
    assert(count <= PARAM_HEADERS_MAX);
    for (size_t i = 0; i < count; i++) {
        assert(str_starts(headers[i].name, STR("Mcp-Param-")));
        for (size_t n = 0; n < headers[i].name.len; n++)
            assert(headers[i].name.at[n] > ' ' && headers[i].name.at[n] <= '~');
        for (size_t n = 0; n < headers[i].value.len; n++)
            assert(headers[i].value.at[n] >= ' ' && headers[i].value.at[n] <= '~');
    }
    buf_done(&room);
}

/* What a question gets is JSON, whatever its form is. */
static void check_reply(struct json params) {
    static const struct json method = {.kind = JSON_STRING,
                                       .raw = STR_INIT("\"elicitation/create\"")};
    struct json read;
    struct buf reply;
    struct err e;
    buf_init(&reply, SIZE_MAX);
    bool good = mcp_reply(method, params, MCP_ELICITATION_DEFAULTS, &reply) &&
                json_read(buf_str(&reply), &read, &e) && read.kind == JSON_OBJECT;
    assert(good);
    buf_done(&reply);
}

static void check_params(struct json args, struct json result) {
    struct json read;
    struct buf params, again;
    struct err e;
    if (args.kind != JSON_OBJECT) return;
    buf_init(&params, SIZE_MAX);
    buf_init(&again, SIZE_MAX);
    mcp_write_params(MCP_STATELESS, MCP_ELICITATION_DEFAULTS, args.raw, 7, &params);
    bool good = json_read(buf_str(&params), &read, &e);
    assert(good && read.kind == JSON_OBJECT && json_count(read) == json_count(args) + 1);
    if (mcp_write_round(args.raw, result, MCP_ELICITATION_DEFAULTS, &again, &e)) {
        good = json_read(buf_str(&again), &read, &e);
        assert(good && read.kind == JSON_OBJECT);
    }
    buf_done(&params);
    buf_done(&again);
}

/* With room for what stands around it. */
static bool take(struct str text, struct json *ret) {
    struct err e;
    return json_read_depth(text, JSON_DEPTH_MAX - 4, ret, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str rest;
    struct json schema, args;
    struct str text = str_split(str_of(data, size), '\0', &rest);
    if (!rest.at || !take(text, &schema) || !take(rest, &args)) return 0;
    check_headers(schema, args);
    check_reply(args);
    check_params(args, schema);
    return 0;
}
