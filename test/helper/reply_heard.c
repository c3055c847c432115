#include "helper/reply_heard.h"

#include "wire/json.h"

#include <assert.h>

static const char *const usual[REPLY_KIND_COUNT] = {
    [REPLY_TEXT] = "text($t) ",
    [REPLY_THINKING] = "thinking($t) ",
    [REPLY_TOOL_CALL] = "call($i,$n,$a) ",
    [REPLY_USAGE] = "usage($n) ",
    [REPLY_OPAQUE] = "opaque($t) ",
    [REPLY_NOTE] = "note($t) ",
    [REPLY_APPROVAL] = "approval($t) ",
    [REPLY_ARTIFACT] = "artifact($y $l) ",
    [REPLY_VECTOR] = "vector($v $w $x) ",
    [REPLY_OWN_CALL] = "own($i,$n,$a) ",
    [REPLY_OWN_RESULT] = "owned($i,$t,$n) ",
    [REPLY_DONE] = "done($n) ",
    [REPLY_FAILED] = "failed($n) ",
};

static void put_field(struct buf *out, char field, const struct reply_event *event) {
    const struct event_usage *usage = event->usage;
    switch (field) {
    case 't': buf_append(out, event->text); break;
    case 'q': json_put_str(out, event->text); break;
    case 'i': buf_append(out, event->call_id); break;
    case 'a': buf_append(out, event->args); break;
    case 'n': buf_append(out, event->kind == REPLY_USAGE ? usage->model : event->name); break;
    case 'e': buf_append(out, err_name(event->code)); break;
    case 'p': buf_append_i64(out, usage->prompt); break;
    case 'c': buf_append_i64(out, usage->completion); break;
    case 's': buf_append_i64(out, usage->total); break;
    case 'u': buf_append_i64(out, usage->tool_use); break;
    case 'h': buf_append_i64(out, usage->thoughts); break;
    case 'k': buf_append_i64(out, usage->cached); break;
    case 'y': buf_append(out, event->artifact->content_type); break;
    case 'l': buf_append_u64(out, event->artifact->bytes.len); break;
    case 'v': buf_append_u64(out, event->vector->input); break;
    case 'w': buf_append_u64(out, event->vector->count); break;
    case 'x': buf_printf(out, "%g", event->vector->values[0]); break;
    default: assert(false);
    }
}

void reply_heard(struct buf *out, const char *const forms[REPLY_KIND_COUNT],
                 const struct reply_event *event) {
    const char *form = forms ? forms[event->kind] : NULL;
    if (!form) form = usual[event->kind];
    assert(form);
    for (; *form; form++) {
        if (*form == '$') {
            put_field(out, *++form, event);
        } else {
            buf_append_byte(out, *form);
        }
    }
}

void reply_then(enum reply_then then, const struct provider *asked,
                struct provider_call **call) {
    const struct provider_kind *kind = asked->kind;
    if (then == CANCEL) kind->cancel(*call);
    if (then == CANCEL) *call = NULL;
    if (then == FINISH) kind->finish(*call);
    if (then == PAUSE || then == PAUSE_AND_RESUME) kind->pause(*call);
    if (then == PAUSE_AND_RESUME) kind->resume(*call);
}
