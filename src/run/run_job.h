/* run_job: a run that needs no caller: it is asked for once, goes on by itself, and is taken up
 * again by the next process.
 *
 *     submitted ─▶ queued ⇄ running ─▶ completed | failed | cancelled | timed out
 *
 * Everything about it stands in its journal, so whoever reads the journal, now or after a
 * restart, sees the same:
 *
 *     started                 who asked, when, under which key
 *     item RUN_JOB_REQUEST    what was asked, in the words of its contract
 *     item RUN_JOB_STATE      submitted, queued, running (attempt, progress): one each time
 *     item ...                what its contract notes: results, artifacts
 *     done | failed | cancelled
 *
 * This module keeps the journal and its place in the tables of live runs; what is done in a
 * job, and by whom, its owner knows. One whose end could not be written stays for a while, so
 * that its callers still hear of it.
 *
 * Memory   owned by whoever started it, until run_job_free().
 * Threads  the loop of its host; the journal may be read from any.
 * Source   design.md "Words"; checks.md K26, R-5.
 */
#ifndef WEIR_RUN_RUN_JOB_H
#define WEIR_RUN_RUN_JOB_H

#include "journal/journal.h"
#include "run/engine.h"

#define RUN_JOB_REQUEST "application/vnd.weir.job.request"
#define RUN_JOB_STATE "application/vnd.weir.job.state+json"

/* How long one that is only in memory stays once it is over. */
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

struct str run_job_state_name(enum run_job_state state);
bool run_job_may_become(enum run_job_state state, enum run_job_state next);
bool run_job_is_over(enum run_job_state state);

/* --- reading ------------------------------------------------------------------------------ */

/* Of 100, and of `steps`; all 0: nobody knows. */
struct run_job_progress {
    int64_t percent, step, steps;
};

struct run_job_note {
    enum run_job_state state;
    int64_t attempt; /* counted from 1; 0: none yet, or the event does not say */
    struct run_job_progress progress;
};

/* What `event` says about the state of its job; false: nothing. */
bool run_job_read(const struct event *event, struct run_job_note *ret);

/* Whether the sections, the beginning of what the store has of a run, are those of a job. */
bool run_job_is(const struct store_section *sections, size_t count);

/* --- life --------------------------------------------------------------------------------- */

struct run_job;

/* All on the host's loop, never from inside a call to this header. */
struct run_job_owner {
    void (*on_kept)(void *ctx); /* what was submitted is on disk; not for one that is resumed */
    void (*on_running)(void *ctx); /* the attempt is on disk: it may have effects from now on */
    /* Somebody wants it to end: run_job_cancel() with these words; or it has ended, because the
     * disk is gone. */
    void (*on_cancel)(struct str why, void *ctx);
    void (*on_over)(void *ctx); /* the last thing: nobody finds it as a live one: free it */
};

struct run_job_options {
    struct run_host *host;
    struct engine *engine; /* a reference is taken */
    struct str workspace, user;
    struct str text;     /* what is asked, for whoever looks at it later */
    struct str contract; /* which wire it came in by */
    struct str request;
    struct str key, print; /* as struct run_request has them */
    uint64_t key_mark;
    const struct run_job_owner *owner;
    void *ctx;
};

/* Begin its journal; the owner may add items, and then submits it.
 * errors  ERR_ALREADY_EXISTS the key was taken since it was looked at: look again */
MUST_CHECK bool run_job_start(const struct run_job_options *options, struct run_job **ret,
                              struct err *e);

/* Nobody sees it before it is on disk; then on_kept is told. One that does not get there has
 * failed, and is over at once. */
void run_job_submit(struct run_job *job);

/* Where an earlier process left it. */
struct run_job_left {
    uint64_t run, last_seq;
    int64_t started_ms; /* Unix time */
    int64_t last_at_ms; /* of its last event */
    struct run_job_note note;
};

/* Of the options only host, engine, workspace, user, owner and ctx count. */
struct run_job *run_job_resume(const struct run_job_options *options,
                               const struct run_job_left *left);

/* It is over and its owner was told; or it is left as it is, for the next process. NULL is
 * fine.
 */
void run_job_free(struct run_job *job);

uint64_t run_job_id(const struct run_job *job);
struct journal *run_job_journal(const struct run_job *job);
struct str run_job_user(const struct run_job *job);
int64_t run_job_started_ms(const struct run_job *job); /* Unix time */

/* --- moving ------------------------------------------------------------------------------- */

/* Seen when they are on disk, so that no attempt is forgotten. */
void run_job_queue(struct run_job *job);
void run_job_run(struct run_job *job); /* the next attempt; on_running is due */

/* How far it is, while it runs; rides the next commit. */
void run_job_tell(struct run_job *job, const struct run_job_progress *progress);

void run_job_item(struct run_job *job, struct str type, struct str bytes);
void run_job_usage(struct run_job *job, const struct event_usage *usage);

/* End it. Harmless once it has begun to end. */
void run_job_done(struct run_job *job, struct str model);
void run_job_fail(struct run_job *job, enum err_code code, struct str reason,
                  struct str message);
void run_job_cancel(struct run_job *job, struct str why);

#endif
