#include "job/media_run.h"

#include "base/mem.h"
#include "job/expense.h"
#include "job/job_span.h"
#include "record/record.h"
#include "record/unkept.h"

#include <assert.h>
#include <stdlib.h>

#define MEDIA_RUN_BYTES (256 * KIB) /* minimum free memory for sound or pictures */
#define WINDOW_BYTES (16 * KIB)     /* of the record, which has few events */

struct media_run {
    struct record record; /* only in memory if the caller has a record of its own */
    struct media *media;
    struct media_call *asked;     /* NULL: it is over */
    struct media_request request; /* its texts are the caller's */
    struct job_span span;
    reply_event_fn *on_reply;
    void *ctx;
    struct clocks clocks;
    struct expense expense;
    size_t made;              /* artifacts, texts, vectors received */
    struct event_usage usage; /* the model's name is borrowed from `names` */
    struct buf names;         /* workspace, user, requested model; as long as the record */
    struct str workspace, user, asked_model;
    bool recorded;  /* its record can be found by its id */
    bool cancelled; /* the caller has cancelled */
    bool usage_seen;
    struct err why;
    struct buf said; /* the ending's model, or its stable reason */
};

/* --- creation and release ----------------------------------------------------------------- */

static void free_media_run(struct media_run *media_run) {
    assert(!media_run->asked && !media_run->expense.reserved.ledger);
    record_done(&media_run->record);
    buf_done(&media_run->names);
    buf_done(&media_run->said);
    free(media_run);
}

static void report_ending(struct media_run *media_run) {
    struct reply_event ending = {REPLY_DONE, .model = buf_str(&media_run->said)};
    if (media_run->cancelled) return;
    if (media_run->record.ending != RUN_DONE) {
        ending = reply_event_failed(&media_run->why, buf_str(&media_run->said));
    } else {
        media_run->on_reply(&(struct reply_event){REPLY_USAGE, .usage = &media_run->usage},
                            media_run->ctx);
    }
    media_run->on_reply(&ending, media_run->ctx);
}

static void media_run_over(void *ctx) {
    report_ending(ctx);
    free_media_run(ctx);
}

/* --- ending ------------------------------------------------------------------------------- */

/* Called once. Usage is recorded even if it is unknown, but not if nothing was received. */
static void settle_cost(struct media_run *media_run, bool done) {
    bool counts = media_run->usage_seen || done || media_run->made;
    if (counts) {
        expense_settle(&media_run->expense, &media_run->usage);
        struct event event = {.kind = EVENT_USAGE, .usage = media_run->usage};
        record_append(&media_run->record, &event);
    }
    expense_drop(&media_run->expense);
}

static void stop_asking(struct media_run *media_run) {
    struct media_call *asked = media_run->asked;
    media_run->asked = NULL;
    if (asked) media_run->media->kind->cancel(asked);
    clocks_stop(&media_run->clocks);
}

static void media_run_end_span(struct media_run *media_run, const struct event *event) {
    const struct media *media = media_run->media;
    if (media_run->usage_seen) job_span_usage(&media_run->span, &media_run->usage);
    job_span_end_media(
        &media_run->span, &media_run->request,
        &(struct job_span_end){.provider =
                                   media->name.len ? media->name : str_from(media->kind->name),
                               .model = media_run->asked_model,
                               .run = media_run->recorded ? record_id(&media_run->record) : 0,
                               .now_ms = loop_now_ms(media_run->record.host->loop),
                               .last = event});
}

/* `event` is the record's last event. */
static void media_run_finish(struct media_run *media_run, struct event *event) {
    stop_asking(media_run);
    media_run_end_span(media_run, event);
    settle_cost(media_run, event->kind == EVENT_DONE);
    record_append(&media_run->record, event);
}

static void media_run_fail(struct media_run *media_run, const struct err *why,
                           struct str reason) {
    struct event event = {
        .kind = EVENT_FAILED,
        .failed = {.code = why->code, .reason = reason, .message = err_text(why)}};
    if (record_is_ending(&media_run->record)) return;
    media_run->why = *why;
    buf_append(&media_run->said, reason);
    media_run_finish(media_run, &event);
}

