#include "tool/read_result.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "store/artifact.h"
#include "tool/local.h"

#include <stdlib.h>

#define ROOM_FOR_THE_REST 512 /* of the answer, besides the text */

struct reader {
    struct tool base;
    struct store *store;
};

struct tool_call {
    struct artifact_ask *ask;
    uint64_t id, offset;
    tool_done_fn *done;
    void *ctx;
};

static void read_result_call_free(struct tool_call *call) {
    artifact_forget(call->ask);
    free(call);
}

static void read_result_write_piece(const struct tool_call *call,
                                    const struct artifact *artifact, struct buf *out) {
    struct buf text; /* an offset may be inside a character */
    buf_init(&text, 3 * artifact->bytes.len + 4);
    struct str whole =
        str_head(artifact->bytes, artifact->bytes.len - utf8_pending(artifact->bytes));
    if (whole.len == 0) whole = artifact->bytes;
    bool valid = utf8_valid(whole);
    if (!valid) utf8_append_repaired(&text, whole);
    struct str shown =
        local_fit(valid ? whole : buf_str(&text), LOCAL_RESULT_MAX_BYTES - ROOM_FOR_THE_REST);
    /* Repaired text has another length; the whole piece then counts as read. */
    uint64_t next = call->offset + (valid ? shown.len : whole.len);
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_u64(&json, "result_id", call->id);
    json_member_u64(&json, "offset", call->offset);
    json_member_str(&json, "text", shown);
    if (next < artifact->size) {
        json_member_u64(&json, "next_offset", next);
    } else {
        json_member_null(&json, "next_offset");
    }
    json_member_u64(&json, "bytes_in_all", artifact->size);
    json_close(&json);
    buf_done(&text);
}

static void read_result_on_read(const struct artifact *artifact, const struct err *failed,
                                void *ctx) {
    struct tool_call *call = ctx;
    struct err why;
    struct buf result;
    tool_done_fn *done = call->done;
    void *done_ctx = call->ctx;
    call->ask = NULL;
    buf_init(&result, LOCAL_RESULT_MAX_BYTES);
    if (!failed) {
        read_result_write_piece(call, artifact, &result);
    } else if (failed->code == ERR_NOT_FOUND) {
        err_set(&why, ERR_NOT_FOUND, "there is no result %llu", (unsigned long long)call->id);
    } else {
        log_often(LOG_WARNING, "result: %s", failed->text);
        err_set(&why, failed->code, "results cannot be reached now; try again later");
    }
    if (!failed && !local_result(&result, &why)) failed = &why;
    read_result_call_free(call);
    done(failed ? STR_EMPTY : buf_str(&result), failed ? &why : NULL, done_ctx);
    buf_done(&result);
}

static struct tool_call *read_result_start(struct tool *tool, struct loop *loop,
                                           const struct tool_request *request,
                                           tool_done_fn *done, void *ctx) {
    struct reader *reader = CONTAINER_OF(tool, struct reader, base);
    struct tool_call *call = MEM_NEW(struct tool_call);
    struct json args;
    struct err e;
    call->done = done;
    call->ctx = ctx;
    if (local_args(request->args, &args, &e)) {
        call->id = local_number(args, STR("result_id"), 1, INT64_MAX, INT64_MAX);
        call->offset = local_number(args, STR("offset"), 0, ARTIFACT_MAX_BYTES, 0);
    }
    const struct artifact_reader turn = {.workspace = request->workspace,
                                         .user = request->user,
                                         .session = request->session,
                                         .run = request->run};
    call->ask =
        artifact_read_start(reader->store, loop, &turn, (int64_t)call->id, (size_t)call->offset,
                            LOCAL_RESULT_MAX_BYTES, read_result_on_read, call);
    return call;
}

struct tool *read_result_tool_new(struct store *store) {
    static const struct tool_kind kind = {.name = "read_result",
                                          .start = read_result_start,
                                          .cancel = read_result_call_free,
                                          .free = local_tool_free};
    struct reader *reader = MEM_NEW(struct reader);
    reader->store = store;
    reader->base = (struct tool){
        .kind = &kind,
        .name = STR(READ_RESULT_TOOL),
        .description = STR("Reads on in a tool's result that was too long to be shown whole."),
        .parameters = STR(
            "{\"type\":\"object\",\"properties\":{"
            "\"result_id\":{\"type\":\"integer\",\"minimum\":1,"
            "\"description\":\"The number that the cut result names.\"},"
            "\"offset\":{\"type\":\"integer\",\"minimum\":0,"
            "\"description\":\"Where to read on, in bytes; 0 at first.\"}," LOCAL_DESCRIPTION
            "},\"required\":[\"result_id\"],\"additionalProperties\":false}"),
        .idempotent = true};
    local_tool_init(&reader->base);
    return &reader->base;
}
