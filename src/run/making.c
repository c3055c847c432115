#include "run/making.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/directory.h"
#include "run/expense.h"
#include "run/inner.h"
#include "run/record.h"
#include "run/unkept.h"

#include <assert.h>
#include <stdlib.h>

#define MAKING_BYTES (256 * KIB) /* of sound or picture, at least */
#define WINDOW_BYTES (16 * KIB)  /* of the record: a handful of events */

struct making {
    struct run_host *host;
    struct engine *engine; /* a reference; it keeps the media */
    struct media *media;
    struct media_call *asked; /* NULL: it has answered */
    const struct media_request *request;
    struct media_sink sink;
    void *ctx;
    struct clocks clocks;
    struct expense expense;
    size_t made;              /* artifacts, texts, vectors that came */
    struct event_usage usage; /* the models' name borrowed from `names` */
    struct journal *record;   /* NULL: its caller keeps one */
    struct live live;
    uint64_t begun_ms, ending_seq;
    struct buf names; /* workspace, user, the asked model: as long as the record */
    struct str workspace, user, asked_model;
    enum run_state ending; /* RUN_ASKING: not yet */
    bool cancelled;        /* nobody listens any more */
    bool usage_seen;
    struct err why;
    struct buf said;    /* of the ending: who answered, or the stable reason */
    struct task settle; /* ends one whose record is in memory */
};

/* --- life --------------------------------------------------------------------------------- */

static void free_making(struct making *making) {
    assert(!making->asked && !making->expense.reserved.ledger);
    if (making->record) {
        journal_leave(making->record);
        journal_unref(making->record);
    }
    buf_done(&making->names);
    buf_done(&making->said);
    engine_unref(making->engine);
    free(making);
}

static uint64_t append(struct making *making, struct event *event) {
    event->at_ms = (int64_t)(loop_now_ms(making->host->loop) - making->begun_ms);
    event->agent = making->engine->agents[0].slug;
    return journal_append(making->record, event);
}

static void tell_ending(struct making *making) {
    const struct media_sink *sink = &making->sink;
    if (making->cancelled) return;
    if (making->ending != RUN_DONE) {
        sink->on_failed(&making->why, buf_str(&making->said), making->ctx);
        return;
    }
    if (sink->on_usage) sink->on_usage(&making->usage, making->ctx);
    sink->on_done(buf_str(&making->said), making->ctx);
}

/* The record's last event is on disk, or will never be: it is over. */
static void settle(void *ctx) {
    struct making *making = ctx;
    if (making->record) {
        atomic_store(&making->live.state, (int)making->ending);
        directory_remove(session_table_directory(making->engine->sessions), &making->live);
    }
    tell_ending(making);
    free_making(making);
}

/* --- ending ------------------------------------------------------------------------------- */

