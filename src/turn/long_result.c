#include "turn/long_result.h"

#include "base/utf8.h"
#include "store/artifact.h"
#include "tool/read_result.h"
#include "turn/turn.h"
#include "wire/json.h"

/* Answer with the beginning of `result` as a string, because cut JSON is not valid. id 0: the
 * rest is not stored. */
static void answer_cut(struct turn_call *call, struct str result, int64_t id) {
    struct str text = str_head(result, call->run->record.engine->limits.result_max_bytes);
    struct buf cut;
    text = str_head(text, text.len - utf8_pending(text));
    buf_init(&cut, 6 * text.len + KIB); /* an escape has at most six bytes */
    struct json_writer json = json_writer(&cut);
    json_open_object(&json);
    json_member_str(&json, "cut", text);
    json_member_i64(&json, "bytes_in_all", (int64_t)result.len);
    if (id) {
        json_member_i64(&json, "result_id", id);
        json_member_u64(&json, "next_offset", text.len);
        json_member_str(
            &json, "hint",
            STR("This is the beginning. Read on with the tool " READ_RESULT_TOOL "."));
    }
    json_close(&json);
    run_answer(call, buf_str(&cut), NULL);
    buf_done(&cut);
}

static void long_result_on_kept(const struct artifact *artifact, const struct err *failed,
                                void *ctx) {
    struct turn_call *call = ctx;
    struct run *run = call->run;
    call->keeping = NULL;
    struct buf result = call->long_result;
    call->long_result = (struct buf){0};
    answer_cut(call, buf_str(&result), failed ? 0 : artifact->id);
    buf_done(&result);
    run_calls_continue(run);
}

bool run_keep_result(struct turn_call *call, struct str result) {
    struct run *run = call->run;
    struct err e;
    if (!run->record.engine->store || result.len > ARTIFACT_MAX_BYTES) {
        answer_cut(call, result, 0);
        return false;
    }
    buf_init(&call->long_result, ARTIFACT_MAX_BYTES);
    buf_append(&call->long_result, result);
    const struct artifact artifact = {.run = record_id(&run->record),
                                      .name = call->tool,
                                      .content_type = STR("application/json"),
                                      .bytes = buf_str(&call->long_result)};
    if (artifact_put_start(run->record.engine->store, run->record.host->loop,
                           run->request.name.workspace, &artifact, long_result_on_kept, call,
                           &call->keeping, &e))
        return true;
    buf_done(&call->long_result);
    answer_cut(call, result, 0);
    return false;
}

void run_cut_result(struct turn_call *call) {
    struct buf result = call->long_result;
    artifact_forget(call->keeping);
    call->keeping = NULL;
    call->long_result = (struct buf){0};
    answer_cut(call, buf_str(&result), 0);
    buf_done(&result);
}
