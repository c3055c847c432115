#include "contract/nimi/scenario/scenario.h"

#include "base/mem.h"
#include "contract/nimi/scenario/work.h"

#include <assert.h>
#include <stdlib.h>

/* Types served by a stream or a unary call; the others are jobs. */
static const struct scenario_kind *const kinds[] = {
    [NIMI_SCENARIO_TYPE_TEXT_GENERATE] = &scenario_text,
    [NIMI_SCENARIO_TYPE_TEXT_EMBED] = &scenario_embedding,
    [NIMI_SCENARIO_TYPE_SPEECH_SYNTHESIZE] = &scenario_speech,
};

/* --- the slot ----------------------------------------------------------------------------- */

void work_release_slot(struct work *work) {
    scheduler_release(work->ticket);
    work->ticket = NULL;
}

/* --- ending ------------------------------------------------------------------------------- */

/* Stop and release everything that could still call back. */
static void stop_work(struct work *work, struct str why) {
    timer_stop(&work->wait);
    attach_cancel(work->attach);
    work->attach = NULL;
    if (work->kind) work->kind->stop(work, why);
    work_release_slot(work);
}

void work_reply(struct work *work, const struct nimi_scenario_output *output,
                struct str model) {
    nimi_reply(
        work->call, &nimi_execute_scenario_response_table,
        &(struct nimi_execute_scenario_response){.output = output,
                                                 .finish_reason = work->projection.finish,
                                                 .usage = &work->projection.usage,
                                                 .route_decision = work->projection.route,
                                                 .model_resolved = model,
                                                 .trace_id = nimi_trace(work->call)});
}

static void end_status(struct work *work, enum err_code code, const struct event *last) {
    struct fault fault;
    if (last) {
        projection_fault(last, &fault);
        nimi_refuse(work->call, &fault);
    } else if (code == ERR_CANCELLED) {
        nimi_end(work->call, code, NIMI_STOPPING_TEXT);
    } else {
        nimi_end(work->call, code, STR("the caller did not read in time"));
    }
}

static bool is_unary(const struct work *work) {
    return work->call->row->kind == RPC_UNARY;
}

static void scenario_on_ended(struct close_ending ending, enum close_cause cause,
                              const struct event *last, void *ctx) {
    struct work *work = ctx;
    if (!work->call->over) {
        if (work->granted) nimi_waited(work->call, work->waited_ms);
        if (ending.status != ERR_NONE) {
            end_status(work, ending.status, last);
        } else if (is_unary(work)) {
            struct str model = last->done.model;
            work->kind->reply(work, model.len ? model : work->projection.model);
        } else {
            nimi_end(work->call, ERR_NONE, STR_EMPTY);
        }
    }
    stop_work(work,
              cause == CAUSE_LEFT ? STR("the caller left") : STR("the call was cut short"));
}

/* --- the wire ----------------------------------------------------------------------------- */

static void scenario_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct work *work = ctx;
    (void)frame; /* the event itself says whether it is the last */
    if (!is_unary(work)) {
        projection_send(&work->projection, event);
        return;
    }
    projection_note(&work->projection, event);
    if (event->kind == EVENT_TEXT) buf_append(&work->reply, event->text.text);
}

static const struct stream_wire wire = {
    .project = scenario_project,
    .queued = nimi_queued,
    .wake_at = nimi_wake_at,
    .stalled_ms = nimi_stalled_ms,
    .ended = scenario_on_ended,
};

static const struct stream_wire unary_wire = {
    .project = scenario_project,
    .queued = nimi_nothing_queued,
    .ended = scenario_on_ended,
};

/* --- the request -------------------------------------------------------------------------- */

static bool scenario_follow(struct work *work, struct journal *journal, struct err *e) {
    struct nimi_call *call = work->call;
    struct stream_options options = {.loop = call->loop,
                                     .journal = journal,
                                     .mode = call->row->ends,
                                     .paces = true,
                                     .stall_ms = call->instance->settings->stall_ms,
                                     .wire = is_unary(work) ? &unary_wire : &wire,
                                     .ctx = work};
    return stream_open(&options, &work->stream, e);
}

