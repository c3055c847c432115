#include "job/run_job.h"

#include "base/clock.h"
#include "base/mem.h"
#include "job/job_span.h"
#include "record/record.h"
#include "wire/json.h"

#include <assert.h>
#include <stdlib.h>

#define WINDOW_BYTES (512 * KIB) /* late readers get older events from the store */
#define NAMES_MAX_BYTES (16 * MIB)
#define STATE_MAX_BYTES 256

/* --- states ------------------------------------------------------------------------------- */

#define ENDS (TO(RUN_JOB_FAILED) | TO(RUN_JOB_CANCELLED) | TO(RUN_JOB_TIMED_OUT))

/* A running job reports progress by moving to running again; one that lost its process is
 * queued. */
const struct state run_job_states[RUN_JOB_STATE_COUNT] = {
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

bool run_job_is_over(enum run_job_state state) {
    return run_job_states[state].may_become == 0;
}

/* --- reading ------------------------------------------------------------------------------ */

static int64_t run_job_number_of(struct json object, struct str key) {
    int64_t number = 0;
    return json_i64(json_find(object, key), &number) && number > 0 ? number : 0;
}

static bool read_state(struct str bytes, struct run_job_note *ret) {
    struct json root;
    struct err e;
    if (!json_read(bytes, &root, &e)) return false;
    for (enum run_job_state state = 0; state < RUN_JOB_COMPLETED; state++) {
        if (!json_is(json_find(root, STR("state")), states_name(run_job_states, state)))
            continue;
        *ret = (struct run_job_note){.state = state,
                                     .attempt = run_job_number_of(root, STR("attempt")),
                                     .progress = {run_job_number_of(root, STR("percent")),
                                                  run_job_number_of(root, STR("step")),
                                                  run_job_number_of(root, STR("steps"))}};
        return true;
    }
    return false;
}

/* A timeout is reported as one, whether it was the job's own clock or a provider's. */
static enum run_job_state run_job_failure_of(const struct event *event) {
    return event->failed.code == ERR_DEADLINE_EXCEEDED ? RUN_JOB_TIMED_OUT : RUN_JOB_FAILED;
}

bool run_job_read(const struct event *event, struct run_job_note *ret) {
    switch (event->kind) {
    case EVENT_ITEM:
        return str_equal(event->item.type, STR(RUN_JOB_STATE)) &&
               read_state(event->item.bytes, ret);
    case EVENT_DONE: *ret = (struct run_job_note){.state = RUN_JOB_COMPLETED}; return true;
    case EVENT_FAILED:
        *ret = (struct run_job_note){.state = run_job_failure_of(event)};
        return true;
    case EVENT_CANCELLED: *ret = (struct run_job_note){.state = RUN_JOB_CANCELLED}; return true;
    default: return false;
    }
}

/* A large request is in a section of its own. */
bool run_job_is(const struct store_section *sections, size_t count) {
    enum { STARTED, REQUEST } next = STARTED;
    struct err e;
    if (count == 0 || sections[0].first_seq != 1) return false;
    for (size_t i = 0; i < count; i++) {
        struct str rest = sections[i].events;
        while (rest.len) {
            struct event event = {0};
            if (!event_decode(&rest, &event, &e)) return false;
            if (next == REQUEST)
                return event.kind == EVENT_ITEM &&
                       str_equal(event.item.type, STR(RUN_JOB_REQUEST));
            if (event.kind != EVENT_STARTED) return false;
            next = REQUEST;
        }
    }
    return false;
}

/* --- a live job --------------------------------------------------------------------------- */

struct run_job {
    struct record record;
    const struct run_job_owner *owner;
    void *ctx;
    struct arena *names; /* holds the names in the record */
    enum run_job_state state;
    int64_t attempt;
    int64_t started_ms; /* Unix time */
    struct str contract;
    const struct trace_context *submitter; /* NULL: it has no trace */
    struct job_span span;                  /* of the attempt that runs */
    /* 0, or awaited: the owner is called when it is on disk. */
    uint64_t submitted_seq, running_seq;
};

uint64_t run_job_id(const struct run_job *job) {
    return record_id(&job->record);
}

struct journal *run_job_journal(const struct run_job *job) {
    return job->record.journal;
}

struct str run_job_user(const struct run_job *job) {
    return job->record.live.user;
}

const struct trace_context *run_job_trace(const struct run_job *job) {
    return job->span.wanted ? job->span.passed : job->submitter;
}

int64_t run_job_started_ms(const struct run_job *job) {
    return job->started_ms;
}

/* The only function that writes job->state, except that a resumed job starts in its stored
 * state. */
static void job_move(struct run_job *job, enum run_job_state next) {
    assert(states_allow(run_job_states, job->state, next));
    job->state = next;
    record_show(&job->record, next == RUN_JOB_RUNNING ? RUN_WORKING : RUN_QUEUED);
}

/* --- the record's calls ------------------------------------------------------------------- */

static void job_over(void *ctx) {
    struct run_job *job = ctx;
    job->owner->on_over(job->ctx);
}

/* True once, when `seq` has reached *due. */
static bool reached(uint64_t *due, uint64_t seq) {
    if (!*due || seq < *due) return false;
    *due = 0;
    return true;
}

/* Once a caller knows of the job, it lingers, so that it can be looked up even if its end
 * cannot be stored. */
static void job_durable(uint64_t seq, void *ctx) {
    struct run_job *job = ctx;
    if (reached(&job->submitted_seq, seq)) {
        job->record.linger_ms = RUN_JOB_LINGER_MS;
        job->owner->on_kept(job->ctx);
    } else if (reached(&job->running_seq, seq)) {
        job->owner->on_running(job->ctx);
    }
}

static void job_end_span(struct run_job *job, const struct event *last) {
    job_span_end_attempt(&job->span,
                         &(struct job_span_end){.contract = job->contract,
                                                .attempt = job->attempt,
                                                .run = record_id(&job->record),
                                                .now_ms = loop_now_ms(job->record.host->loop),
                                                .last = last});
}

/* Only the last event says how the job ended. The record is then ending; job->state does not
 * change. */
static void job_end(struct run_job *job, struct event *event) {
    struct run_job_note end = {.state = RUN_JOB_FAILED};
    if (record_is_ending(&job->record)) return;
    run_job_read(event, &end);
    assert(states_allow(run_job_states, job->state, end.state));
    job_end_span(job, event);
    record_append(&job->record, event);
}

/* For this process the job has failed. In the store it is unfinished, so the next process
 * resumes it. */
static void job_lost(const struct err *why, void *ctx) {
    struct run_job *job = ctx;
    bool ended = job->record.ending_seq != 0;
    (void)why;
    run_job_fail(
        job, ERR_UNAVAILABLE, STR("STORE_UNAVAILABLE"),
        STR("what came of the job could not be stored; the server takes it up again when it "
            "next starts"));
    if (!ended) job->owner->on_cancel(STR("the store is gone"), job->ctx);
}

/* A job has no caller that could leave. */
static void job_leave(struct leaving leaving, struct str why, void *ctx) {
    struct run_job *job = ctx;
    if (leaving.how != LEAVING_DETACHES && !record_is_ending(&job->record))
        job->owner->on_cancel(why, job->ctx);
}

static const struct record_events job_events = {
    .on_durable = job_durable, .on_lost = job_lost, .on_over = job_over, .leave = job_leave};

/* --- its last event ----------------------------------------------------------------------- */

void run_job_done(struct run_job *job, struct str model) {
    struct event event = {.kind = EVENT_DONE, .done = {model, STR_EMPTY}};
    job_end(job, &event);
}

void run_job_fail(struct run_job *job, enum err_code code, struct str reason,
                  struct str message) {
    struct event event = {.kind = EVENT_FAILED,
                          .failed = {.code = code, .reason = reason, .message = message}};
    job_end(job, &event);
}

void run_job_cancel(struct run_job *job, struct str why) {
    struct event event = {.kind = EVENT_CANCELLED, .cancelled = {.message = why}};
    job_end(job, &event);
}

/* --- state and items ---------------------------------------------------------------------- */

static void run_job_member(struct json_writer *out, const char *key, int64_t number) {
    if (number) json_member_i64(out, key, number);
}

static uint64_t note_state(struct run_job *job, const struct run_job_progress *progress) {
    struct buf text;
    buf_init(&text, STATE_MAX_BYTES);
    struct json_writer out = json_writer(&text);
    json_open_object(&out);
    json_member_str(&out, "state", states_name(run_job_states, job->state));
    run_job_member(&out, "attempt", job->attempt);
    run_job_member(&out, "percent", progress->percent);
    run_job_member(&out, "step", progress->step);
    run_job_member(&out, "steps", progress->steps);
    json_close(&out);
    struct event event = {.kind = EVENT_ITEM, .item = {STR(RUN_JOB_STATE), buf_str(&text)}};
    uint64_t seq = record_append(&job->record, &event);
    buf_done(&text);
    return seq;
}

/* Enter a state that counts only once it is on disk. */
static uint64_t enter_state(struct run_job *job) {
    uint64_t seq = note_state(job, &(struct run_job_progress){0});
    record_gate(&job->record);
    return seq;
}

void run_job_submit(struct run_job *job) {
    job->submitted_seq = enter_state(job);
}

void run_job_queue(struct run_job *job) {
    job_move(job, RUN_JOB_QUEUED);
    enter_state(job);
}

void run_job_run(struct run_job *job) {
    assert(job->state == RUN_JOB_QUEUED);
    job_move(job, RUN_JOB_RUNNING);
    job->attempt++;
    job_span_begin(&job->span, job->submitter, loop_now_ms(job->record.host->loop));
    job->running_seq = enter_state(job);
}

void run_job_report(struct run_job *job, const struct run_job_progress *progress) {
    assert(job->state == RUN_JOB_RUNNING);
    job_move(job, RUN_JOB_RUNNING);
    note_state(job, progress);
}

void run_job_item(struct run_job *job, struct str type, struct str bytes) {
    struct event event = {.kind = EVENT_ITEM, .item = {type, bytes}};
    record_append(&job->record, &event);
}

void run_job_gate(struct run_job *job) {
    record_gate(&job->record);
}

void run_job_usage(struct run_job *job, const struct event_usage *usage) {
    struct event event = {.kind = EVENT_USAGE, .usage = *usage};
    record_append(&job->record, &event);
}

/* --- start -------------------------------------------------------------------------------- */

static struct run_job *job_new(const struct run_job_options *options, uint64_t run,
                               uint64_t last_seq, enum run_job_state state) {
    struct run_job *job = MEM_NEW(struct run_job);
    *job = (struct run_job){.owner = options->owner,
                            .ctx = options->ctx,
                            .names = arena_new(NAMES_MAX_BYTES),
                            .state = state};
    record_init(&job->record, &(struct record_options){.what = "job",
                                                       .host = options->host,
                                                       .engine = options->engine,
                                                       .run = run,
                                                       .after_seq = last_seq,
                                                       .window_max_bytes = WINDOW_BYTES,
                                                       .agent = options->engine->agents[0].slug,
                                                       .events = &job_events,
                                                       .ctx = job});
    return job;
}

/* An attempt that is cut short by the end of the process has a span, too: others are its children. */
void run_job_free(struct run_job *job) {
    if (!job) return;
    job_end_span(job, NULL);
    record_leave(&job->record);
    record_done(&job->record);
    arena_free(job->names);
    free(job);
}

static bool keep_names(struct run_job *job, const struct run_job_options *options) {
    struct claim *claim = &job->record.claim;
    return arena_str(job->names, options->workspace, &claim->name.workspace) &&
           arena_str(job->names, options->user, &claim->name.user) &&
           arena_str(job->names, options->key, &claim->name.key) &&
           arena_str(job->names, options->print, &claim->print) &&
           arena_str(job->names, options->contract, &job->contract);
}

static bool keep_trace(struct run_job *job, const struct trace_context *trace) {
    if (!trace) return true;
    job->submitter = trace_context_copy(trace, job->names);
    return job->submitter != NULL;
}

/* The text for its first event. */
static bool keep_trace_text(struct run_job *job, struct str *ret) {
    struct buf text;
    if (!job->submitter) return false;
    buf_init(&text, KIB);
    trace_context_put(job->submitter, &text);
    bool kept = arena_str(job->names, buf_str(&text), ret);
    buf_done(&text);
    return kept;
}

static void restore_trace(struct run_job *job, struct str text) {
    struct trace_context trace;
    if (trace_context_take(text, &trace)) (void)keep_trace(job, &trace);
}

/* Both at once: another request with the same key finds this job, or no job. */
static bool enter_tables(struct run_job *job, uint64_t key_mark, struct err *e) {
    const struct claim_name *name = &job->record.claim.name;
    if (!record_claim(&job->record, key_mark, e)) return false;
    record_enter(&job->record, &(struct session_name){name->workspace, name->user, STR_EMPTY},
                 RUN_QUEUED);
    record_claimed(&job->record, true);
    return true;
}

bool run_job_start(const struct run_job_options *options, struct run_job **ret, struct err *e) {
    struct run_job *job = job_new(options, 0, 0, RUN_JOB_SUBMITTED);
    bool kept = (keep_names(job, options) && keep_trace(job, options->trace)) ||
                err_set(e, ERR_RESOURCE_EXHAUSTED, "the names in the request are too long");
    if (!kept || !enter_tables(job, options->key_mark, e)) {
        run_job_free(job);
        return false;
    }
    struct event started = record_started(&job->record, options->text, options->contract);
    job->started_ms = started.started.unix_ms;
    if (!keep_trace_text(job, &started.started.trace)) started.started.trace = STR_EMPTY;
    record_append(&job->record, &started);
    run_job_item(job, STR(RUN_JOB_REQUEST), options->request);
    *ret = job;
    return true;
}

struct run_job *run_job_resume(const struct run_job_options *options,
                               const struct run_job_left *left) {
    struct run_job *job = job_new(options, left->run, left->last_seq, left->note.state);
    struct err e;
    int64_t age_ms = clock_unix_ms() - left->started_ms;
    job->started_ms = left->started_ms;
    job->attempt = left->note.attempt;
    job->record.before_ms = age_ms > left->last_at_ms ? age_ms : left->last_at_ms;
    job->record.linger_ms = RUN_JOB_LINGER_MS; /* a caller knows of it */
    restore_trace(job, left->trace);
    bool entered = keep_names(job, options) && enter_tables(job, 0, &e);
    assert(entered); /* the names fitted before, and there is no key */
    (void)entered;
    return job;
}
