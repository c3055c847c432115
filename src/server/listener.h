/* listener: one address, and the sockets that come in there.
 *
 * Private to server/.
 *
 * Memory   owned by the server; listener_close() calls back before it may be freed.
 * Threads  the server's first loop, except listener_lost_one().
 */
#ifndef WEIR_SERVER_LISTENER_H
#define WEIR_SERVER_LISTENER_H

#include "base/text.h"
#include "server/address.h"
#include "server/conn.h"

#include <pthread.h>
#include <uv.h>

struct listener;
struct tls;

/* A connected socket that wants a home. Takes `fd`. */
typedef void listener_accept_fn(struct listener *listener, int fd, const struct address *peer,
                                void *ctx);

struct listener {
    struct listener_options options; /* name, address, limits and tls are copies */
    struct server_limits limits;
    struct tls_options tls_files;
    struct text name, address, cert, key, ca; /* what those two show */
    struct list link;                         /* in the server's list */
    struct loop *loop;
    listener_accept_fn *on_accept;
    void *ctx;
    int fd, port;
    uv_poll_t poll;
    struct timer back_off;
    uint64_t warned_ms; /* of that, last */
    char *path;         /* of a unix socket, to be removed at the end */
    void (*on_closed)(void *ctx);

    /* What peers are shown; exchanged by whoever reloads. `next` is read and not shown yet. */
    struct {
        pthread_mutex_t lock;
        struct tls *now, *next;
    } tls;

    /* How many connections of each peer have brought no whole request. */
    struct {
        pthread_mutex_t lock;
        struct map *counts; /* by address_owner; the values are numbers */
    } strangers;

    /* Touched by the loops of the connections. */
    atomic_size_t conn_count;
    atomic_bool full; /* waits until a connection goes */
    struct mail room; /* "there is room again" */
};

MUST_CHECK bool listener_open(struct loop *loop, const struct listener_options *options,
                              listener_accept_fn *on_accept, void *ctx, struct listener **ret,
                              struct err *e);

/* Stop accepting; on_closed(ctx) later, then listener_free() is allowed. */
void listener_close(struct listener *listener, void (*on_closed)(void *ctx));
void listener_free(struct listener *listener);

/* Any thread. A reference to what a new connection shows; NULL: it speaks no TLS. */
struct tls *listener_tls(struct listener *listener);

/* Any thread, one at a time. Read the files of a listener with TLS; then either show what was
 * read, or drop it. */
MUST_CHECK bool listener_read_tls(struct listener *listener, struct err *e);
void listener_show_tls(struct listener *listener);
void listener_drop_tls(struct listener *listener);

/* Any thread. One more stranger; one less; and whether one that is no longer young must go,
 * which then counts no more, since its peer's strangers have more than their share of the
 * places. An owner without a name is never counted. */
void listener_meets(struct listener *listener, const struct address_owner *owner);
void listener_knows(struct listener *listener, const struct address_owner *owner);
bool listener_sends_away(struct listener *listener, const struct address_owner *owner);

/* Any thread: one of its connections is gone. Says whether it waited for that; then the
 * caller posts listener->room with listener_resume() to its loop. */
bool listener_lost_one(struct listener *listener);
void listener_resume(void *listener);

#endif
