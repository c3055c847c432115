/* directory: the live runs by id, for callers that did not start them.
 *
 * A run enters when its first event is appended and leaves when its last one is settled. A
 * caller that finds a run can read its journal, or have it cancelled on its own loop.
 *
 * Memory   an entry lives inside its run.
 * Threads  add and remove: the run's loop. Find and cancel: any loop; striped locks inside.
 */
#ifndef WEIR_SESSION_DIRECTORY_H
#define WEIR_SESSION_DIRECTORY_H

#include "journal/journal.h"
#include "session/leaving.h"

#include <stdatomic.h>

struct directory;
struct dormant_runs;

struct live {
    struct list link;
    uint64_t run;
    struct journal *journal;
    struct loop *loop;
    struct str workspace, user, session; /* must outlive the entry */
    _Atomic int state;                   /* enum run_state, for show */
    /* On `loop`: as run_leave(). */
    void (*leave)(struct leaving leaving, struct str why, void *ctx);
    /* On `loop`: the human said something that decides nothing, while the run waits. `print` is the
     * same for a request that is repeated with its idempotency key, and empty without one. NULL:
     * the run never waits. */
    void (*say)(struct str words, struct str print, void *ctx);
    void *ctx;
};

struct directory *directory_new(void);
void directory_free(struct directory *directory); /* must be empty; NULL is fine */

void directory_add(struct directory *directory, struct live *live);
/* Harmless when it is not there. Whether it is can only be seen under the lock inside: runs beside
 * it leave on other threads. */
void directory_remove(struct directory *directory, struct live *live);

/* Runs that are only in the store until a request brings them back. */
struct dormant_runs *directory_dormant(const struct directory *directory);

/* What a search returns, for the caller to keep. */
struct live_view {
    struct journal *journal; /* a reference */
    int state;
    struct buf names; /* owns what the three views show */
    struct str workspace, user, session;
};

/* False when no such run is alive. End the view with live_view_done(). */
MUST_CHECK bool directory_find(struct directory *directory, uint64_t run,
                               struct live_view *ret);
void live_view_done(struct live_view *view);

/* The newest live runs of one session, SESSION_RUNS_MAX at most, oldest first. If user.at is
 * NULL, those of every user's session of that name. */
#define SESSION_RUNS_MAX 64
struct session_runs {
    size_t count;
    uint64_t runs[SESSION_RUNS_MAX];
};
void directory_of_session(struct directory *directory, struct str workspace, struct str user,
                          struct str session, struct session_runs *ret);

/* The ids of live runs below `before`, newest first, `max` at most. */
size_t directory_newest(struct directory *directory, uint64_t before, size_t max,
                        uint64_t *ret_runs);

/* Show every live run. `each` runs under a lock: it must not block, nor call this module. */
void directory_each(struct directory *directory,
                    void (*each)(const struct live *live, void *ctx), void *ctx);

/* Have a live run left as `leaving` says. `why` is copied. False: it is not alive. */
bool directory_leave(struct directory *directory, uint64_t run, struct leaving leaving,
                     struct str why);

/* Pass words that decide nothing to a live run that waits for a human; `print` as struct live has
 * it. */
void directory_say(struct directory *directory, uint64_t run, struct str words,
                   struct str print);

/* Have a live run cancelled by request: its caller has not left. */
bool directory_cancel(struct directory *directory, uint64_t run, struct str why);

#endif
