/* holding: a session that several replicas may want is held by one of them.
 *
 *     ask ─▶ held
 *      ▲ └─▶ another has it ─▶ worth waiting? ─▶ it gives something back, or a moment passes ─┐
 *      └───────────────────────────────────────────────────────────────────────────────────┘
 *
 * A holder that died keeps it until its own lease is over; then it is free for all.
 *
 * Memory   frees itself after on_end.
 * Threads  the loop that asks.
 */
#ifndef WEIR_SESSION_HOLDING_H
#define WEIR_SESSION_HOLDING_H

#include "store/lease.h"

/* All that are asking, of a table. */
struct holdings;
struct holdings *holdings_new(void);
void holdings_free(struct holdings *holdings); /* NULL is fine */

/* The loop ends: those of it end with ERR_UNAVAILABLE, and ask no more. Call on that loop. */
void holdings_leave(struct holdings *holdings, const struct loop *loop);

struct holding_options {
    struct holdings *all;
    struct store *store;
    struct loop *loop;
    struct lease_key key;
    bool recovers;    /* as struct lease_request has it */
    uint64_t wait_ms; /* at most */
    /* Another replica has it: whether to wait. `busy` says so for people. */
    bool (*waits)(const struct err *busy, void *ctx);
    /* Once, later: it is held (NULL), or why it is not: ERR_UNAVAILABLE. */
    void (*on_end)(const struct err *failed, void *ctx);
    void *ctx;
};

void holding_start(const struct holding_options *options);

#endif
