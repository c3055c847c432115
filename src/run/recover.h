/* recover: take up what a dead process left behind.
 *
 * A run that waited for a human waits again; every other run that was not over is told to have
 * been interrupted.
 *
 * Memory   owns what it needs until `done`.
 * Threads  the host's loop.
 * Source   checks.md K26.
 */
#ifndef WEIR_RUN_RECOVER_H
#define WEIR_RUN_RECOVER_H

#include "run/run.h"

struct recovered {
    size_t interrupted, waiting; /* runs */
    size_t effects_unknown;      /* calls of theirs that were made and not answered */
};

/* Once, when every run that waits can be answered: what was found, or what kept it from being
 * taken up. */
typedef void recovered_fn(const struct recovered *found, const struct err *failed, void *ctx);

/* Runs that wait belong to `host` from now on. */
void recover_start(struct store *store, struct run_host *host, recovered_fn *done, void *ctx);

#endif
