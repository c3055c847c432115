#include "run/making.h"

#include "base/mem.h"
#include "run/expense.h"
#include "run/record.h"
#include "run/unkept.h"

#include <assert.h>
#include <stdlib.h>

#define MAKING_BYTES (256 * KIB) /* of sound or picture, at least */
#define WINDOW_BYTES (16 * KIB)  /* of the record: a handful of events */

struct making {
    struct record record; /* if the caller keeps one: in memory, and not in the directory */
    struct media *media;
    struct media_call *asked; /* NULL: it has answered */
    const struct media_request *request;
    reply_event_fn *on_reply;
    void *ctx;
    struct clocks clocks;
    struct expense expense;
    size_t made;              /* artifacts, texts, vectors that came */
    struct event_usage usage; /* the models' name borrowed from `names` */
    struct buf names;         /* workspace, user, the asked model: as long as the record */
    struct str workspace, user, asked_model;
    bool cancelled; /* the caller has cancelled */
    bool usage_seen;
    struct err why;
    struct buf said; /* of the ending: who answered, or the stable reason */
};

/* --- life --------------------------------------------------------------------------------- */

static void free_making(struct making *making) {
    assert(!making->asked && !making->expense.reserved.ledger);
    record_done(&making->record);
    buf_done(&making->names);
    buf_done(&making->said);
    free(making);
}

static void tell_ending(struct making *making) {
    struct reply_event ending = {REPLY_DONE, .model = buf_str(&making->said)};
    if (making->cancelled) return;
    if (making->record.ending != RUN_DONE) {
        ending = reply_event_failed(&making->why, buf_str(&making->said));
    } else {
        making->on_reply(&(struct reply_event){REPLY_USAGE, .usage = &making->usage},
                         making->ctx);
    }
    making->on_reply(&ending, making->ctx);
}

static void making_over(void *ctx) {
    tell_ending(ctx);
    free_making(ctx);
}

/* --- ending ------------------------------------------------------------------------------- */

/* Once, whether or not it was counted; not at all if nothing came. */
static void settle_cost(struct making *making, bool done) {
    bool counts = making->usage_seen || done || making->made;
    if (counts) {
        expense_settle(&making->expense, &making->usage);
        struct event event = {.kind = EVENT_USAGE, .usage = making->usage};
        record_append(&making->record, &event);
    }
    expense_drop(&making->expense);
}

static void stop_asking(struct making *making) {
    struct media_call *asked = making->asked;
    making->asked = NULL;
    if (asked) making->media->kind->cancel(asked);
    clocks_stop(&making->clocks);
}

/* `event` is what the record says last. */
static void finish(struct making *making, struct event *event) {
    stop_asking(making);
    settle_cost(making, event->kind == EVENT_DONE);
    record_append(&making->record, event);
}

static void fail(struct making *making, const struct err *why, struct str reason) {
    struct event event = {
        .kind = EVENT_FAILED,
        .failed = {.code = why->code, .reason = reason, .message = err_text(why)}};
    if (record_is_ending(&making->record)) return;
    making->why = *why;
    buf_append(&making->said, reason);
    finish(making, &event);
}

void making_cancel(struct making *making, struct str why) {
    struct event event = {.kind = EVENT_CANCELLED, .cancelled = {.message = why}};
    making->cancelled = true;
    if (!record_is_ending(&making->record)) finish(making, &event);
}

/* Somebody else has it cancelled, by the record's id. */
static void making_leave(struct leaving leaving, struct str why, void *ctx) {
    struct making *making = ctx;
    struct event event = {.kind = EVENT_CANCELLED, .cancelled = {.message = why}};
    if (leaving.how == LEAVING_DETACHES || record_is_ending(&making->record)) return;
    err_set(&making->why, ERR_CANCELLED, STR_FMT, STR_ARG(why));
    finish(making, &event);
}

static void on_expired(const char *text, void *ctx) {
    struct err why;
    err_set(&why, ERR_DEADLINE_EXCEEDED, "%s", text);
    fail(ctx, &why, STR(CLOCKS_REASON));
}

/* --- the answer --------------------------------------------------------------------------- */

static void fail_unusable(struct making *making, const char *what) {
    struct err why;
    err_set(&why, ERR_INTERNAL, "%s; ask again, or somebody else", what);
    fail(making, &why, STR(MAKING_UNUSABLE));
}

/* Something came. */
static void on_made(const struct reply_event *event, void *ctx) {
    struct making *making = ctx;
    making->made++;
    clocks_heard(&making->clocks);
    expense_use(&making->expense, 0);
    making->on_reply(event, making->ctx);
}

static void on_artifact(const struct reply_event *event, void *ctx) {
    const struct media_artifact *artifact = event->artifact;
    if (artifact->bytes.len > MEDIA_ARTIFACT_MAX_BYTES) {
        fail_unusable(ctx, "the provider made more than an artifact may hold");
    } else if (artifact->bytes.len || artifact->uri.len) {
        on_made(event, ctx);
    }
}

static void on_vector(const struct reply_event *event, void *ctx) {
    struct making *making = ctx;
    if (event->vector->input >= making->request->input_count || event->vector->count == 0) {
        fail_unusable(making, "the provider's vectors are not those that were asked for");
        return;
    }
    on_made(event, making);
}