void media_run_cancel(struct media_run *media_run, struct str why) {
    struct event event = {.kind = EVENT_CANCELLED, .cancelled = {.message = why}};
    media_run->cancelled = true;
    if (!record_is_ending(&media_run->record)) media_run_finish(media_run, &event);
}

/* Cancelled by another caller, by the record's id. */
static void media_run_leave(struct leaving leaving, struct str why, void *ctx) {
    struct media_run *media_run = ctx;
    struct event event = {.kind = EVENT_CANCELLED, .cancelled = {.message = why}};
    if (leaving.how == LEAVING_DETACHES || record_is_ending(&media_run->record)) return;
    err_set(&media_run->why, ERR_CANCELLED, STR_FMT, STR_ARG(why));
    media_run_finish(media_run, &event);
}

static void on_expired(const char *text, void *ctx) {
    struct err why;
    err_set(&why, ERR_DEADLINE_EXCEEDED, "%s", text);
    media_run_fail(ctx, &why, STR(CLOCKS_REASON));
}

/* --- the answer --------------------------------------------------------------------------- */

static void fail_unusable(struct media_run *media_run, const char *what) {
    struct err why;
    err_set(&why, ERR_INTERNAL, "%s; ask again, or ask another provider", what);
    media_run_fail(media_run, &why, STR(MEDIA_RUN_UNUSABLE));
}

/* A result has arrived. */
static void media_run_on_made(const struct reply_event *event, void *ctx) {
    struct media_run *media_run = ctx;
    media_run->made++;
    clocks_heard(&media_run->clocks);
    expense_use(&media_run->expense, 0);
    media_run->on_reply(event, media_run->ctx);
}

static void media_run_on_artifact(const struct reply_event *event, void *ctx) {
    const struct media_artifact *artifact = event->artifact;
    if (artifact->bytes.len > MEDIA_ARTIFACT_MAX_BYTES) {
        fail_unusable(ctx, "the provider made more than an artifact may hold");
    } else if (artifact->bytes.len || artifact->uri.len) {
        media_run_on_made(event, ctx);
    }
}

static void media_run_on_vector(const struct reply_event *event, void *ctx) {
    struct media_run *media_run = ctx;
    if (event->vector->input >= media_run->request.input_count || event->vector->count == 0) {
        fail_unusable(media_run, "the provider's vectors are not the ones requested");
        return;
    }
    media_run_on_made(event, media_run);
}

static void media_run_on_usage(const struct reply_event *event, void *ctx) {
    struct media_run *media_run = ctx;
    if (media_run->usage_seen) return;
    media_run->usage_seen = true;
    media_run->usage = *event->usage;
    media_run->usage.call_sequence = 0;              /* it has only this one */
    media_run->usage.model = media_run->asked_model; /* the event's is only lent */
}

static void media_run_on_done(const struct reply_event *event, void *ctx) {
    struct media_run *media_run = ctx;
    const struct media_request *request = &media_run->request;
    media_run->asked = NULL;
    size_t wanted = request->task == MEDIA_EMBEDDING ? request->input_count : 1;
    if (media_run->made < wanted) {
        fail_unusable(media_run, "the provider ended without all that it was asked for");
        return;
    }
    struct str model = event->model.len ? event->model : media_run->asked_model;
    buf_append(&media_run->said, model);
    media_run->usage.model = buf_str(&media_run->said);
    struct event done = {.kind = EVENT_DONE, .done = {.model = model, .turns = STR_EMPTY}};
    media_run_finish(media_run, &done);
}

static void media_run_on_failed(const struct reply_event *event, void *ctx) {
    struct media_run *media_run = ctx;
    struct err why;
    err_set(&why, event->code, STR_FMT, STR_ARG(event->text));
    media_run->asked = NULL;
    media_run_fail(media_run, &why, event->reason);
}

