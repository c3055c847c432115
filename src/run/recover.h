/* recover: take up what a dead process left behind.
 *
 * A run that waited for a human waits again; a job goes on with whoever serves jobs, and
 * without anybody who does it stays as it is; every other run that was not over is told to have
 * been interrupted.
 *
 * Memory   owns what it needs until `done`, or until it is stopped.
 * Threads  the host's loop.
 * Source   checks.md K26.
 */
#ifndef WEIR_RUN_RECOVER_H
#define WEIR_RUN_RECOVER_H

#include "run/run.h"

struct recovered {
    size_t interrupted, waiting; /* runs */
    size_t jobs;                 /* that go on */
    size_t jobs_left;            /* that nobody here goes on with */
    size_t effects_unknown;      /* calls of theirs that were made and not answered */
};

/* Once, when every run that waits can be answered: what was found, or what kept it from being
 * taken up. */
typedef void recovered_fn(const struct recovered *found, const struct err *failed, void *ctx);

/* Who goes on with jobs: takes the sections of one, all that the store has, on the host's loop.
 */
struct recover_jobs {
    void (*take)(uint64_t run, const struct store_section *sections, size_t count, void *ctx);
    void *ctx;
};

/* `engine` is lent until this returns. */
typedef void recover_engine_fn(struct engine *engine, void *ctx);

/* Whose agents a conversation has that began over `contract`: the engine, lent until the loop's
 * turn is over; or NULL, and `answer` comes later, unless leave() is told *ret_ask before. */
struct recover_agents {
    struct engine *(*find)(struct str contract, const struct session_name *name,
                           recover_engine_fn *answer, void *answer_ctx, void **ret_ask,
                           void *ctx);
    void (*leave)(void *ask);
    void *ctx;
};

struct recover_helpers {
    struct recover_jobs jobs;     /* take NULL: jobs are left for a process that serves them */
    struct recover_agents agents; /* find NULL: all have the agents of the host's engine */
};

struct recovery;

/* Runs that wait belong to `host` from now on. helpers: NULL is fine. The answer is valid until
 * `done` has run. */
struct recovery *recover_start(struct store *store, struct run_host *host,
                               const struct recover_helpers *helpers, recovered_fn *done,
                               void *ctx);

/* Nothing more is asked of anybody, and `done` never runs: what was not taken up is left for
 * the next process. NULL is fine. */
void recover_stop(struct recovery *recovery);

#endif
