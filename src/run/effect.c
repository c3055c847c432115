#include "run/effect.h"

#include "base/mem.h"
#include "run/inner.h"
#include "wire/json.h"

#include <stdlib.h>

#define WHAT_CAME                                                                              \
    "the server stopped while this call was out: it may or may not have had its effect. "      \
    "Find out before you call it again"

#define RESULT "{\"effect\":\"unknown\",\"error\":\"" WHAT_CAME "\"}"

void effect_calls_init(struct effect_calls *calls) {
    *calls = (struct effect_calls){0};
}

static struct str copy(struct str text) {
    char *at = mem_alloc(text.len + 1);
    if (text.len) memcpy(at, text.at, text.len);
    return str_of(at, text.len);
}

static void drop(struct effect_call *call) {
    free((char *)(uintptr_t)call->call_id.at);
    free((char *)(uintptr_t)call->tool.at);
    free((char *)(uintptr_t)call->agent.at);
}

void effect_calls_done(struct effect_calls *calls) {
    for (size_t i = 0; i < calls->count; i++) drop(&calls->calls[i]);
    free(calls->calls);
}

/* --- reading ------------------------------------------------------------------------------ */

static void add(struct effect_calls *calls, const struct event *event) {
    if (calls->count == calls->room) {
        calls->room = calls->room ? calls->room * 2 : 8;
        calls->calls = mem_resize(calls->calls, calls->room * sizeof(struct effect_call));
    }
    calls->calls[calls->count++] =
        (struct effect_call){.call_id = copy(event->tool_call.call_id),
                             .tool = copy(event->tool_call.tool),
                             .agent = copy(event->agent),
                             .held = event->tool_call.held};
}

static struct effect_call *find(struct effect_calls *calls, struct str call_id) {
    for (size_t i = calls->count; i-- > 0;) {
        if (str_equal(calls->calls[i].call_id, call_id)) return &calls->calls[i];
    }
    return NULL;
}

/* A human's word: a call that he allowed is made from then on. */
static void decide(struct effect_calls *calls, const struct event *event) {
    struct str id = str_skip(event->tool_result.call_id, strlen(APPROVAL_ID));
    struct effect_call *call = find(calls, id);
    struct json answer;
    struct err e;
    if (!call || !json_read(event->tool_result.result, &answer, &e)) return;
    if (!json_is(json_find(answer, STR("decision")), STR("refuse"))) call->held = false;
}

static void close_call(struct effect_calls *calls, const struct event *event) {
    struct effect_call *call = find(calls, event->tool_result.call_id);
    if (call) {
        call->closed = true;
    } else if (str_starts(event->tool_result.call_id, STR(APPROVAL_ID))) {
        decide(calls, event);
    }
}

/* Nobody was transferred who was not; that call has no effect outside. */
static bool may_have_effect(const struct effect_call *call) {
    return !call->closed && !call->held && !str_equal(call->tool, STR(TRANSFER_TOOL));
}

bool effect_calls_read(struct effect_calls *calls, struct str events) {
    struct event event = {0};
    struct err e;
    while (events.len) {
        if (!event_decode(&events, &event, &e)) return false;
        if (event.kind == EVENT_TOOL_CALL) add(calls, &event);
        if (event.kind == EVENT_TOOL_RESULT) close_call(calls, &event);
    }
    return true;
}

void effect_calls_settle(struct effect_calls *calls) {
    size_t kept = 0;
    for (size_t i = 0; i < calls->count; i++) {
        if (may_have_effect(&calls->calls[i])) {
            calls->calls[kept++] = calls->calls[i];
        } else {
            drop(&calls->calls[i]);
        }
    }
    calls->count = kept;
}

/* --- saying so ---------------------------------------------------------------------------- */

bool effect_append_unknown(const struct effect_call *call, struct buf *out) {
    struct event event = {
        .kind = EVENT_TOOL_RESULT,
        .agent = call->agent,
        .tool_result = {call->call_id, STR_INIT(RESULT), true, STR_INIT(WHAT_CAME)}};
    return event_encode(&event, out);
}

bool effect_is_unknown(struct str result) {
    return str_equal(result, STR(RESULT));
}
