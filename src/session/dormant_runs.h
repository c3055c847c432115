/* dormant_runs: the runs that wait for a human and are only in the store.
 *
 * A waiting run without readers leaves memory after a while (dormant_wake.h). A small entry
 * stays here: enough to know that a run waits under a name, and until when, but not what it
 * asks. Names are kept as keyed hashes; the names themselves are read from the store when the
 * run wakes.
 *
 * Search the live runs first and then here, because a run is entered here before it leaves the
 * directory. A run found in neither may have come back in between. What a dormant run asks is in
 * its events, and so in store/waiting_list.h. If all that wait seem to be live, look at the live ones,
 * and ask the store all the same if dormant_runs_added() has changed.
 *
 * A filter may match a run of other names, though rarely: compare the names themselves.
 *
 * Memory   56 bytes a run; a reference to its engine. Borrows the hosts; each removes its own
 *          runs with dormant_runs_forget().
 * Threads  any; one lock inside. Add, take and forget: the run's loop.
 * Source   checks.md L2, K26.
 */
#ifndef WEIR_SESSION_DORMANT_RUNS_H
#define WEIR_SESSION_DORMANT_RUNS_H

#include "base/str.h"

struct dormant_runs;
struct engine;
struct run_host;

/* What a run needs to go on waiting and its events do not have. */
struct dormant_run {
    uint64_t run;
    struct engine *engine; /* the one that the run began with */
    struct run_host *host;
    uint32_t alone_s;         /* seconds it was detached for, below 2^20; 0: for ever */
    unsigned short transfers; /* below 2^11 */
    bool addressed;
    int64_t deadline_unix_ms; /* 0: none */
};

/* Which runs are meant; at == NULL: any. */
struct dormant_filter {
    struct str workspace, user, session; /* a session only with its workspace */
    uint64_t run;                        /* this one alone; 0: all */
};

struct dormant_runs *dormant_runs_new(void);
void dormant_runs_free(struct dormant_runs *dormant); /* must be empty; NULL is fine */

/* Takes a reference to the engine. */
void dormant_runs_add(struct dormant_runs *dormant, const struct dormant_run *run,
                      struct str workspace, struct str user, struct str session);

/* What was added under this id. The engine is borrowed until the entry is removed. */
MUST_CHECK bool dormant_runs_find(struct dormant_runs *dormant, uint64_t run,
                                  struct dormant_run *ret);

/* Remove it and drop its reference to the engine. Harmless when there is no such run. */
void dormant_runs_remove(struct dormant_runs *dormant, uint64_t run);

/* Remove all runs of a host that goes away. */
void dormant_runs_forget(struct dormant_runs *dormant, const struct run_host *host);

size_t dormant_runs_count(const struct dormant_runs *dormant);

/* How many were ever added. Any thread. */
uint64_t dormant_runs_added(const struct dormant_runs *dormant);

/* Whether the filter matches any run. */
bool dormant_runs_has(struct dormant_runs *dormant, const struct dormant_filter *filter);

/* The ids of the runs that match, `max` at most: in the order in which they became dormant
 * where the filter names a session or a run, else lowest first. */
size_t dormant_runs_list(struct dormant_runs *dormant, const struct dormant_filter *filter,
                         size_t max, uint64_t *ret_runs);

/* The runs of `host` whose deadline has passed at `unix_ms`, `max` at most. *ret_next: the next
 * deadline, or 0. */
size_t dormant_runs_due(struct dormant_runs *dormant, const struct run_host *host,
                        int64_t unix_ms, size_t max, uint64_t *ret_runs, int64_t *ret_next);

#endif
