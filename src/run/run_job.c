#include "run/run_job.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/claims.h"
#include "run/directory.h"
#include "run/inner.h"
#include "run/record.h"
#include "wire/json.h"

#include <assert.h>
#include <stdlib.h>

#define WINDOW_BYTES (512 * KIB) /* later readers read what is older from the store */
#define NAMES_MAX_BYTES (16 * MIB)
#define STATE_MAX_BYTES 256

/* --- states ------------------------------------------------------------------------------- */

#define TO(state) (1u << (state))
#define ENDS (TO(RUN_JOB_FAILED) | TO(RUN_JOB_CANCELLED) | TO(RUN_JOB_TIMED_OUT))

/* A job that runs tells its progress as running again; one that lost its process is queued. */
static const struct {
    const char *name;
    unsigned may_become;
} states[RUN_JOB_STATE_COUNT] = {
    /* clang-format off */
    [RUN_JOB_SUBMITTED] = {"submitted", TO(RUN_JOB_QUEUED) | ENDS},
    [RUN_JOB_QUEUED]    = {"queued",    TO(RUN_JOB_QUEUED) | TO(RUN_JOB_RUNNING) | ENDS},
    [RUN_JOB_RUNNING]   = {"running",   TO(RUN_JOB_QUEUED) | TO(RUN_JOB_RUNNING) | TO(RUN_JOB_COMPLETED) | ENDS},
    [RUN_JOB_COMPLETED] = {"completed", 0},
    [RUN_JOB_FAILED]    = {"failed",    0},
    [RUN_JOB_CANCELLED] = {"cancelled", 0},
    [RUN_JOB_TIMED_OUT] = {"timed_out", 0},
    /* clang-format on */
};

struct str run_job_state_name(enum run_job_state state) {
    return str_from(states[state].name);
}

bool run_job_may_become(enum run_job_state state, enum run_job_state next) {
    return (states[state].may_become & TO(next)) != 0;
}

bool run_job_is_over(enum run_job_state state) {
    return states[state].may_become == 0;
}

/* --- reading ------------------------------------------------------------------------------ */

static int64_t number_of(struct json object, struct str key) {
    int64_t number = 0;
    return json_i64(json_find(object, key), &number) && number > 0 ? number : 0;
}

static bool read_state(struct str bytes, struct run_job_note *ret) {
    struct json root;
    struct err e;
    if (!json_read(bytes, &root, &e)) return false;
    for (enum run_job_state state = 0; state < RUN_JOB_COMPLETED; state++) {
        if (!json_is(json_find(root, STR("state")), run_job_state_name(state))) continue;
        *ret = (struct run_job_note){.state = state,
                                     .attempt = number_of(root, STR("attempt")),
                                     .progress = {number_of(root, STR("percent")),
                                                  number_of(root, STR("step")),
                                                  number_of(root, STR("steps"))}};
        return true;
    }
    return false;
}

/* Whoever ran out of time, the job's own clock or a provider's: it is told as that. */
static enum run_job_state failure_of(const struct event *event) {
    return event->failed.code == ERR_DEADLINE_EXCEEDED ? RUN_JOB_TIMED_OUT : RUN_JOB_FAILED;
}

bool run_job_read(const struct event *event, struct run_job_note *ret) {
    switch (event->kind) {
    case EVENT_ITEM:
        return str_equal(event->item.type, STR(RUN_JOB_STATE)) &&
               read_state(event->item.bytes, ret);
    case EVENT_DONE: *ret = (struct run_job_note){.state = RUN_JOB_COMPLETED}; return true;
    case EVENT_FAILED: *ret = (struct run_job_note){.state = failure_of(event)}; return true;
    case EVENT_CANCELLED: *ret = (struct run_job_note){.state = RUN_JOB_CANCELLED}; return true;
    default: return false;
    }
}

bool run_job_is(const struct store_section *sections, size_t count) {
    struct event started = {0}, request = {0};
    struct err e;
    if (count == 0 || sections[0].first_seq != 1) return false;
    struct str rest = sections[0].events;
    return event_decode(&rest, &started, &e) && started.kind == EVENT_STARTED && rest.len &&
           event_decode(&rest, &request, &e) && request.kind == EVENT_ITEM &&
           str_equal(request.item.type, STR(RUN_JOB_REQUEST));
}

