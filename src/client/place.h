/* place: what the client keeps for one loop.
 *
 * Private to client/.
 *
 * Threads  the loop's.
 */
#ifndef WEIR_CLIENT_PLACE_H
#define WEIR_CLIENT_PLACE_H

#include "base/list.h"
#include "client/names.h"
#include "client/secure.h"
#include "loop/loop.h"

/* Idle connections that a loop keeps, and for how long. */
#define PLACE_IDLE_MAX 64
#define PLACE_IDLE_MS 118000

#define PLACE_READ_BYTES (16 * KIB)

/* All of a request except its body. */
#define HTTP_REQUEST_HEAD_MAX_BYTES (256 * KIB)

struct place {
    struct loop *loop;
    struct lane *lane; /* libcurl's, from the first call that needs it */
    size_t calls;
    struct list idle; /* connections without a call, the oldest first */
    size_t idle_count;
    struct list shared; /* HTTP/2 connections */
    struct list kept;   /* parked gRPC calls (grpc_keep.h) */
    struct str
        socket; /* every connection goes to this Unix socket; empty: where its URL says */
    struct secure secure;
    struct names names;
    char *read; /* what a connection reads into, NULL until the first one does */
};

struct http_pool;

/* http.c: that of a loop of the pool. */
struct place *http_place_of(const struct http_pool *pool, const struct loop *loop);

#endif
