#include "contract/nimi/job/workflows.h"

#include "base/mem.h"
#include "contract/nimi/job/workflow_open.h"
#include "contract/nimi/job/workflow_work.h"
#include "session/idempotency_lookup.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>

#define REQUEST_MAX_BYTES (16 * MIB)
#define ID_MAX_BYTES 1024
#define KEY_HEAD "nimi-workflow-submit:" /* keeps its keys apart from other contracts' */
#define AGAIN_MS 5                       /* while another call's workflow is being written */
#define AGAIN_MAX 1000

/* One SubmitWorkflow. */
struct submit {
    struct nimi_call *call;
    struct buf request; /* encoded */
    struct str app, user, type, key;
    uint8_t print[SHA256_DIGEST_SIZE];
    struct idempotency_lookup *lookup;
    struct timer again; /* for the next look-up */
    unsigned agains;
    struct workflow_work *work; /* begun, but not on disk yet */
    struct workflow_open open;  /* reads its id for the reply */
};

static void submit_look(void *ctx);

/* --- the reply ---------------------------------------------------------------------------- */

static void submit_refuse(struct submit *submit, int reason, enum err_code code,
                          const char *why) {
    struct fault fault;
    fault_set_code(&fault, reason, code, "%s", why);
    nimi_refuse(submit->call, &fault);
}

/* What is wrong with a definition is a reply. Its sentence is in a trailer of ours. */
static void reply_not_accepted(struct nimi_call *call, const struct fault *fault) {
    rpc_trailer(call->rpc, STR("x-nimi-reason-detail"),
                rpc_keep(call->rpc, err_text(&fault->why)));
    nimi_reply(call, &nimi_submit_workflow_response_table,
               &(struct nimi_submit_workflow_response){.reason_code = fault->reason});
}

static void reply_accepted(struct nimi_call *call, struct str task) {
    nimi_reply(call, &nimi_submit_workflow_response_table,
               &(struct nimi_submit_workflow_response){
                   .task_id = task, .accepted = true, .reason_code = NIMI_ACTION_EXECUTED});
}

static void on_open(struct workflow_open *open, const struct workflow_fold *found) {
    struct submit *submit = CONTAINER_OF(open, struct submit, open);
    if (found) {
        reply_accepted(open->call, found->task);
    } else if (submit->key.len == 0 || ++submit->agains > AGAIN_MAX) {
        submit_refuse(submit, NIMI_AI_PROVIDER_UNAVAILABLE, ERR_UNAVAILABLE,
                      "the workflow was taken, but cannot be read now; ask again later");
    } else {
        workflow_open_done(open);
        timer_start(&submit->again, AGAIN_MS);
    }
}

static void submit_show(struct submit *submit, uint64_t run) {
    workflow_open_start(&submit->open, (struct str){0}, run);
}

static void on_kept(uint64_t run, void *ctx) {
    struct submit *submit = ctx;
    submit->work = NULL;
    if (submit->call->over) return;
    if (run) {
        submit_show(submit, run);
    } else {
        submit_refuse(submit, NIMI_AI_PROVIDER_UNAVAILABLE, ERR_UNAVAILABLE,
                      "the workflow could not be stored, and was not begun; ask again later");
    }
}

/* --- beginning ---------------------------------------------------------------------------- */

static struct str print_of(const struct submit *submit) {
    return submit->key.len ? str_of(submit->print, sizeof(submit->print)) : STR_EMPTY;
}

static void submit_begin(struct submit *submit, uint64_t key_mark) {
    struct nimi_call *call = submit->call;
    const struct workflow_begin begin = {.instance = call->instance,
                                         .request = buf_str(&submit->request),
                                         .app = submit->app,
                                         .user = submit->user,
                                         .type = submit->type,
                                         .trace = nimi_trace(call),
                                         .owner = nimi_owner(call),
                                         .key = submit->key,
                                         .print = print_of(submit),
                                         .key_mark = key_mark,
                                         .on_kept = on_kept,
                                         .ctx = submit};
    struct err e;
    if (workflow_work_begin(&begin, &submit->work, &e)) return;
    if (e.code == ERR_ALREADY_EXISTS) {
        submit_look(submit);
    } else {
        submit_refuse(submit, NIMI_AI_PROVIDER_UNAVAILABLE, e.code, e.text);
    }
}

static void on_known(const struct idempotency_lookup_result *result, const struct err *failed,
                     void *ctx) {
    struct submit *submit = ctx;
    (void)failed;
    submit->lookup = NULL;
    if (submit->call->over) return;
    switch (result->answer) {
    case IDEMPOTENCY_FREE: submit_begin(submit, result->mark); break;
    case IDEMPOTENCY_RUN: submit_show(submit, result->run); break;
    case IDEMPOTENCY_OTHER:
        submit_refuse(submit, NIMI_PROTOCOL_ENVELOPE_INVALID, ERR_INVALID_ARGUMENT,
                      "the idempotency key was used for another request; send a new key");
        break;
    case IDEMPOTENCY_FAILED:
        submit_refuse(submit, NIMI_AI_PROVIDER_UNAVAILABLE, ERR_UNAVAILABLE,
                      "it is unknown now whether this was asked before; ask again later");
        break;
    }
}