/* Once, whether or not it was counted; not at all if nothing came. */
static void settle_cost(struct making *making, enum run_state ending) {
    bool counts = making->usage_seen || ending == RUN_DONE || making->made;
    if (counts) {
        expense_settle(&making->expense, &making->usage);
        struct event event = {.kind = EVENT_USAGE, .usage = making->usage};
        if (making->record) append(making, &event);
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
static void finish(struct making *making, enum run_state ending, struct event *event) {
    assert(making->ending == RUN_ASKING);
    making->ending = ending;
    stop_asking(making);
    settle_cost(making, ending);
    if (making->record) making->ending_seq = append(making, event);
    if (making->record && making->host->keeper) return; /* on_durable settles */
    loop_defer(making->host->loop, &making->settle);
}

static void fail(struct making *making, const struct err *why, struct str reason) {
    struct event event = {
        .kind = EVENT_FAILED,
        .failed = {.code = why->code, .reason = reason, .message = err_text(why)}};
    if (making->ending != RUN_ASKING) return;
    making->why = *why;
    buf_append(&making->said, reason);
    finish(making, RUN_FAILED, &event);
}

void making_cancel(struct making *making, struct str why) {
    struct event event = {.kind = EVENT_CANCELLED, .cancelled = {.message = why}};
    making->cancelled = true;
    if (making->ending == RUN_ASKING) finish(making, RUN_CANCELLED, &event);
}

/* Somebody else has it cancelled, by the record's id. */
static void leave_live(struct leaving leaving, struct str why, void *ctx) {
    struct making *making = ctx;
    struct event event = {.kind = EVENT_CANCELLED, .cancelled = {.message = why}};
    if (leaving.how == LEAVING_DETACHES || making->ending != RUN_ASKING) return;
    err_set(&making->why, ERR_CANCELLED, STR_FMT, STR_ARG(why));
    finish(making, RUN_CANCELLED, &event);
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
static void take(struct making *making) {
    making->made++;
    clocks_heard(&making->clocks);
    expense_use(&making->expense, 0);
}

static void on_artifact(const struct media_artifact *artifact, void *ctx) {
    struct making *making = ctx;
    if (artifact->bytes.len > MEDIA_ARTIFACT_MAX_BYTES) {
        fail_unusable(making, "the provider made more than an artifact may hold");
    } else if (artifact->bytes.len || artifact->uri.len) {
        take(making);
        if (making->sink.on_artifact) making->sink.on_artifact(artifact, making->ctx);
    }
}

static void on_text(struct str text, void *ctx) {
    struct making *making = ctx;
    take(making);
    if (making->sink.on_text) making->sink.on_text(text, making->ctx);
}

static void on_vector(size_t input, const double *values, size_t count, void *ctx) {
    struct making *making = ctx;
    if (input >= making->request->input_count || count == 0) {
        fail_unusable(making, "the provider's vectors are not those that were asked for");
        return;
    }
    take(making);
    if (making->sink.on_vector) making->sink.on_vector(input, values, count, making->ctx);
}

static void on_usage(const struct event_usage *usage, void *ctx) {
    struct making *making = ctx;
    if (making->usage_seen) return;
    making->usage_seen = true;
    making->usage = *usage;
    making->usage.call_sequence = 0;           /* there is only this one */
    making->usage.model = making->asked_model; /* the other is borrowed */
}

static void on_done(struct str model, void *ctx) {
    struct making *making = ctx;
    const struct media_request *request = making->request;
    making->asked = NULL;
    size_t wanted = request->task == MEDIA_EMBEDDING ? request->input_count : 1;
    if (making->made < wanted) {
        fail_unusable(making, "the provider ended without all that it was asked for");
        return;
    }
    if (model.len == 0) model = making->asked_model;
    buf_append(&making->said, model);
    making->usage.model = buf_str(&making->said);
    struct event event = {.kind = EVENT_DONE, .done = {.model = model, .turns = STR_EMPTY}};
    finish(making, RUN_DONE, &event);
}

static void on_failed(const struct err *why, struct str reason, void *ctx) {
    struct making *making = ctx;
    making->asked = NULL;
    fail(making, why, reason);
}

static const struct media_sink heard = {
    .on_artifact = on_artifact,
    .on_text = on_text,
    .on_vector = on_vector,
    .on_usage = on_usage,
    .on_done = on_done,
    .on_failed = on_failed,
};

/* --- the record --------------------------------------------------------------------------- */

static void on_durable(uint64_t seq, void *ctx) {
    struct making *making = ctx;
    if (making->ending_seq && seq >= making->ending_seq) settle(making);
}

/* What cannot be counted was not made. */
static void on_lost(const struct err *why, void *ctx) {
    struct making *making = ctx;
    log_error("what was made in run %llu could not be recorded: %s",
              (unsigned long long)journal_run(making->record), why->text);
    stop_asking(making);
    expense_drop(&making->expense);
    journal_retract(making->record);
    struct str message = unkept_message(
        why, STR("the answer could not be stored and does not count; ask again"));
    err_set(&making->why, ERR_UNAVAILABLE, STR_FMT, STR_ARG(message));
    buf_clear(&making->said);
    buf_append(&making->said, unkept_reason(why));
    making->ending = RUN_FAILED;
    struct event event = {.kind = EVENT_FAILED,
                          .failed = {.code = ERR_UNAVAILABLE,
                                     .reason = buf_str(&making->said),
                                     .message = err_text(&making->why)}};
    append(making, &event);
    loop_defer(making->host->loop, &making->settle);
}

static void open_record(struct making *making, const struct making_options *options) {
    making->record =
        journal_new(&(struct journal_options){.loop = making->host->loop,
                                              .keeper = making->host->keeper,
                                              .run = record_next_id(making->engine),
                                              .window_max_bytes = WINDOW_BYTES,
                                              .on_durable = on_durable,
                                              .on_lost = on_lost,
                                              .ctx = making});
    making->live = (struct live){.run = journal_run(making->record),
                                 .journal = making->record,
                                 .loop = making->host->loop,
                                 .workspace = making->workspace,
                                 .user = making->user,
                                 .session = STR_EMPTY,
                                 .state = RUN_ASKING,
                                 .leave = leave_live,
                                 .ctx = making};
    list_init(&making->live.link);
    directory_add(session_table_directory(making->engine->sessions), &making->live);
    struct event started = {.kind = EVENT_STARTED,
                            .started = {.workspace = making->workspace,
                                        .user = making->user,
                                        .session = STR_EMPTY,
                                        .text = options->text,
                                        .contract = options->contract,
                                        .unix_ms = clock_unix_ms()}};
    append(making, &started);
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

/* A picture or a vector is paid for by what goes in, as far as anybody knows before. */
static size_t asked_bytes(const struct media_request *request) {
    size_t bytes = request->text.len;
    for (size_t i = 0; i < request->input_count; i++) bytes += request->inputs[i].len;
    return bytes;
}

bool making_start(const struct making_options *options, struct making **ret, struct err *e) {
    if (!mem_check(MAKING_BYTES, e)) return false;
    struct making *making = MEM_NEW(struct making);
    *making = (struct making){.host = options->host,
                              .engine = options->engine,
                              .media = options->media,
                              .request = options->request,
                              .sink = *options->sink,
                              .ctx = options->ctx,
                              .usage = USAGE_UNKNOWN,
                              .begun_ms = loop_now_ms(options->host->loop),
                              .ending = RUN_ASKING};
    keep_names(making, options);
    making->expense = (struct expense){.engine = making->engine,
                                       .model = making->asked_model,
                                       .asked_bytes = asked_bytes(options->request)};
    if (!expense_reserve(&making->expense, making->workspace, making->engine->agents[0].slug,
                         e)) {
        buf_done(&making->names);
        free(making);
        return false;
    }
    engine_ref(making->engine);
    buf_init(&making->said, KIB);
    task_init(&making->settle, settle, making);
    clocks_init(&making->clocks, making->host->loop, &options->clocks, options->asked_ms,
                on_expired, making);
    if (options->record == MAKING_RECORDED) open_record(making, options);
    clocks_start(&making->clocks);
    making->asked =
        media_call_start(making->media, making->host->loop, making->request, &heard, making);
    *ret = making;
    return true;
}
