/* http2_memory: what nghttp2 keeps for a session, which is packed while the session rests.
 *
 * Most of a session's memory is made with it: its state, the table of its streams, a buffer for
 * the next frame. These lie in a region (base/region.h), and so do the small blocks that come
 * later, such as the fields that HPACK remembers. What the region has no room for comes from the heap.
 *
 *     awake ── nobody calls nghttp2 for HTTP2_REST_MS ─▶ packed
 *       ▲                                                  │
 *       └── somebody will: http2_awake() ──────────────────┘
 *
 * nghttp2 has no thread and no clock: it reads and writes its memory only while it is called.
 *
 * Private to server/.
 *
 * Memory   belongs to its session, and is given back after the session.
 * Threads  the connection's loop.
 */
#ifndef WEIR_SERVER_HTTP2_MEMORY_H
#define WEIR_SERVER_HTTP2_MEMORY_H

#include "base/list.h"
#include "base/region.h"

#include <nghttp2/nghttp2.h>

/* Packing and unpacking take some 20 us together, which a connection thus spends at most once
 * in this time. */
#define HTTP2_REST_MS 5000
#define HTTP2_BUSY_REST_MS 10000 /* with exchanges, which may have more to say */

/* Of many sessions that rest at once each look packs some, so that others do not wait. */
#define HTTP2_PACKS_A_LOOK 64
#define HTTP2_LOOKS_APART_MS 10

struct conn;
struct home;

struct http2_memory {
    struct conn *conn;
    struct region region;
    struct list link; /* in home->awake, unless it is packed */
    uint64_t used_ms; /* when nghttp2 was last called */
    uint64_t look_ms; /* when to see whether it rests */
    bool starting;    /* what is allocated now lasts as long as the session */
};

/* False: the system has no memory for another session. */
MUST_CHECK bool http2_memory_init(struct http2_memory *memory, struct conn *conn);
void http2_memory_done(struct http2_memory *memory);

/* nghttp2's allocator for this session. */
nghttp2_mem http2_memory_allocator(struct http2_memory *memory);

/* Its memory is needed, and may rest some time after. */
void http2_memory_wake(struct http2_memory *memory);

/* Pack the sessions of `home` that rest, and wait for the others. From a timer of the home. */
void http2_memory_look(void *home);

#endif
