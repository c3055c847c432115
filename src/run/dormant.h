/* dormant: which runs wait for a human and are only in the store.
 *
 * A run that nobody reads leaves memory after a while (wake.h). Of each a few words stay here:
 * enough to know that somebody waits under a name, and until when, and nothing of what is
 * asked. Names are kept as keyed hashes; who wakes a run reads the names themselves.
 *
 * Who looks for a run looks among the live ones first and then here, because a run is entered
 * here before it leaves there; and what is neither there nor here may have come back meanwhile.
 *
 * Memory   56 bytes a run; a reference to its engine. Borrows the hosts, which forget theirs.
 * Threads  any; one lock inside. Add, take and forget: the run's loop.
 * Source   checks.md L2, K26.
 */
#ifndef WEIR_RUN_DORMANT_H
#define WEIR_RUN_DORMANT_H

#include "base/str.h"

struct dormant;
struct engine;
struct run_host;

/* What is not in its events: it waits on with these. */
struct dormant_run {
    uint64_t run;
    struct engine *engine; /* as it was when the run began */
    struct run_host *host;
    uint32_t alone_s;         /* below 2^20: it was detached for so long; 0: for ever */
    unsigned short transfers; /* below 2^11 */
    bool addressed;
    int64_t deadline_unix_ms; /* 0: none */
};

/* Who is meant; at == NULL: any. */
struct dormant_filter {
    struct str workspace, user, session; /* a session only with its workspace */
    uint64_t run;                        /* this one alone; 0: all */
};

struct dormant *dormant_new(void);
void dormant_free(struct dormant *dormant); /* must be empty; NULL is fine */

/* Takes a reference to the engine. */
void dormant_add(struct dormant *dormant, const struct dormant_run *run, struct str workspace,
                 struct str user, struct str session);

/* What was added under this id; the engine is borrowed as long as it is not removed. */
MUST_CHECK bool dormant_find(struct dormant *dormant, uint64_t run, struct dormant_run *ret);

/* Its reference goes. Harmless when there is no such run. */
void dormant_remove(struct dormant *dormant, uint64_t run);

/* All of a host that goes away. */
void dormant_forget(struct dormant *dormant, const struct run_host *host);

size_t dormant_count(const struct dormant *dormant);

/* Whether any run is meant. */
bool dormant_has(struct dormant *dormant, const struct dormant_filter *filter);

/* Those that are meant, as they fell asleep where a session or a run is named, else the lowest
 * numbers first: at most `max` ids. */
size_t dormant_list(struct dormant *dormant, const struct dormant_filter *filter, size_t max,
                    uint64_t *ret_runs);

/* The runs of `host` whose time is over at `unix_ms`, at most `max`; *ret_next: when the next
 * one's is, or 0. */
size_t dormant_due(struct dormant *dormant, const struct run_host *host, int64_t unix_ms,
                   size_t max, uint64_t *ret_runs, int64_t *ret_next);

#endif
