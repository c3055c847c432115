#include "turn/lost_calls.h"

#include "base/mem.h"
#include "conversation/conversation.h"
#include "conversation/effect.h"
#include "wire/json.h"

#include <stdlib.h>

#define REPLY_MAX_BYTES (16 * MIB)

void lost_calls_init(struct lost_calls *calls) {
    *calls = (struct lost_calls){0};
    buf_init(&calls->reply, REPLY_MAX_BYTES);
    buf_init(&calls->speaker, KIB);
}

static void lost_calls_drop(struct lost_call *call) {
    text_done(&call->call_id);
    text_done(&call->agent);
}

void lost_calls_done(struct lost_calls *calls) {
    for (size_t i = 0; i < calls->count; i++) lost_calls_drop(&calls->calls[i]);
    free(calls->calls);
    buf_done(&calls->reply);
    buf_done(&calls->speaker);
}

/* --- reading ------------------------------------------------------------------------------ */

/* Whether the call can be repeated: it is idempotent, or a transfer, which has no effect
 * outside. */
static bool is_harmless(const struct event *event) {
    return event->tool_call.idempotent || str_equal(event->tool_call.tool, STR(TRANSFER_TOOL));
}

static void lost_calls_add(struct lost_calls *calls, const struct event *event) {
    if (event->tool_call.callers) return; /* it was not made here */
    if (calls->count == calls->room) {
        calls->room = calls->room ? calls->room * 2 : 8;
        calls->calls = mem_resize(calls->calls, calls->room * sizeof(struct lost_call));
    }
    calls->calls[calls->count++] =
        (struct lost_call){.call_id = text_copy(event->tool_call.call_id),
                           .agent = text_copy(event->agent),
                           .held = event->tool_call.held,
                           .idempotent = is_harmless(event)};
}

/* The oldest call with this id and no result: results belong to calls in order. */
static struct lost_call *lost_calls_find(struct lost_calls *calls, struct str call_id) {
    for (size_t i = 0; i < calls->count; i++) {
        struct lost_call *call = &calls->calls[i];
        if (!call->answered && str_equal(text_str(call->call_id), call_id)) return call;
    }
    return NULL;
}

/* A human's decision. Unless it refuses the call, the call may have been made. */
static void decide(struct lost_calls *calls, const struct event *event) {
    struct str id = str_skip(event->tool_result.call_id, strlen(APPROVAL_ID));
    struct lost_call *call = lost_calls_find(calls, id);
    struct json answer;
    struct err e;
    if (!call || !json_read(event->tool_result.result, &answer, &e)) return;
    if (!json_is(json_find(answer, STR("decision")), STR("refuse"))) call->held = false;
}

static void lost_calls_close_call(struct lost_calls *calls, const struct event *event) {
    struct lost_call *call = lost_calls_find(calls, event->tool_result.call_id);
    if (call) {
        call->answered = true;
    } else if (str_starts(event->tool_result.call_id, STR(APPROVAL_ID))) {
        decide(calls, event);
    }
}

static void hear(struct lost_calls *calls, const struct event *event) {
    buf_clear(&calls->speaker);
    buf_append(&calls->speaker, event->agent);
    buf_append(&calls->reply, event->text.text);
}

static void lost_calls_take(struct lost_calls *calls, const struct event *event) {
    switch (event->kind) {
    case EVENT_TEXT: hear(calls, event); break;
    case EVENT_TOOL_CALL:
        buf_clear(&calls->reply);
        lost_calls_add(calls, event);
        break;
    case EVENT_APPROVAL: buf_clear(&calls->reply); break;
    case EVENT_TOOL_RESULT: lost_calls_close_call(calls, event); break;
    default: break;
    }
}

bool lost_calls_read(struct lost_calls *calls, struct str events) {
    struct event event = {0};
    struct err e;
    while (events.len) {
        if (!event_decode(&events, &event, &e)) return false;
        calls->read++;
        lost_calls_take(calls, &event);
    }
    return true;
}

bool lost_calls_acted(const struct lost_calls *calls) {
    for (size_t i = 0; i < calls->count; i++) {
        if (!calls->calls[i].idempotent && !calls->calls[i].held) return true;
    }
    return false;
}

/* --- recording ---------------------------------------------------------------------------- */

const struct lost_cause lost_by_stop = {
    .code = ERR_ABORTED,
    .reason = STR_INIT("INTERRUPTED"),
    .unmade = STR_INIT("the server stopped first"),
    .out = STR_INIT("the server stopped while this call was out"),
    .acted = STR_INIT("the server stopped while this turn was running"),
    .harmless = STR_INIT("the server stopped while this turn was running; ask again")};

const struct lost_cause lost_by_store = {
    .code = ERR_UNAVAILABLE,
    .reason = STR_INIT("STORE_UNAVAILABLE"),
    .unmade = STR_INIT("the store failed first"),
    .out = STR_INIT("the store failed while this call was out"),
    .acted = STR_INIT("the rest of this turn could not be stored"),
    .harmless = STR_INIT("the rest of this turn could not be stored; ask again")};

static bool lost_calls_append_result(const struct lost_call *call, enum effect effect,
                                     const struct lost_cause *cause, struct buf *out) {
    char room[EFFECT_MAX_BYTES];
    struct buf result = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    struct err why;
    effect_write(effect, effect == EFFECT_NONE ? cause->unmade : cause->out, &result, &why);
    struct event event = {
        .kind = EVENT_TOOL_RESULT,
        .agent = text_str(call->agent),
        .tool_result = {text_str(call->call_id), buf_str(&result), true, err_text(&why)}};
    return event_encode(&event, out);
}

static bool close_calls(const struct lost_calls *calls, const struct lost_cause *cause,
                        struct buf *out, size_t *ret_unknown) {
    for (size_t i = 0; i < calls->count; i++) {
        const struct lost_call *call = &calls->calls[i];
        if (call->answered) continue;
        enum effect effect = call->held         ? EFFECT_NONE
                             : call->idempotent ? EFFECT_HARMLESS
                                                : EFFECT_UNKNOWN;
        if (!lost_calls_append_result(call, effect, cause, out)) return false;
        *ret_unknown += effect == EFFECT_UNKNOWN;
    }
    return true;
}

bool lost_calls_end(const struct lost_calls *calls, bool whole, const struct lost_cause *cause,
                    struct buf *out, size_t *ret_unknown) {
    bool acted = !whole || lost_calls_acted(calls);
    struct event event = {.kind = EVENT_FAILED,
                          .agent = calls->reply.len ? buf_str(&calls->speaker) : STR_EMPTY,
                          .failed = {.code = cause->code,
                                     .reason = cause->reason,
                                     .message = acted ? cause->acted : cause->harmless,
                                     .acted = acted,
                                     .said = buf_str(&calls->reply)}};
    *ret_unknown = 0;
    return close_calls(calls, cause, out, ret_unknown) && event_encode(&event, out);
}