static void on_reply(const struct reply_event *event, void *ctx) {
    static reply_event_fn *const handlers[REPLY_KIND_COUNT] = {
        [REPLY_ARTIFACT] = media_run_on_artifact, [REPLY_TEXT] = media_run_on_made,
        [REPLY_VECTOR] = media_run_on_vector,     [REPLY_USAGE] = media_run_on_usage,
        [REPLY_DONE] = media_run_on_done,         [REPLY_FAILED] = media_run_on_failed,
    };
    reply_event_handle(handlers, event, ctx);
}

/* --- the record --------------------------------------------------------------------------- */

/* The record could not be stored, so the cost would be lost: the call fails. */
static void media_run_lost(const struct err *why, void *ctx) {
    struct media_run *media_run = ctx;
    struct event event = unkept_failure(why, STR(UNKEPT_ANSWER));
    stop_asking(media_run);
    media_run_end_span(media_run, &event);
    expense_drop(&media_run->expense);
    err_set(&media_run->why, ERR_UNAVAILABLE, STR_FMT, STR_ARG(event.failed.message));
    buf_clear(&media_run->said);
    buf_append(&media_run->said, event.failed.reason);
    record_append(&media_run->record, &event);
}

static const struct record_events media_run_events = {
    .on_lost = media_run_lost, .on_over = media_run_over, .leave = media_run_leave};

static void open_record(struct media_run *media_run, const struct media_run_options *options) {
    struct record *record = &media_run->record;
    bool kept = options->record == MEDIA_RUN_RECORDED;
    record_init(record, &(struct record_options){.what = "media call",
                                                 .host = options->host,
                                                 .engine = options->engine,
                                                 .in_memory = !kept,
                                                 .window_max_bytes = WINDOW_BYTES,
                                                 .agent = options->engine->agents[0].slug,
                                                 .events = &media_run_events,
                                                 .ctx = media_run});
    if (!kept) return;
    record_enter(record,
                 &(struct session_name){media_run->workspace, media_run->user, STR_EMPTY},
                 RUN_ASKING);
    struct event started = record_started(record, options->text, options->contract);
    record_append(record, &started);
}

/* --- start -------------------------------------------------------------------------------- */

static void keep_names(struct media_run *media_run, const struct media_run_options *options) {
    media_run->workspace = options->workspace;
    media_run->user = options->user;
    media_run->asked_model = options->request->model;
    struct str *texts[] = {&media_run->workspace, &media_run->user, &media_run->asked_model};
    buf_keep_texts(&media_run->names, texts, ARRAY_LEN(texts));
}

/* Bytes of the input, which is all that is known of the price in advance. */
static size_t asked_bytes(const struct media_request *request) {
    size_t bytes = request->text.len;
    for (size_t i = 0; i < request->input_count; i++) bytes += request->inputs[i].len;
    return bytes;
}

bool media_run_start(const struct media_run_options *options, struct media_run **ret,
                     struct err *e) {
    if (!mem_check(MEDIA_RUN_BYTES, e)) return false;
    struct media_run *media_run = MEM_NEW(struct media_run);
    *media_run = (struct media_run){.media = options->media,
                                    .request = *options->request,
                                    .recorded = options->record == MEDIA_RUN_RECORDED,
                                    .on_reply = options->on_reply,
                                    .ctx = options->ctx,
                                    .usage = USAGE_UNKNOWN};
    keep_names(media_run, options);
    media_run->expense = (struct expense){.engine = options->engine,
                                          .model = media_run->asked_model,
                                          .asked_bytes = asked_bytes(options->request)};
    if (!expense_reserve(&media_run->expense, media_run->workspace,
                         options->engine->agents[0].slug, e)) {
        buf_done(&media_run->names);
        free(media_run);
        return false;
    }
    buf_init(&media_run->said, KIB);
    clocks_init(&media_run->clocks, options->host->loop, &options->clocks, options->asked_ms,
                on_expired, media_run);
    open_record(media_run, options);
    clocks_start(&media_run->clocks);
    job_span_begin(&media_run->span, options->trace, loop_now_ms(options->host->loop));
    media_run->request.trace = media_run->span.passed;
    media_run->asked = media_call_start(media_run->media, options->host->loop,
                                        &media_run->request, on_reply, media_run);
    *ret = media_run;
    return true;
}
