/* A job that a model does. The model call is a run of its own (job/model_call.h), which records
 * its cost. Here only its text is gathered. */
#include "contract/nimi/job/job_inner.h"

static void complete_text(struct job_work *work, struct str model) {
    const struct nimi_text_generate_output text = {.text = buf_str(&work->text)};
    const struct nimi_scenario_output output = {
        .which_output = NIMI_SCENARIO_OUTPUT_TEXT_GENERATE, .text_generate = &text};
    job_complete(work, &output, model);
}

/* False: the job is over. */
static bool job_text_take(struct job_work *work, const struct event *event) {
    switch (event->kind) {
    case EVENT_TEXT: buf_append(&work->text, event->text.text); return true;
    case EVENT_USAGE: work->usage = job_usage(&event->usage); return true;
    case EVENT_DONE: complete_text(work, event->done.model); return false;
    case EVENT_FAILED:
        job_fail(work, event->failed.code, event->failed.reason, event->failed.message);
        return false;
    case EVENT_CANCELLED:
        job_fail(work, ERR_UNAVAILABLE, STR_EMPTY, event->cancelled.message);
        return false;
    default: return true;
    }
}

static void on_words(void *ctx) {
    struct job_work *work = ctx;
    struct event event = {0};
    while (cursor_next(work->cursor, &event) && job_text_take(work, &event)) continue;
}

/* The request is made as the first agent, because scripts and budgets are defined for
 * agents. */
static bool ask_model(struct job_work *work, struct err *e) {
    struct run_host *host = work->instance->host;
    work->spec.prompt.request.agent = work->engine->agents[0].slug;
    work->spec.prompt.request.trace = run_job_trace(work->job);
    struct model_call_options options = {.host = host,
                                         .engine = work->engine,
                                         .provider = work->admission.connector->provider,
                                         .request = &work->spec.prompt.request,
                                         .workspace = work->request.head->app_id,
                                         .user = run_job_user(work->job),
                                         .text = work->spec.asked,
                                         .contract = STR("nimi"),
                                         .asked_ms = loop_now_ms(host->loop),
                                         .clocks = {.total_ms = work->spec.total_ms}};
    return model_call_start(&options, &work->model, e) &&
           cursor_open(model_call_journal(work->model), 0, host->loop, on_words, work,
                       &work->cursor, e);
}

static void on_attached(const struct fault *fault, void *ctx) {
    struct job_work *work = ctx;
    struct err e;
    work->attach = NULL;
    if (fault) {
        job_fail(work, fault->why.code, str_from(reason_get(fault->reason)->name),
                 err_text(&fault->why));
    } else if (!ask_model(work, &e)) {
        job_fail(work, e.code, STR_EMPTY, err_text(&e));
    }
}

/* Uploaded pictures are read when an attempt begins, so also after a restart. */
static bool job_text_ask(struct job_work *work, struct err *e) {
    struct prompt *prompt = &work->spec.prompt;
    const struct attach_options options = {.loop = work->instance->host->loop,
                                           .store = work->engine->store,
                                           .app = work->request.head->app_id,
                                           .subject = work->request.head->subject_user_id,
                                           .prompt = prompt,
                                           .arena = work->arena,
                                           .done = on_attached,
                                           .ctx = work};
    if (prompt->artifact_count == 0) return ask_model(work, e);
    work->attach = attach_start(&options);
    return true;
}

static void job_text_stop(struct job_work *work, struct str why) {
    attach_cancel(work->attach);
    work->attach = NULL;
    if (work->model) model_call_cancel(work->model, why);
    cursor_close(work->cursor);
    model_call_unref(work->model);
    work->cursor = NULL;
    work->model = NULL;
}

const struct job_asked job_asks_model = {job_text_ask, job_text_stop};
