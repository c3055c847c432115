/* listener: one listen address and its incoming sockets.
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

/* Called for each accepted socket. Takes `fd`. */
typedef void listener_accept_fn(struct listener *listener, int fd, const struct address *peer,
                                void *ctx);

struct listener {
    struct listener_options options; /* name, address, limits and tls are copies */
    struct server_limits limits;
    struct tls_options tls_files;
    struct text name, address, cert, key, ca; /* the memory of the options' texts */
    struct list link;                         /* in the server's list */
    struct loop *loop;
    listener_accept_fn *on_accept;
    void *ctx;
    int fd, port;
    uv_poll_t poll;
    struct timer back_off;
    uint64_t warned_ms; /* when the back-off was last logged */
    char *path;         /* of a unix socket, removed at the end */
    void (*on_closed)(void *ctx);

    /* The certificates in use, replaced by a reload. `next` has been read but is not in use. */
    struct {
        pthread_mutex_t lock;
        struct tls *now, *next;
    } tls;

    /* Number of connections per peer that have not sent a whole request yet. */
    struct {
        pthread_mutex_t lock;
        struct map *counts; /* by address_owner; the values are numbers */
        bool told;          /* that a peer had too many */
    } strangers;

    /* Touched by the loops of the connections. */
    atomic_size_t conn_count;
    atomic_bool full; /* waits until a connection closes */
    struct mail room; /* "there is room again" */
};

MUST_CHECK bool listener_open(struct loop *loop, const struct listener_options *options,
                              listener_accept_fn *on_accept, void *ctx, struct listener **ret,
                              struct err *e);

/* Stop accepting. on_closed(ctx) is called later; after that listener_free() is allowed. */
void listener_close(struct listener *listener, void (*on_closed)(void *ctx));
void listener_free(struct listener *listener);

/* Any thread. A reference to the certificates for a new connection; NULL: no TLS. */
struct tls *listener_tls(struct listener *listener);

/* Any thread, one at a time. Read the certificate files of a listener with TLS; then either
 * put them to use (show) or discard them (drop). */
MUST_CHECK bool listener_read_tls(struct listener *listener, struct err *e);
void listener_show_tls(struct listener *listener);
void listener_drop_tls(struct listener *listener);

/* Any thread. A stranger is a connection without a whole request. _meets counts one more,
 * _knows one less. _sends_away returns whether an older stranger must be closed because its
 * peer's strangers hold more than their share of the connections; it is then no longer counted.
 * An empty owner is never counted. */
void listener_meets(struct listener *listener, const struct address_owner *owner);
void listener_knows(struct listener *listener, const struct address_owner *owner);
bool listener_sends_away(struct listener *listener, const struct address_owner *owner);

/* Any thread: one of its connections has closed. Returns whether the listener was waiting for
 * that; the caller then posts listener->room with listener_resume() to its loop. */
bool listener_lost_one(struct listener *listener);
void listener_resume(void *listener);

#endif
