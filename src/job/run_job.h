/* run_job: a run that needs no caller. It is submitted once, continues by itself, and is taken
 * up again by the next process.
 *
 *     submitted ─▶ queued ⇄ running ─▶ completed | failed | cancelled | timed out
 *
 * Its journal holds everything about it, so every reader sees the same, now or after a restart:
 *
 *     started                 who asked, when, under which key
 *     item RUN_JOB_REQUEST    what was asked, in the words of its contract
 *     item RUN_JOB_STATE      submitted, queued, running (attempt, progress): one each time
 *     item ...                what its contract notes: results, artifacts
 *     done | failed | cancelled
 *
 * Each attempt is a span (spans/spans.h), "process CONTRACT": a child of the submitter's span, also
 * after a restart, for the submitter's trace is in the first event. So one trace holds who asked
 * and what came of it, and the time in between is the time in the queue.
 *
 * This module keeps the journal and the job's place in the tables of live runs; what the job
 * does is its owner's business. A job whose end could not be written stays for a while, so that
 * its callers can still learn how it ended.
 *
 * Memory   owned by the caller that started it, until run_job_free().
 * Threads  the loop of its host; the journal may be read from any.
 * Source   design.md "Words"; checks.md K26, R-5; OpenTelemetry semantic conventions, "Messaging
 *          spans", "Consumer spans".
 */
#ifndef WEIR_JOB_RUN_JOB_H
#define WEIR_JOB_RUN_JOB_H

#include "base/states.h"
#include "engine/engine.h"
#include "journal/journal.h"
#include "wire/trace_context.h"

#define RUN_JOB_REQUEST "application/vnd.weir.job.request"
#define RUN_JOB_STATE "application/vnd.weir.job.state+json"

/* How long a finished job that is only in memory stays. */
#define RUN_JOB_LINGER_MS (30 * 60 * 1000)

enum run_job_state {
    RUN_JOB_SUBMITTED,
    RUN_JOB_QUEUED,
    RUN_JOB_RUNNING,
    RUN_JOB_COMPLETED,
    RUN_JOB_FAILED,
    RUN_JOB_CANCELLED,
    RUN_JOB_TIMED_OUT,
    RUN_JOB_STATE_COUNT,
};

extern const struct state run_job_states[RUN_JOB_STATE_COUNT];
bool run_job_is_over(enum run_job_state state);

/* --- reading ------------------------------------------------------------------------------ */

/* `percent` of 100, `step` of `steps`; all 0: unknown. */
struct run_job_progress {
    int64_t percent, step, steps;
};

struct run_job_note {
    enum run_job_state state;
    int64_t attempt; /* counted from 1; 0: none yet, or not in the event */
    struct run_job_progress progress;
};

/* Read the job state that `event` reports. False: it reports none. */
bool run_job_read(const struct event *event, struct run_job_note *ret);

/* Whether a stored run is a job. `sections` are its first ones. */
bool run_job_is(const struct store_section *sections, size_t count);

/* --- life --------------------------------------------------------------------------------- */

struct run_job;

/* All are called on the host's loop, never from inside a call to this header. */
struct run_job_owner {
    void (*on_kept)(void *ctx);    /* the submitted job is on disk; not for a resumed one */
    void (*on_running)(void *ctx); /* the attempt is on disk: it may have effects now */
    /* The job is to end: call run_job_cancel() with this reason. Or it has ended already,
     * because the disk failed. */
    void (*on_cancel)(struct str why, void *ctx);
    void (*on_over)(void *ctx); /* the last call: it is no longer live; free it */
};

struct run_job_options {
    struct run_host *host;
    struct engine *engine; /* a reference is taken */
    struct str workspace, user;
    struct str text;     /* what is asked, for people who read it later */
    struct str contract; /* the contract it came in by */
    struct str request;
    struct str key, print; /* as struct run_request has them */
    uint64_t key_mark;
    const struct trace_context *trace; /* of who submits it; NULL: there is none; copied */
    const struct run_job_owner *owner;
    void *ctx;
};

/* Begin its journal. The owner may add items and then submits it.
 * errors  ERR_ALREADY_EXISTS the key was taken since the look-up: look again */
MUST_CHECK bool run_job_start(const struct run_job_options *options, struct run_job **ret,
                              struct err *e);

/* No reader sees it before it is on disk; on_kept then comes. If the store refuses it, the job
 * has failed and is over at once. */
void run_job_submit(struct run_job *job);

/* The state in which an earlier process left a job. */
struct run_job_left {
    uint64_t run, last_seq;
    int64_t started_ms; /* Unix time */
    int64_t last_at_ms; /* of its last event */
    struct str trace;   /* as its first event has it; copied */
    struct run_job_note note;
};

/* Only host, engine, workspace, user, contract, owner and ctx of the options are used. */
struct run_job *run_job_resume(const struct run_job_options *options,
                               const struct run_job_left *left);

/* After on_over; or before it, to leave the job as it is for the next process. NULL is fine. */
void run_job_free(struct run_job *job);

uint64_t run_job_id(const struct run_job *job);
struct journal *run_job_journal(const struct run_job *job);
struct str run_job_user(const struct run_job *job);
int64_t run_job_started_ms(const struct run_job *job); /* Unix time */

/* The trace of what the attempt asks: its span is the parent of theirs. NULL: there is none. */
const struct trace_context *run_job_trace(const struct run_job *job);

/* --- moving ------------------------------------------------------------------------------- */

/* Readers see these moves once they are on disk, so that no attempt is forgotten. */
void run_job_queue(struct run_job *job);
void run_job_run(struct run_job *job); /* the next attempt; on_running follows */

/* Report its progress while it runs. It is written with the next commit. */
void run_job_report(struct run_job *job, const struct run_job_progress *progress);

void run_job_item(struct run_job *job, struct str type, struct str bytes);
/* Hide what was appended last, and all that follows, until it is on disk: what a reader has seen
 * stays true after a crash. */
void run_job_gate(struct run_job *job);

void run_job_usage(struct run_job *job, const struct event_usage *usage);

/* End it. Harmless once it has begun to end. */
void run_job_done(struct run_job *job, struct str model);
void run_job_fail(struct run_job *job, enum err_code code, struct str reason,
                  struct str message);
void run_job_cancel(struct run_job *job, struct str why);

#endif