/* The call has a slot; from here on the stream is established. */
static void scenario_start(struct work *work) {
    struct err e;
    struct journal *journal;
    timer_stop(&work->wait);
    work->granted = true;
    work->waited_ms = ticket_waited_ms(work->ticket);
    if (!work->kind->ask(work, &journal, &e) || !scenario_follow(work, journal, &e)) {
        stop_work(work, STR("the call could not be followed"));
        nimi_refuse_code(work->call, NIMI_AI_PROVIDER_RATE_LIMITED, e.code, "%s", e.text);
        return;
    }
    if (!is_unary(work)) rpc_establish(work->call->rpc);
}

static void scenario_on_granted(void *ctx) {
    scenario_start(ctx);
}

/* K25: nothing was sent yet, so the failure is a status. */
static void scenario_on_waited(void *ctx) {
    struct work *work = ctx;
    stop_work(work, STR_EMPTY);
    nimi_refuse_for(work->call, NIMI_AI_PROVIDER_TIMEOUT,
                    "all slots for models were taken for too long; ask again later");
}

static void wait_for_slot(struct work *work) {
    const struct nimi_instance *instance = work->call->instance;
    const struct ticket_ask ask = {.app = work->app,
                                   .owner = nimi_owner(work->call),
                                   .class = FAIR_INTERACTIVE,
                                   .loop = work->call->loop,
                                   .on_granted = scenario_on_granted,
                                   .ctx = work};
    switch (scheduler_take(instance->runtime->scheduler, &ask, &work->ticket)) {
    case TICKET_GRANTED: scenario_start(work); break;
    case TICKET_WAITS: timer_start(&work->wait, work->clocks.first_ms); break;
    case TICKET_REFUSED:
        nimi_refuse_code(work->call, NIMI_AI_PROVIDER_UNAVAILABLE, ERR_RESOURCE_EXHAUSTED,
                         "too many calls of this app wait for a model; ask again later");
        break;
    }
}

/* --- pictures ----------------------------------------------------------------------------- */

static void on_attached(const struct fault *fault, void *ctx) {
    struct work *work = ctx;
    work->attach = NULL;
    if (fault) {
        nimi_refuse(work->call, fault);
    } else {
        wait_for_slot(work);
    }
}

/* Read uploaded pictures before the call is accepted. */
static void scenario_gather(struct work *work) {
    const struct attach_options options = {.loop = work->call->loop,
                                           .store = work->engine->store,
                                           .app = work->app,
                                           .subject = work->uploader,
                                           .prompt = &work->prompt,
                                           .arena = work->arena,
                                           .done = on_attached,
                                           .ctx = work};
    if (work->prompt.artifact_count) {
        work->attach = attach_start(&options);
    } else {
        wait_for_slot(work);
    }
}

/* --- callbacks of the call ---------------------------------------------------------------- */

static void scenario_on_drained(void *ctx) {
    struct work *work = ctx;
    if (work->stream) stream_drained(work->stream);
}

static void scenario_on_stopping(void *ctx) {
    struct work *work = ctx;
    if (work->stream) {
        stream_end(work->stream, CAUSE_STOPPING);
    } else {
        stop_work(work, STR_EMPTY);
    }
}

static void scenario_on_cancelled(enum close_cause why, void *ctx) {
    struct work *work = ctx;
    if (work->stream) {
        stream_end(work->stream, why);
    } else {
        stop_work(work, STR_EMPTY);
    }
}

