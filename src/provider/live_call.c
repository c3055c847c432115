/* One question to a live model, and its answer. */
#include "base/mem.h"
#include "provider/live_inner.h"

#include <assert.h>
#include <stdlib.h>

/* --- what its caller hears ---------------------------------------------------------------- */

void live_call_report(struct live *live, const struct reply_event *event) {
    struct provider_call *call = live->call;
    if (!call) return;
    bool ends = reply_event_ends(event);
    if (ends) live->call = NULL;
    live->inside++;
    call->on_reply(event, call->ctx);
    live->inside--;
    if (ends) free(call);
}

void live_call_fail(struct live *live, struct reply_failure *failure) {
    if (!live->call) return;
    const struct failure_reader reader = {live->call->request->run,
                                          live->call->request->by_operator};
    failure_word(live_remote(live->model), reader, failure);
    const struct reply_event failed =
        reply_event_failed(&failure->why, str_from(failure->reason));
    live_call_report(live, &failed);
}

static void report_failed(struct live *live, const struct live_event *event) {
    struct reply_failure failure = {.cut = false};
    if (event->status == LIVE_STATUS_FILTERED) {
        failure.reason = MODEL_REFUSED;
        err_set(&failure.why, ERR_PERMISSION_DENIED, "its content filter ended the answer");
    } else {
        reply_failure_of(live_remote(live->model)->options.dialect->title, 0, event->error,
                         &failure);
    }
    live_call_fail(live, &failure);
}

void live_call_done(struct live *live, const struct live_event *event) {
    struct event_usage usage = event->usage;
    struct str model = text_str(live->name);
    usage.model = model;
    if (!live->call) return;
    if (event->text.len && !live->call->spoke && !live->call->interrupted)
        live_call_report(live, &(struct reply_event){REPLY_TEXT, .text = event->text});
    live_call_report(live, &(struct reply_event){REPLY_USAGE, .usage = &usage});
    if (event->status == LIVE_STATUS_CUT)
        live_call_report(live,
                         &(struct reply_event){REPLY_NOTE, .text = STR(PROVIDER_CUT_NOTE)});
    if (event->status == LIVE_STATUS_FAILED || event->status == LIVE_STATUS_FILTERED)
        report_failed(live, event);
    else
        live_call_report(live, &(struct reply_event){REPLY_DONE, .model = model});
}

/* --- asking ------------------------------------------------------------------------------- */

static bool send_messages(struct live *live, const struct message *messages, size_t count) {
    char id[40];
    for (size_t i = 0; i < count; i++) {
        enum message_role role = messages[i].role;
        if (role != MESSAGE_USER && role != MESSAGE_AGENT && role != MESSAGE_SYSTEM) continue;
        live_ask_message(&live->out, &messages[i], live->session.beta,
                         live_event_id(live, "message", id));
        if (!live_send(live)) return false;
    }
    return true;
}

static bool send_sound(struct live *live, struct str sound) {
    while (sound.len) {
        struct str piece = str_head(sound, LIVE_PIECE_BYTES);
        live_ask_sound(&live->out, piece);
        if (!live_send(live)) return false;
        live->heard_bytes += piece.len;
        sound = str_skip(sound, piece.len);
    }
    return true;
}

static bool send_commit(struct live *live) {
    char id[40];
    live->heard_bytes = 0;
    live_ask_commit(&live->out, live_event_id(live, "commit", id));
    return live_send(live);
}

/* All of it is sent at once, so that nothing of another turn comes between. */
static bool send_question(struct live *live, const struct provider_request *request) {
    const struct live_more more = live->more;
    char id[40];
    live->turn++;
    live->more = (struct live_more){.commit = false};
    if (!send_messages(live, more.past, more.past_count) ||
        !send_messages(live, request->messages, request->message_count) ||
        !send_sound(live, more.sound) || (more.commit && !send_commit(live)))
        return false;
    live_ask_response(&live->out, live_event_id(live, "create", id));
    return live_send(live);
}

void live_call_go_on(struct live *live) {
    struct provider_call *call = live->call;
    if (!call || call->sent || live->state != LIVE_READY) return;
    call->sent = true;
    live_move(live, LIVE_ASKED);
    (void)send_question(live, call->request);
}

/* --- the kind of provider ----------------------------------------------------------------- */

static struct provider_call *live_start(struct provider *provider, struct loop *loop,
                                        const struct provider_request *request,
                                        reply_event_fn *on_reply, void *ctx) {
    struct live *live = CONTAINER_OF(provider, struct live, base);
    struct provider_call *call = MEM_NEW(struct provider_call);
    assert(!live->call && loop == live->loop);
    *call = (struct provider_call){
        .live = live, .request = request, .on_reply = on_reply, .ctx = ctx};
    live->call = call;
    live->held = false;
    loop_defer(loop, &live->go_on);
    return call;
}

static void live_pause(struct provider_call *call) {
    call->live->held = true;
    if (call->live->socket) websocket_call_pause(call->live->socket);
}

static void live_resume(struct provider_call *call) {
    call->live->held = false;
    loop_defer(call->live->loop, &call->live->go_on);
}

/* A call that never got its turn found a connection that does not answer: it is left, so that the
 * next one gets another. */
static void live_cancel(struct provider_call *call) {
    struct live *live = call->live;
    struct reply_failure failure = {.reason = PROVIDER_TIMEOUT};
    bool sent = call->sent;
    live->more = (struct live_more){.commit = false};
    live->call = NULL;
    live->held = false;
    free(call);
    live->inside++;
    if (sent && live->state == LIVE_ANSWERING) live_stop_answer(live);
    if (!sent && live->state != LIVE_OVER && live->state != LIVE_READY) {
        err_set(&failure.why, ERR_DEADLINE_EXCEEDED, "it did not get ready for a question");
        live_end(live, &failure);
    } else if (live->state != LIVE_OVER) {
        loop_defer(live->loop, &live->go_on);
    }
    live->inside--;
    live_release(live);
}

static void live_kind_free(struct provider *provider) {
    live_free(CONTAINER_OF(provider, struct live, base));
}

const struct provider_kind live_kind = {.name = "live",
                                        .start = live_start,
                                        .pause = live_pause,
                                        .resume = live_resume,
                                        .cancel = live_cancel,
                                        .free = live_kind_free};