static void on_usage(const struct reply_event *event, void *ctx) {
    struct making *making = ctx;
    if (making->usage_seen) return;
    making->usage_seen = true;
    making->usage = *event->usage;
    making->usage.call_sequence = 0;           /* there is only this one */
    making->usage.model = making->asked_model; /* the other is borrowed */
}

static void on_done(const struct reply_event *event, void *ctx) {
    struct making *making = ctx;
    const struct media_request *request = making->request;
    making->asked = NULL;
    size_t wanted = request->task == MEDIA_EMBEDDING ? request->input_count : 1;
    if (making->made < wanted) {
        fail_unusable(making, "the provider ended without all that it was asked for");
        return;
    }
    struct str model = event->model.len ? event->model : making->asked_model;
    buf_append(&making->said, model);
    making->usage.model = buf_str(&making->said);
    struct event done = {.kind = EVENT_DONE, .done = {.model = model, .turns = STR_EMPTY}};
    finish(making, &done);
}

static void on_failed(const struct reply_event *event, void *ctx) {
    struct making *making = ctx;
    struct err why;
    err_set(&why, event->code, STR_FMT, STR_ARG(event->text));
    making->asked = NULL;
    fail(making, &why, event->reason);
}

static void on_reply(const struct reply_event *event, void *ctx) {
    static reply_event_fn *const handlers[REPLY_KIND_COUNT] = {
        [REPLY_ARTIFACT] = on_artifact, [REPLY_TEXT] = on_made, [REPLY_VECTOR] = on_vector,
        [REPLY_USAGE] = on_usage,       [REPLY_DONE] = on_done, [REPLY_FAILED] = on_failed,
    };
    reply_event_handle(handlers, event, ctx);
}

/* --- the record --------------------------------------------------------------------------- */

/* What cannot be counted was not made. */
static void making_lost(const struct err *why, void *ctx) {
    struct making *making = ctx;
    struct event event = unkept_failure(why, STR(UNKEPT_ANSWER));
    stop_asking(making);
    expense_drop(&making->expense);
    err_set(&making->why, ERR_UNAVAILABLE, STR_FMT, STR_ARG(event.failed.message));
    buf_clear(&making->said);
    buf_append(&making->said, event.failed.reason);
    record_append(&making->record, &event);
}

static const struct record_events making_events = {
    .on_lost = making_lost, .on_over = making_over, .leave = making_leave};

static void open_record(struct making *making, const struct making_options *options) {
    struct record *record = &making->record;
    bool kept = options->record == MAKING_RECORDED;
    record_init(record, &(struct record_options){.what = "media call",
                                                 .host = options->host,
                                                 .engine = options->engine,
                                                 .in_memory = !kept,
                                                 .window_max_bytes = WINDOW_BYTES,
                                                 .agent = options->engine->agents[0].slug,
                                                 .events = &making_events,
                                                 .ctx = making});
    if (!kept) return;
    record_enter(record, &(struct session_name){making->workspace, making->user, STR_EMPTY},
                 RUN_ASKING);
    struct event started = record_started(record, options->text, options->contract);
    record_append(record, &started);
}

/* --- start -------------------------------------------------------------------------------- */

static void keep_names(struct making *making, const struct making_options *options) {
    struct buf *names = &making->names;
    struct str workspace = options->workspace, user = options->user;
    struct str model = options->request->model;
    buf_init(names, workspace.len + user.len + model.len + 1);
    buf_append(names, workspace);
    buf_append(names, user);
    buf_append(names, model);
    struct str all = buf_str(names);
    making->workspace = str_head(all, workspace.len);
    making->user = str_head(str_skip(all, workspace.len), user.len);
    making->asked_model = str_skip(all, workspace.len + user.len);
}

/* As far as can be known in advance, a picture or a vector is paid for by its input. */
static size_t asked_bytes(const struct media_request *request) {
    size_t bytes = request->text.len;
    for (size_t i = 0; i < request->input_count; i++) bytes += request->inputs[i].len;
    return bytes;
}

bool making_start(const struct making_options *options, struct making **ret, struct err *e) {
    if (!mem_check(MAKING_BYTES, e)) return false;
    struct making *making = MEM_NEW(struct making);
    *making = (struct making){.media = options->media,
                              .request = options->request,
                              .on_reply = options->on_reply,
                              .ctx = options->ctx,
                              .usage = USAGE_UNKNOWN};
    keep_names(making, options);
    making->expense = (struct expense){.engine = options->engine,
                                       .model = making->asked_model,
                                       .asked_bytes = asked_bytes(options->request)};
    if (!expense_reserve(&making->expense, making->workspace, options->engine->agents[0].slug,
                         e)) {
        buf_done(&making->names);
        free(making);
        return false;
    }
    buf_init(&making->said, KIB);
    clocks_init(&making->clocks, options->host->loop, &options->clocks, options->asked_ms,
                on_expired, making);
    open_record(making, options);
    clocks_start(&making->clocks);
    making->asked =
        media_call_start(making->media, options->host->loop, making->request, on_reply, making);
    *ret = making;
    return true;
}
