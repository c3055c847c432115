/* changes: who wants to hear that other processes have written to the store.
 *
 * A watcher is called on its loop, once for any number of changes since its last call. It then
 * looks in the store for what it waits for.
 *
 * Memory   changes_watch() gives a watcher, changes_leave() ends it.
 * Threads  a watcher belongs to its loop; changes_tell() any thread.
 */
#ifndef WEIR_STORE_CHANGES_H
#define WEIR_STORE_CHANGES_H

#include "loop/loop.h"

struct changes;
struct changes_watcher;

struct changes *changes_new(void);
void changes_free(struct changes *changes); /* watchers may be left: they hear nothing more */

enum change {
    CHANGE_WRITTEN = 1, /* there are new rows in the log */
    CHANGE_FREED = 2,   /* a lease was given back */
    CHANGE_POSTED = 4,  /* an answer was posted, or refused: posted.h */
    CHANGE_ANY = 7,
    CHANGE_LEFT = 8, /* a replica has ended in order: for replica_watch.h alone */
};

/* `what`: one of them, or several. */
struct changes_watcher *changes_watch(struct changes *changes, unsigned what, struct loop *loop,
                                      task_fn *fn, void *ctx);
void changes_leave(struct changes_watcher *watcher); /* no call afterwards; NULL is fine */

void changes_tell(struct changes *changes, unsigned what);

#endif
