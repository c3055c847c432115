/* directory: which runs are alive, by id, for those who did not start them.
 *
 * A run enters when its first event is appended and leaves when its last one is settled.
 * Whoever finds it gets its journal to read, or has it cancelled on its own loop.
 *
 * Memory   an entry lives inside its run.
 * Threads  add and remove: the run's loop. Find and cancel: any loop; striped locks inside.
 */
#ifndef WEIR_RUN_DIRECTORY_H
#define WEIR_RUN_DIRECTORY_H

#include "journal/journal.h"
#include "run/leaving.h"

#include <stdatomic.h>

struct directory;
struct dormant;

struct live {
    struct list link;
    uint64_t run;
    struct journal *journal;
    struct loop *loop;
    struct str workspace, user, session; /* valid as long as the entry */
    _Atomic int state;                   /* enum run_state, for show */
    /* On `loop`: as run_leave(). */
    void (*leave)(struct leaving leaving, struct str why, void *ctx);
    /* On `loop`: a human said this while the run waits for him, and decided nothing. NULL: it
     * never waits. */
    void (*say)(struct str words, void *ctx);
    void *ctx;
};

struct directory *directory_new(void);
void directory_free(struct directory *directory); /* must be empty; NULL is fine */

void directory_add(struct directory *directory, struct live *live);
void directory_remove(struct directory *directory, struct live *live);

/* Those that are not alive, but will be when somebody wants them. */
struct dormant *directory_dormant(const struct directory *directory);

/* What a finder may keep. */
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

/* The live runs of one session, oldest first: at most SESSION_RUNS_MAX of them. A user whose
 * `at` is NULL stands for all who have a session of that name. */
#define SESSION_RUNS_MAX 64
struct session_runs {
    size_t count;
    uint64_t runs[SESSION_RUNS_MAX];
};
void directory_of_session(struct directory *directory, struct str workspace, struct str user,
                          struct str session, struct session_runs *ret);

/* Have a run left as `leaving` says, if it is alive. `why` is copied. False: it is not. */
bool directory_leave(struct directory *directory, uint64_t run, struct leaving leaving,
                     struct str why);

/* Tell a run that waits for a human what he said beside the question, if it is alive. */
void directory_say(struct directory *directory, uint64_t run, struct str words);

/* Have it cancelled: its caller has not left. */
bool directory_cancel(struct directory *directory, uint64_t run, struct str why);

#endif
