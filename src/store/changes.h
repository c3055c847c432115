/* changes: who wants to hear that other processes have written to the store.
 *
 * A watcher is called on its loop, once for any number of changes since its last call. It then
 * looks in the store for what it waits for. One that is called for nothing looks in vain; none misses
 * what concerns it.
 *
 * Memory   changes_watch() gives a watcher, changes_leave() ends it.
 * Threads  a watcher belongs to its loop; changes_tell() any thread.
 */
#ifndef WEIR_STORE_CHANGES_H
#define WEIR_STORE_CHANGES_H

#include "base/str.h"
#include "loop/loop.h"

struct changes;
struct changes_watcher;

struct changes *changes_new(void);
void changes_free(struct changes *changes); /* watchers may be left: they hear nothing more */

enum change {
    CHANGE_WRITTEN = 1, /* there are new rows in the log */
    CHANGE_FREED = 2,   /* a lease, a place or a keyed write was given back or has ended:
                           * one of these names */
    CHANGE_POSTED =
        4,           /* an answer was posted, or refused: posted.h; or a run is to be cancelled:
                           * cancelling.h; or older turns are to make way: interrupting.h */
    CHANGE_LEFT = 8, /* a replica has ended in order: for replica_watch.h alone */
    CHANGE_SLOTS = 16,     /* a slot was given back: slot.h */
    CHANGE_EVENTS = 32,    /* an event log has a new event: event_log.h */
    CHANGE_FACTS = 64,     /* there is a new fact: fact.h */
    CHANGE_WEBHOOKS = 128, /* a webhook has another sender, or none: webhook_claim.h */
    CHANGE_ANY = 0xF7,     /* all but CHANGE_LEFT */
};

/* What was freed has a name, a lease's key or a workspace, so that those who wait for another one are
 * not woken. A name is one of 48 bits beside the kinds: two names may share one, and then both are
 * woken. A watcher without names hears of all; so does everyone when no name is given. */
#define CHANGE_NAMES (((UINT64_C(1) << 48) - 1) << 8)
uint64_t change_name(struct str name);

/* Whether a watcher of `watched` hears of `told`. */
bool change_concerns(uint64_t watched, uint64_t told);

/* Both at once. */
uint64_t change_join(uint64_t a, uint64_t b);

/* `what`: one of them, or several; with a name or none. */
struct changes_watcher *changes_watch(struct changes *changes, uint64_t what, struct loop *loop,
                                      task_fn *fn, void *ctx);
void changes_leave(struct changes_watcher *watcher); /* no call afterwards; NULL is fine */

void changes_tell(struct changes *changes, uint64_t what);

#endif