/* --- a live one --------------------------------------------------------------------------- */

struct run_job {
    struct run_host *host;
    struct engine *engine; /* a reference */
    const struct run_job_owner *owner;
    void *ctx;
    struct arena *names; /* what `live` and `claim` show */
    struct journal *journal;
    struct live live;
    struct claim claim; /* run 0: it has no key */
    enum run_job_state state;
    int64_t attempt;
    int64_t started_ms; /* Unix time */
    int64_t before_ms;  /* of its life, in earlier processes */
    uint64_t begun_ms;  /* in this one, by the loop */
    uint64_t submitted_seq, running_seq, ending_seq;
    bool kept;           /* what was submitted is on disk */
    bool begun;          /* the attempt is */
    struct task settle;  /* tells the owner, where no disk does */
    struct timer linger; /* one that is only in memory */
};

uint64_t run_job_id(const struct run_job *job) {
    return journal_run(job->journal);
}

struct journal *run_job_journal(const struct run_job *job) {
    return job->journal;
}

struct str run_job_user(const struct run_job *job) {
    return job->live.user;
}

int64_t run_job_started_ms(const struct run_job *job) {
    return job->started_ms;
}

static uint64_t append(struct run_job *job, struct event *event) {
    event->at_ms = job->before_ms + (int64_t)(loop_now_ms(job->host->loop) - job->begun_ms);
    event->agent = job->engine->agents[0].slug;
    return journal_append(job->journal, event);
}

/* The only function that writes job->state. */
static void move(struct run_job *job, enum run_job_state next) {
    static const int shown[RUN_JOB_STATE_COUNT] = {
        [RUN_JOB_SUBMITTED] = RUN_QUEUED,    [RUN_JOB_QUEUED] = RUN_QUEUED,
        [RUN_JOB_RUNNING] = RUN_WORKING,     [RUN_JOB_COMPLETED] = RUN_DONE,
        [RUN_JOB_FAILED] = RUN_FAILED,       [RUN_JOB_TIMED_OUT] = RUN_FAILED,
        [RUN_JOB_CANCELLED] = RUN_CANCELLED,
    };
    assert(run_job_may_become(job->state, next));
    job->state = next;
    atomic_store(&job->live.state, shown[next]);
}

/* --- its last event ----------------------------------------------------------------------- */

static void leave_tables(struct run_job *job) {
    struct session_table *sessions = job->engine->sessions;
    if (list_linked(&job->live.link))
        directory_remove(session_table_directory(sessions), &job->live);
    if (job->claim.run) claims_remove(session_table_claims(sessions), &job->claim);
    job->claim.run = 0;
}

static void tell_over(struct run_job *job) {
    leave_tables(job);
    job->owner->on_over(job->ctx);
}

static void on_linger(void *ctx) {
    tell_over(ctx);
}

static bool reached(uint64_t due, uint64_t seq) {
    return due && seq >= due;
}

/* Everything up to `seq` is on disk. */
static void on_durable(uint64_t seq, void *ctx) {
    struct run_job *job = ctx;
    if (reached(job->ending_seq, seq)) {
        tell_over(job);
        return;
    }
    if (job->ending_seq) return;
    if (!job->kept && reached(job->submitted_seq, seq)) {
        job->kept = true;
        job->owner->on_kept(job->ctx);
    } else if (!job->begun && reached(job->running_seq, seq)) {
        job->begun = true;
        job->owner->on_running(job->ctx);
    }
}

/* In memory. Who asks about the end finds it here for a while, unless nobody has been told yet
 * that there was a job. */
static void settle(void *ctx) {
    struct run_job *job = ctx;
    if (!job->ending_seq) {
        on_durable(journal_appended(job->journal), job);
    } else if (job->kept) {
        timer_start(&job->linger, RUN_JOB_LINGER_MS);
    } else {
        tell_over(job);
    }
}

static bool in_memory(const struct run_job *job) {
    return job->host->keeper == NULL;
}

static void end_with(struct run_job *job, struct event *event) {
    struct run_job_note note = {.state = RUN_JOB_FAILED};
    if (job->ending_seq) return;
    run_job_read(event, &note);
    move(job, note.state);
    job->ending_seq = append(job, event);
    if (in_memory(job)) loop_defer(job->host->loop, &job->settle);
}