static void submit_look(void *ctx) {
    struct submit *submit = ctx;
    const struct nimi_instance *instance = submit->call->instance;
    if (submit->call->over) return;
    submit->lookup = idempotency_lookup_start(
        &(struct idempotency_lookup_options){.loop = submit->call->loop,
                                             .sessions = instance->host->engine->sessions,
                                             .name = {submit->app, submit->user, submit->key},
                                             .print = print_of(submit),
                                             .kept_ms = instance->settings->keys_kept_ms,
                                             .on_answer = on_known,
                                             .ctx = submit});
}

/* --- the call ----------------------------------------------------------------------------- */

static void on_closed(void *ctx) {
    struct submit *submit = ctx;
    if (submit->work) workflow_work_forget(submit->work);
    idempotency_lookup_cancel(submit->lookup);
    timer_stop(&submit->again);
    workflow_open_done(&submit->open);
    buf_done(&submit->request);
    free(submit);
}

static const struct nimi_work events = {.closed = on_closed};

static bool id_is_short(struct str id) {
    return id.len <= ID_MAX_BYTES;
}

/* The caller and the definition. */
static bool check(const struct nimi_submit_workflow_request *from, struct fault *fault) {
    struct workflow_graph graph;
    if (str_trim(from->app_id).len == 0 || !from->definition || from->timeout_ms < 0)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "a workflow needs an app_id and a definition, and a timeout_ms is not "
                         "negative");
    if (!id_is_short(from->app_id) || !id_is_short(from->subject_user_id))
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "app_id and subject_user_id have at most %d bytes", ID_MAX_BYTES);
    struct arena *arena = arena_new(64 * MIB);
    bool right = workflow_graph_read(from->definition, arena, &graph, fault);
    arena_free(arena);
    return right;
}

static bool app_is_the_same(const struct nimi_call *call, struct str app) {
    return !call->envelope.app_id.len || str_equal(call->envelope.app_id, app);
}

static bool keep_request(struct submit *submit,
                         const struct nimi_submit_workflow_request *from) {
    struct nimi_call *call = submit->call;
    struct str key = call->envelope.idempotency_key;
    struct sha256_ctx hash;
    struct buf spelled;
    if (!pb_encode(&nimi_submit_workflow_request_table, from, &submit->request)) return false;
    sha256_init(&hash);
    sha256_update(&hash, submit->request.len, (const uint8_t *)submit->request.at);
    sha256_digest(&hash, sizeof(submit->print), submit->print);
    submit->app = nimi_keep(call, from->app_id);
    submit->user = nimi_keep(call, from->subject_user_id.len ? from->subject_user_id
                                                             : STR(WORKFLOW_ANONYMOUS));
    submit->type = nimi_keep(call, from->definition->workflow_type);
    buf_init(&spelled, sizeof(KEY_HEAD) + key.len);
    buf_printf(&spelled, KEY_HEAD STR_FMT, STR_ARG(key));
    submit->key = key.len ? nimi_keep(call, buf_str(&spelled)) : STR_EMPTY;
    buf_done(&spelled);
    return true;
}

static void submit_start(struct nimi_call *call,
                         const struct nimi_submit_workflow_request *from) {
    struct submit *submit = MEM_NEW(struct submit);
    submit->call = call;
    submit->open = (struct workflow_open){.call = call, .on_open = on_open};
    buf_init(&submit->request, REQUEST_MAX_BYTES);
    timer_init(&submit->again, call->loop, submit_look, submit);
    nimi_work(call, &events, submit);
    if (!keep_request(submit, from)) {
        submit_refuse(submit, NIMI_PROTOCOL_ENVELOPE_INVALID, ERR_INVALID_ARGUMENT,
                      "the request is too large");
    } else if (submit->key.len) {
        submit_look(submit);
    } else {
        submit_begin(submit, 0);
    }
}

void workflows_submit(struct nimi_call *call, const void *request, struct arena *arena) {
    const struct nimi_submit_workflow_request *from = request;
    struct fault fault;
    (void)arena;
    if (!app_is_the_same(call, from->app_id)) {
        fault_set(&fault, NIMI_PROTOCOL_DOMAIN_FIELD_CONFLICT,
                  "app_id of the request and x-nimi-app-id are not the same");
        nimi_refuse(call, &fault);
    } else if (check(from, &fault)) {
        submit_start(call, from);
    } else {
        reply_not_accepted(call, &fault);
    }
}
