#include "turn/own_calls.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "conversation/effect.h"
#include "turn/turn.h"
#include "wire/json.h"

#include <stdlib.h>

void own_calls_clear(struct own_calls *calls) {
    calls->count = 0;
}

void own_calls_done(struct own_calls *calls) {
    free(calls->list);
}

/* --- the list ----------------------------------------------------------------------------- */

static void own_calls_add(struct own_calls *calls, struct str ours, struct str theirs) {
    if (calls->count == calls->room) {
        calls->room = calls->room ? calls->room * 2 : 4;
        calls->list = mem_resize(calls->list, calls->room * sizeof(struct own_call));
    }
    calls->list[calls->count++] = (struct own_call){.theirs = theirs, .ours = ours};
}

/* The oldest open call with this name for it, or the oldest open call if the name is empty. */
static struct own_call *own_calls_find(struct own_calls *calls, struct str theirs) {
    for (size_t i = 0; i < calls->count; i++) {
        struct own_call *call = &calls->list[i];
        if (call->answered) continue;
        if (!theirs.len || str_equal(call->theirs, theirs)) return call;
    }
    return NULL;
}

/* --- events ------------------------------------------------------------------------------- */

static void own_calls_append_result(struct run *run, struct own_call *call, struct str result,
                                    struct str failed) {
    struct event event = {.kind = EVENT_TOOL_RESULT,
                          .tool_result = {call->ours, result, failed.len > 0, failed}};
    call->answered = true;
    run_append(run, &event);
}

/* Write the result as one JSON object, within the limit for our own tools' results. */
static void put_result(struct run *run, struct str text, struct buf *out) {
    size_t max_bytes = run->record.engine->limits.result_max_bytes;
    struct json value;
    struct err e;
    bool fits = text.len <= max_bytes;
    if (fits && json_reads_as_object(text)) {
        buf_append(out, text);
        return;
    }
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    if (fits && json_read(text, &value, &e)) {
        json_member_raw(&json, "result", value.raw);
    } else {
        json_member_str(&json, "result", str_head(text, utf8_cut(text, max_bytes)));
    }
    json_close(&json);
}

/* Show the call as a step only. Its own event would repeat the reply's text, which is only in
 * the store while the caller lags. */
static void append_step(struct run *run, const struct reply_event *event, struct str args) {
    struct buf text;
    buf_init(&text, 2 * KIB);
    buf_printf(&text, "called the tool '" STR_FMT "'",
               STR_ARG(str_head(event->tool, utf8_cut(event->tool, KIB))));
    struct event step = {.kind = EVENT_STEP, .step = {buf_str(&text), args}};
    run_append(run, &step);
    buf_done(&text);
}

static void append_call(struct run *run, const struct reply_event *event, struct str args) {
    struct own_calls *calls = &run->own_calls;
    struct str ours, theirs;
    if (!run_name_call(run, &ours) || !run_keep(run, event->call_id, &theirs)) return;
    if (calls->count == 0) calls->from = run->conversation.count;
    struct event made = {
        .kind = EVENT_TOOL_CALL,
        .tool_call = {.call_id = ours,
                      .tool = event->tool.len ? event->tool : STR(NAMELESS_TOOL),
                      .args = args,
                      .said = conversation_reply(&run->conversation)}};
    if (run_append(run, &made)) own_calls_add(calls, ours, theirs);
}

void run_take_own_call(const struct reply_event *event, void *ctx) {
    struct run *run = ctx;
    struct str args = json_reads_as_object(event->args) ? event->args : STR("{}");
    bool too_many;      /* ignored: the call was made, so it is shown, up to a limit */
    run_end_texts(run); /* flush the text held back before it */
    if (run->ending_begun || !run_count_call(run, &too_many)) return;
    if (!run_use(run, event->tool.len + args.len)) return;
    run_guard_reply(run);
    run->calls.acted = true;
    if (run->long_reply.state == LONG_REPLY_HELD) {
        append_call(run, event, args);
    } else {
        append_step(run, event, args);
    }
}

void run_take_own_result(const struct reply_event *event, void *ctx) {
    struct run *run = ctx;
    if (run->ending_begun) return;
    struct own_call *call = own_calls_find(&run->own_calls, event->call_id);
    if (!call || !run_use(run, event->text.len)) return; /* its call was not shown */
    struct buf result;
    buf_init(&result, 8 * event->text.len + KIB);
    put_result(run, event->text, &result);
    own_calls_append_result(run, call, buf_str(&result), event->reason);
    buf_done(&result);
}

/* --- the end ------------------------------------------------------------------------------ */

void run_close_own_calls(struct run *run) {
    struct own_call *call;
    while (!run->ending_begun && (call = own_calls_find(&run->own_calls, STR_EMPTY)))
        own_calls_append_result(run, call, STR("{}"), STR_EMPTY);
}

void run_stop_own_calls(struct run *run) {
    char room[EFFECT_MAX_BYTES];
    struct own_call *call;
    while ((call = own_calls_find(&run->own_calls, STR_EMPTY))) {
        struct buf result = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
        struct err why;
        effect_write(EFFECT_UNKNOWN, STR("the turn ended while this call was out"), &result,
                     &why);
        own_calls_append_result(run, call, buf_str(&result), err_text(&why));
    }
}

struct str run_own_said(const struct run *run) {
    const struct conversation *c = &run->conversation;
    if (!run->own_calls.count) return STR_EMPTY;
    for (size_t i = c->count; i-- > run->own_calls.from;) {
        if (c->messages[i].role == MESSAGE_AGENT) return c->messages[i].text;
    }
    return STR_EMPTY;
}
