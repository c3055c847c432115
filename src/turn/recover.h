/* recover: take up the runs of a dead process.
 *
 * A run that waited for a human waits again. A job is handed to the contract that serves jobs;
 * without one it is left as it is. Every other unfinished run is recorded as interrupted. Where
 * replicas share the store, only the runs of those that died are taken up (store/takeover.h).
 *
 * Memory   owns what it needs until `done` has run, or until it is stopped.
 * Threads  the host's loop.
 * Source   checks.md K26. */
#ifndef WEIR_TURN_RECOVER_H
#define WEIR_TURN_RECOVER_H

#include "turn/run.h"

struct recovered {
    size_t interrupted, waiting; /* runs */
    size_t jobs;                 /* that were taken up */
    size_t jobs_left;            /* without a contract that serves them */
    bool inherited;              /* there were runs of replicas that died */
    size_t effects_unknown;      /* calls of these runs that were made but not answered */
};

/* Called once, when every waiting run can be answered: what was found, or why recovery
 * failed. */
typedef void recovered_fn(const struct recovered *found, const struct err *failed, void *ctx);

/* The taker of jobs: gets one job's sections in the store, on the host's loop; only the first of
 * them if it is not `whole`. False: it cannot be taken up, and is recorded as interrupted. */
struct recover_jobs {
    bool (*take)(uint64_t run, const struct store_section *sections, size_t count, bool whole,
                 void *ctx);
    void *ctx;
};

/* `engine` is lent until this returns. */
typedef void recover_engine_fn(struct engine *engine, void *ctx);

/* Find the engine with the agents of a conversation that began over `contract`. The engine is
 * lent until the end of the loop's turn. NULL: `answer` comes later, unless leave(*ret_ask) is
 * called first. */
struct recover_agents {
    struct engine *(*find)(struct str contract, const struct session_name *name,
                           recover_engine_fn *answer, void *answer_ctx, void **ret_ask,
                           void *ctx);
    void (*leave)(void *ask);
    void *ctx;
};

struct recover_helpers {
    struct recover_jobs jobs;     /* take NULL: leave jobs for a process that serves them */
    struct recover_agents agents; /* find NULL: use the agents of the host's engine */
};

struct recovery;

/* Start recovering. Runs that wait belong to `host` from now on. `helpers` may be NULL. The
 * result is valid until `done` has run. */
struct recovery *recover_start(struct store *store, struct run_host *host,
                               const struct recover_helpers *helpers, recovered_fn *done,
                               void *ctx);

/* Stop. Nothing more is read, and `done` never runs. What was not taken up is left for the next
 * process. NULL is fine. */
void recover_stop(struct recovery *recovery);

#endif
