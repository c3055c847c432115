#include "contract/nimi/job/jobs.h"

#include "base/mem.h"
#include "contract/nimi/job/run_open.h"
#include "contract/nimi/job/submit.h"
#include "contract/nimi/job/workflow_work.h"
#include "wire/digest.h"

#include <stdlib.h>

#define REQUEST_MAX_BYTES (16 * MIB)
#define KEY_HEAD "nimi-workflow-submit:" /* keeps its keys apart from other contracts' */

/* One SubmitWorkflow. */
struct workflow_submit {
    struct submit submit;
    struct str type;
    uint8_t print[DIGEST_BYTES];
    struct workflow_work *work; /* begun, but not on disk yet */
    struct run_open open;       /* reads its id for the reply */
    struct workflow_fold fold;
};

static struct workflow_submit *workflow_of(struct submit *submit) {
    return CONTAINER_OF(submit, struct workflow_submit, submit);
}

/* --- the reply ---------------------------------------------------------------------------- */

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

static void workflows_submit_on_open(struct run_open *open) {
    reply_accepted(open->call, open->fold->id);
}

static void on_missing(struct run_open *open) {
    submit_missing(&CONTAINER_OF(open, struct workflow_submit, open)->submit);
}

static void workflow_show(struct submit *submit, uint64_t run) {
    workflow_of(submit)->open.run = run;
    run_open_start(&workflow_of(submit)->open, (struct str){0});
}

/* --- beginning ---------------------------------------------------------------------------- */

static void workflows_submit_on_kept(uint64_t run, void *ctx) {
    struct submit *submit = ctx;
    workflow_of(submit)->work = NULL;
    submit_kept(submit, run);
}

static void workflow_begin(struct submit *submit, uint64_t key_mark) {
    struct nimi_call *call = submit->call;
    const struct workflow_begin begin = {.instance = call->instance,
                                         .request = buf_str(&submit->request),
                                         .app = submit->app,
                                         .user = submit->user,
                                         .type = workflow_of(submit)->type,
                                         .trace = nimi_trace(call),
                                         .caller = call->caller_trace,
                                         .owner = nimi_owner(call),
                                         .key = submit->key,
                                         .print = submit->print,
                                         .key_mark = key_mark,
                                         .on_kept = workflows_submit_on_kept,
                                         .ctx = submit};
    struct err e;
    if (workflow_work_begin(&begin, &workflow_of(submit)->work, &e)) return;
    if (e.code == ERR_ALREADY_EXISTS) {
        submit_start(submit);
    } else {
        submit_refuse(submit, NIMI_AI_PROVIDER_UNAVAILABLE, e.code, e.text);
    }
}

static const struct submit_kind kind = {"workflow", NIMI_PROTOCOL_ENVELOPE_INVALID,
                                        ERR_INVALID_ARGUMENT, workflow_begin, workflow_show};

/* --- the call ----------------------------------------------------------------------------- */

static void workflows_submit_on_closed(void *ctx) {
    struct workflow_submit *workflow = ctx;
    if (workflow->work) workflow_work_forget(workflow->work);
    run_open_done(&workflow->open);
    submit_done(&workflow->submit);
    free(workflow);
}

static const struct nimi_work events = {.closed = workflows_submit_on_closed};

static bool id_is_short(struct str id) {
    return id.len <= SUBMIT_ID_MAX_BYTES;
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
                         "app_id and subject_user_id have at most %d bytes",
                         SUBMIT_ID_MAX_BYTES);
    struct arena *arena = arena_new(64 * MIB);
    bool right = workflow_graph_read(from->definition, arena, &graph, fault);
    arena_free(arena);
    return right;
}

static bool app_is_the_same(const struct nimi_call *call, struct str app) {
    return !call->envelope.app_id.len || str_equal(call->envelope.app_id, app);
}

static void read_key(struct workflow_submit *workflow) {
    struct submit *submit = &workflow->submit;
    struct str key = submit->call->envelope.idempotency_key;
    struct buf spelled;
    if (key.len == 0) return;
    digest_text(buf_str(&submit->request), workflow->print);
    buf_init(&spelled, sizeof(KEY_HEAD) + key.len);
    buf_printf(&spelled, KEY_HEAD STR_FMT, STR_ARG(key));
    submit->key = nimi_keep(submit->call, buf_str(&spelled));
    submit->print = str_of(workflow->print, sizeof(workflow->print));
    buf_done(&spelled);
}

static void workflow_start(struct nimi_call *call,
                           const struct nimi_submit_workflow_request *from) {
    struct workflow_submit *workflow = MEM_NEW(struct workflow_submit);
    struct submit *submit = &workflow->submit;
    workflow->open = (struct run_open){.call = call,
                                       .kind = &workflow_fold_kind,
                                       .fold = &workflow->fold.run,
                                       .on_open = workflows_submit_on_open,
                                       .on_missing = on_missing};
    submit_init(submit, &kind, call, REQUEST_MAX_BYTES);
    nimi_work(call, &events, workflow);
    if (!pb_encode(&nimi_submit_workflow_request_table, from, &submit->request)) {
        submit_refuse(submit, NIMI_PROTOCOL_ENVELOPE_INVALID, ERR_INVALID_ARGUMENT,
                      "the request is too large");
        return;
    }
    submit->app = nimi_keep(call, from->app_id);
    submit->user = nimi_keep(call, from->subject_user_id.len ? from->subject_user_id
                                                             : STR(WORKFLOW_ANONYMOUS));
    workflow->type = nimi_keep(call, from->definition->workflow_type);
    read_key(workflow);
    submit_start(submit);
}

void workflows_submit(struct nimi_call *call, const void *request) {
    const struct nimi_submit_workflow_request *from = request;
    struct fault fault;
    if (!app_is_the_same(call, from->app_id)) {
        nimi_refuse_for(call, NIMI_PROTOCOL_DOMAIN_FIELD_CONFLICT,
                        "app_id of the request and x-nimi-app-id are not the same");
    } else if (check(from, &fault)) {
        workflow_start(call, from);
    } else {
        reply_not_accepted(call, &fault);
    }
}
