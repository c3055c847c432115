/* reload: build a new snapshot while the daemon serves.
 *
 * Files are read and parsed on a separate thread, so that no turn waits for a disk. Only a
 * complete snapshot comes back; after any error nothing has changed. A settings file that is
 * empty or gone where the running settings came from one counts as an error.
 *
 * Memory   part of its owner.
 * Threads  the owner's loop; on_done runs there.
 */
#ifndef WEIR_DAEMON_RELOAD_H
#define WEIR_DAEMON_RELOAD_H

#include "daemon/config_snapshot.h"
#include "loop/loop.h"
#include "server/server.h"

#include <pthread.h>

/* The receiver owns one reference to `snapshot`. NULL on failure. */
typedef void reload_done_fn(struct config_snapshot *snapshot, const struct err *failed,
                            void *ctx);

struct reload_options {
    const struct config_input *input; /* borrowed until it is done */
    struct config_snapshot *same;     /* only make everything of its config again; NULL: read
                                         it. Lives until it is done */
    const struct config *running;     /* what the daemon follows now; lives until it is done */
    struct config_snapshot_options made; /* what it is made with; the config is set here */
    struct server *server;               /* its certificates are read again as well */
    struct loop *loop;
    reload_done_fn *on_done; /* once, never before reload_start() has returned */
    void *ctx;
};

struct reload {
    bool busy;
    struct reload_options options;
    pthread_t thread;
    bool has_thread; /* started and not joined yet */
    struct config_snapshot *snapshot;
    struct err failed;
    struct mail mail;
};

/* Start a reload. Only one may run at a time.
 * errors  ERR_UNAVAILABLE no thread can be started */
MUST_CHECK bool reload_start(struct reload *reload, const struct reload_options *options,
                             struct err *e);

/* Wait until the thread has ended. Its on_done is still to come. Harmless when none runs. */
void reload_wait(struct reload *reload);

#endif