/* What is true then is that it failed; the store still has it as one that is not over, so the
 * next process takes it up. */
static void on_lost(const struct err *why, void *ctx) {
    struct run_job *job = ctx;
    log_error("job %llu could not be written: %s", (unsigned long long)run_job_id(job),
              why->text);
    bool ended = job->ending_seq != 0;
    journal_retract(job->journal);
    struct event event = {
        .kind = EVENT_FAILED,
        .failed = {.code = ERR_UNAVAILABLE,
                   .reason = STR("STORE_UNAVAILABLE"),
                   .message = STR(
                       "what came of the job could not be stored; the server takes it up again "
                       "when it next starts")}};
    job->state = RUN_JOB_FAILED; /* whatever was about to be its end */
    atomic_store(&job->live.state, RUN_FAILED);
    job->ending_seq = append(job, &event);
    loop_defer(job->host->loop, &job->settle);
    if (!ended) job->owner->on_cancel(STR("the store is gone"), job->ctx);
}

void run_job_done(struct run_job *job, struct str model) {
    struct event event = {.kind = EVENT_DONE, .done = {model, STR_EMPTY}};
    end_with(job, &event);
}

void run_job_fail(struct run_job *job, enum err_code code, struct str reason,
                  struct str message) {
    struct event event = {.kind = EVENT_FAILED,
                          .failed = {.code = code, .reason = reason, .message = message}};
    end_with(job, &event);
}

void run_job_cancel(struct run_job *job, struct str why) {
    struct event event = {.kind = EVENT_CANCELLED, .cancelled = {.message = why}};
    end_with(job, &event);
}

/* --- on its way --------------------------------------------------------------------------- */

static void member(struct json_writer *out, const char *key, int64_t number) {
    if (number) json_member_i64(out, key, number);
}

static uint64_t note_state(struct run_job *job, const struct run_job_progress *progress) {
    struct buf text;
    buf_init(&text, STATE_MAX_BYTES);
    struct json_writer out = json_writer(&text);
    json_open_object(&out);
    json_member_str(&out, "state", run_job_state_name(job->state));
    member(&out, "attempt", job->attempt);
    member(&out, "percent", progress->percent);
    member(&out, "step", progress->step);
    member(&out, "steps", progress->steps);
    json_close(&out);
    struct event event = {.kind = EVENT_ITEM, .item = {STR(RUN_JOB_STATE), buf_str(&text)}};
    uint64_t seq = append(job, &event);
    buf_done(&text);
    return seq;
}

/* A state that counts only once it is on disk. */
static uint64_t enter_state(struct run_job *job) {
    uint64_t seq = note_state(job, &(struct run_job_progress){0});
    journal_gate(job->journal);
    if (in_memory(job)) loop_defer(job->host->loop, &job->settle);
    return seq;
}

void run_job_submit(struct run_job *job) {
    job->submitted_seq = enter_state(job);
}

void run_job_queue(struct run_job *job) {
    move(job, RUN_JOB_QUEUED);
    enter_state(job);
}

void run_job_run(struct run_job *job) {
    assert(job->state == RUN_JOB_QUEUED);
    move(job, RUN_JOB_RUNNING);
    job->attempt++;
    job->begun = false;
    job->running_seq = enter_state(job);
}

void run_job_tell(struct run_job *job, const struct run_job_progress *progress) {
    assert(job->state == RUN_JOB_RUNNING);
    move(job, RUN_JOB_RUNNING);
    note_state(job, progress);
}

void run_job_item(struct run_job *job, struct str type, struct str bytes) {
    struct event event = {.kind = EVENT_ITEM, .item = {type, bytes}};
    append(job, &event);
}

void run_job_usage(struct run_job *job, const struct event_usage *usage) {
    struct event event = {.kind = EVENT_USAGE, .usage = *usage};
    append(job, &event);
}

/* --- start -------------------------------------------------------------------------------- */

/* A job has no caller that could leave it. */
static void leave_live(struct leaving leaving, struct str why, void *ctx) {
    struct run_job *job = ctx;
    if (leaving.how != LEAVING_DETACHES && !job->ending_seq)
        job->owner->on_cancel(why, job->ctx);
}

