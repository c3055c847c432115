#include "contract/a2a/door.h"

#include "base/mem.h"

#include <stdlib.h>

/* --- who calls ---------------------------------------------------------------------------- */

/* Callers on this machine, where no token is required, see everything. */
bool a2a_may_see(const struct a2a_call *call, struct str workspace, struct str user) {
    const struct contract_identity *identity = &call->caller.identity;
    if (!call->caller.proved) return true;
    return str_equal(identity->workspace, workspace) &&
           (!identity->user.len || str_equal(identity->user, user));
}

/* --- its life ----------------------------------------------------------------------------- */

static void a2a_begin(struct http_turn *http, uint64_t mark);

static void a2a_join_run(struct http_turn *http, uint64_t run, uint64_t seq) {
    a2a_join(CONTAINER_OF(http, struct a2a_call, http), run, seq);
}

static void refuse_key(struct http_turn *http) {
    a2a_fail(CONTAINER_OF(http, struct a2a_call, http), A2A_ERROR_INVALID_PARAMS,
             STR("this idempotency key was used for another message; send a new key, or the "
                 "same message as then"));
}

static void a2a_started(struct http_turn *http, uint64_t run) {
    a2a_add_webhook(CONTAINER_OF(http, struct a2a_call, http), run);
}

static const struct http_turn_kind kind = {.begin = a2a_begin,
                                           .started = a2a_started,
                                           .join = a2a_join_run,
                                           .refuse_key = refuse_key,
                                           .refuse = a2a_refuse,
                                           .free = a2a_call_free};

void a2a_call_free(struct http_turn *http) {
    struct a2a_call *call = CONTAINER_OF(http, struct a2a_call, http);
    http_turn_done(http);
    late_stop(&call->late);
    run_scan_cancel(call->scan);
    run_summary_done(&call->summary);
    a2a_list_free(call->list);
    kept_forget(call->keeping);
    shared_webhooks_forget(call->putting);
    webhook_claim_forget(call->claiming);
    a2a_task_done(&call->task);
    text_done(&call->agent);
    text_done(&call->id);
    free(call);
}

struct a2a_call *a2a_call_new(struct route_call *route, struct a2a_instance *instance,
                              enum a2a_binding binding) {
    struct a2a_call *call = MEM_NEW(struct a2a_call);
    if (!guest_enter(route, &instance->guest, &call->caller)) {
        free(call);
        return NULL;
    }
    http_turn_init(&call->http, &kind, &instance->guest.site, route, CLOSE_SINGLE,
                   &a2a_task_wire);
    call->http.workspace = guest_workspace(&instance->guest, &call->caller);
    call->http.user = guest_user(&call->caller);
    call->instance = instance;
    call->binding = binding;
    call->dialect = A2A_1_0;
    late_begin(&call->late);
    run_summary_init(&call->summary, 0);
    a2a_task_init(&call->task, 0);
    return call;
}

bool a2a_take_agent(struct a2a_call *call) {
    struct buf slug;
    buf_init(&slug, KIB);
    bool named = lent_read(route_parameter(call->http.call, STR("agent"))).len > 0;
    bool known =
        !named || (route_parameter_text(call->http.call, STR("agent"), &slug) &&
                   engine_agent(call->instance->guest.site.host->engine, buf_str(&slug)));
    call->agent = text_copy(buf_str(&slug));
    buf_done(&slug);
    if (!known)
        a2a_fail(call, A2A_ERROR_METHOD_NOT_FOUND,
                 STR("there is no agent of this name; /.well-known/agent-card.json lists them "
                     "as skills"));
    return known;
}

/* --- what it asks ------------------------------------------------------------------------- */

void a2a_call_enter(struct a2a_call *call) {
    struct err e;
    bool sends = call->operation == A2A_SEND || call->operation == A2A_STREAM;
    bool streams = call->operation == A2A_STREAM || call->operation == A2A_SUBSCRIBE;
    if (streams) {
        call->http.mode = CLOSE_DONE;
        call->http.wire = &a2a_stream_wire;
    }
    if (sends && !(http_turn_read_headers(&call->http, &e) && a2a_take_print(call, &e))) {
        http_turn_give_up(&call->http, &e);
        return;
    }
    http_turn_enter(&call->http);
}

static void a2a_begin(struct http_turn *http, uint64_t mark) {
    struct a2a_call *call = CONTAINER_OF(http, struct a2a_call, http);
    switch (call->operation) {
    case A2A_SEND:
    case A2A_STREAM: a2a_send(call, mark); break;
    case A2A_GET: a2a_look_up(call, call->request.task, a2a_reply_task); break;
    case A2A_CANCEL: a2a_look_up(call, call->request.task, a2a_cancel); break;
    case A2A_SUBSCRIBE: a2a_look_up(call, call->request.task, a2a_subscribe); break;
    case A2A_LIST: a2a_list(call); break;
    case A2A_CARD: a2a_card(call); break;
    case A2A_WEBHOOK_PUT:
    case A2A_WEBHOOK_GET:
    case A2A_WEBHOOK_LIST:
    case A2A_WEBHOOK_DELETE: a2a_webhooks(call); break;
    }
}