static void note_used(struct work *work) {
    static const struct str names[] = {
        [NIMI_SCENARIO_TYPE_TEXT_GENERATE] = STR_INIT("TEXT_GENERATE"),
        [NIMI_SCENARIO_TYPE_TEXT_EMBED] = STR_INIT("TEXT_EMBED"),
        [NIMI_SCENARIO_TYPE_SPEECH_SYNTHESIZE] = STR_INIT("SPEECH_SYNTHESIZE"),
    };
    const struct nimi_usage_stats *usage = &work->projection.usage;
    if (!work->kind) return; /* it was not admitted */
    work->call->used =
        (struct nimi_used){.capability = names[work->type],
                           .app = work->app,
                           .subject = work->uploader,
                           .model = work->projection.model,
                           .input_tokens = usage->input_tokens,
                           .output_tokens = usage->output_tokens,
                           .compute_ms = usage->compute_ms,
                           .queue_ms = work->granted ? (int64_t)work->waited_ms : -1};
}

static void scenario_on_closed(void *ctx) {
    struct work *work = ctx;
    note_used(work);
    assert(!work->ticket && !timer_waits(&work->wait));
    assert(!work->media_run);
    stream_free(work->stream);
    model_call_unref(work->model);
    feed_free(work->feed);
    projection_done(&work->projection);
    buf_done(&work->reply);
    arena_free(work->arena);
    engine_unref(work->engine);
    free(work);
}

static const struct nimi_work events = {.drained = scenario_on_drained,
                                        .stopping = scenario_on_stopping,
                                        .cancelled = scenario_on_cancelled,
                                        .closed = scenario_on_closed};

/* --- a request ---------------------------------------------------------------------------- */

static void set_clocks(struct work *work, const struct nimi_scenario_request_head *head) {
    const char *settings = (const char *)work->call->instance->settings;
    struct model_call_clocks *clocks = &work->clocks;
    memcpy(clocks, settings + work->kind->clocks_at, sizeof(*clocks));
    admit_clocks(head, clocks);
    if (is_unary(work)) clocks->first_ms = clocks->idle_ms = clocks->total_ms;
}

static bool scenario_prepare(struct work *work, const struct scenario *asked,
                             struct fault *fault) {
    struct nimi_call *call = work->call;
    const struct nimi_scenario_request_head *head = asked->head;
    struct str subject = head->subject_user_id.len ? head->subject_user_id : STR("anonymous");
    work->type = asked->scenario_type;
    work->kind = kinds[asked->scenario_type];
    work->app = nimi_keep(call, head->app_id);
    work->subject = nimi_keep(call, subject);
    work->admission.model = nimi_keep(call, work->admission.model);
    work->projection.model = work->admission.model;
    work->uploader = nimi_keep(call, head->subject_user_id);
    work->projection.route = work->admission.route;
    set_clocks(work, head);
    return work->kind->prepare(work, asked, fault);
}

static void scenario_begin(struct nimi_call *call, const struct scenario *asked,
                           enum admit_by by) {
    const struct nimi_instance *instance = call->instance;
    struct work *work = MEM_NEW(struct work);
    struct fault fault;
    work->call = call;
    work->engine = engine_ref(instance->host->engine);
    work->arena = arena_new(work->engine->limits.memory_max_bytes);
    timer_init(&work->wait, call->loop, scenario_on_waited, work);
    projection_init(&work->projection, call);
    buf_init(&work->reply, work->engine->limits.reply_max_bytes);
    nimi_work(call, &events, work);
    if (admit_scenario(instance->settings, &call->envelope, asked, by, &work->admission,
                       &fault) &&
        scenario_prepare(work, asked, &fault)) {
        scenario_gather(work);
    } else {
        nimi_refuse(call, &fault);
    }
}

void scenario_stream(struct nimi_call *call, const void *request) {
    const struct nimi_stream_scenario_request *from = request;
    scenario_begin(call,
                   &(struct scenario){from->head, from->scenario_type, from->execution_mode,
                                      from->spec, from->extensions, from->extensions_count},
                   ADMIT_STREAM);
}

void scenario_execute(struct nimi_call *call, const void *request) {
    const struct nimi_execute_scenario_request *from = request;
    scenario_begin(call,
                   &(struct scenario){from->head, from->scenario_type, from->execution_mode,
                                      from->spec, from->extensions, from->extensions_count},
                   ADMIT_EXECUTE);
}