static struct run_job *job_new(const struct run_job_options *options, uint64_t run,
                               uint64_t last_seq) {
    struct run_job *job = MEM_NEW(struct run_job);
    struct run_host *host = options->host;
    job->host = host;
    job->engine = engine_ref(options->engine);
    job->owner = options->owner;
    job->ctx = options->ctx;
    job->names = arena_new(NAMES_MAX_BYTES);
    job->begun_ms = loop_now_ms(host->loop);
    job->journal = journal_new(&(struct journal_options){.loop = host->loop,
                                                         .keeper = host->keeper,
                                                         .run = run,
                                                         .after_seq = last_seq,
                                                         .window_max_bytes = WINDOW_BYTES,
                                                         .on_durable = on_durable,
                                                         .on_lost = on_lost,
                                                         .ctx = job});
    job->live = (struct live){.run = run,
                              .journal = job->journal,
                              .loop = host->loop,
                              .session = STR_EMPTY,
                              .state = RUN_QUEUED,
                              .leave = leave_live,
                              .ctx = job};
    list_init(&job->live.link);
    list_init(&job->claim.link);
    task_init(&job->settle, settle, job);
    timer_init(&job->linger, host->loop, on_linger, job);
    return job;
}

void run_job_free(struct run_job *job) {
    if (!job) return;
    leave_tables(job);
    task_cancel(&job->settle);
    timer_stop(&job->linger);
    journal_leave(job->journal);
    journal_unref(job->journal);
    engine_unref(job->engine);
    arena_free(job->names);
    free(job);
}

static bool keep_names(struct run_job *job, const struct run_job_options *options) {
    struct claim_name *name = &job->claim.name;
    bool kept = arena_str(job->names, options->workspace, &name->workspace) &&
                arena_str(job->names, options->user, &name->user) &&
                arena_str(job->names, options->key, &name->key) &&
                arena_str(job->names, options->print, &job->claim.print);
    job->live.workspace = name->workspace;
    job->live.user = name->user;
    return kept;
}

/* With the key's lock held, if it has one: whoever has the same key finds this job, or none. */
static bool enter_tables(struct run_job *job, uint64_t key_mark, struct err *e) {
    struct session_table *sessions = job->engine->sessions;
    struct claims *claims = session_table_claims(sessions);
    const struct claim_name *name = &job->claim.name;
    if (name->key.len && !claims_begin(claims, name, key_mark))
        return err_set(e, ERR_ALREADY_EXISTS, "another request with this key came first");
    directory_add(session_table_directory(sessions), &job->live);
    if (!name->key.len) return true;
    job->claim.run = run_job_id(job);
    claims_end(claims, name, &job->claim);
    return true;
}

bool run_job_start(const struct run_job_options *options, struct run_job **ret, struct err *e) {
    struct run_job *job = job_new(options, record_next_id(options->engine), 0);
    bool kept = keep_names(job, options) ||
                err_set(e, ERR_RESOURCE_EXHAUSTED, "the names in the request are too long");
    if (!kept || !enter_tables(job, options->key_mark, e)) {
        run_job_free(job);
        return false;
    }
    job->started_ms = clock_unix_ms();
    struct event started = {.kind = EVENT_STARTED,
                            .started = {.workspace = options->workspace,
                                        .user = options->user,
                                        .session = STR_EMPTY,
                                        .text = options->text,
                                        .contract = options->contract,
                                        .unix_ms = job->started_ms,
                                        .key = options->key,
                                        .print = options->print}};
    append(job, &started);
    run_job_item(job, STR(RUN_JOB_REQUEST), options->request);
    *ret = job;
    return true;
}

struct run_job *run_job_resume(const struct run_job_options *options,
                               const struct run_job_left *left) {
    struct run_job *job = job_new(options, left->run, left->last_seq);
    struct err e;
    int64_t age_ms = clock_unix_ms() - left->started_ms;
    job->started_ms = left->started_ms;
    job->state = left->note.state;
    job->attempt = left->note.attempt;
    job->before_ms = age_ms > left->last_at_ms ? age_ms : left->last_at_ms;
    job->kept = true;
    bool entered = keep_names(job, options) && enter_tables(job, 0, &e);
    assert(entered); /* names that were kept before, and no key */
    (void)entered;
    return job;
}
