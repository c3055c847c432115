/* agents: the agents that apps have initialised: who they are and in what state.
 *
 * An agent belongs to an owner and has a name there; two owners never see each other's. What it
 * is, its body, belongs to the contract. A change is a pure function of the body, called on the
 * store's thread within the transaction, so changes of one agent never overlap. The events that
 * it makes are appended to the agent's own log (event_log.h, EVENT_LOG_AGENT) in the same
 * transaction.
 *
 * An owner has at most AGENTS_MAX. Beyond them a new one takes the place of the oldest that is
 * over.
 *
 * Memory   requests are copied. An answer is borrowed during the callback.
 * Threads  requests and answers are on the caller's loop; the work is on the store's thread.
 * Source   contracts/nimi.md 1.12, 6.7; checks.md M1, M4.
 */
#ifndef WEIR_STORE_AGENTS_H
#define WEIR_STORE_AGENTS_H

#include "store/event_log.h"

#define AGENTS_MAX 1000
#define AGENT_BODY_MAX_BYTES (512 * KIB)
#define AGENT_EVENTS_MAX 128 /* of one change */
#define AGENTS_ANSWER_MAX 200

struct agent_where {
    struct store_owner owner;
    struct str name;
};

/* --- changing ----------------------------------------------------------------------------- */

/* What becomes of an agent. */
struct agent_after {
    bool changed;           /* false: nothing is written, and the body is the one of before */
    struct buf *body;       /* empty at first */
    int status;             /* for lists */
    bool autonomous, ended; /* ended: it may be forgotten */
    struct event_log_entry events[AGENT_EVENTS_MAX];
    size_t event_count;
    struct arena *arena; /* for the events' texts, until the change is written */
};

/* Make of `before` (empty: there is no such agent) what comes after. It may be called again if
 * the commit fails, on the store's thread, so it only reads ctx.
 * errors  its own: then nothing happens, and the caller gets it */
typedef bool agent_change_fn(struct str before, struct agent_after *after, const void *ctx,
                             struct err *e);

/* --- requests ----------------------------------------------------------------------------- */

struct agent_item {
    struct str name, body;
    int64_t made_us;
};

struct agents_answer {
    const struct agent_item *items; /* of a change or a get: the one */
    size_t count;
    bool more;
    bool changed; /* by a change: it wrote, and there may be events */
};

/* Called once, on `loop`, never before the start function returns. failed is NULL on success,
 * else ERR_NOT_FOUND, ERR_RESOURCE_EXHAUSTED, an error of the change, or of the store. */
typedef void agents_done_fn(const struct agents_answer *answer, const struct err *failed,
                            void *ctx);

struct agents_ask; /* a request on its way; freed after `done` was called */

/* `change` gets `change_ctx`, which ends with free_ctx when the request does; both are taken.
 * operation  for the audit log */
struct agents_change {
    agent_change_fn *fn;
    void *ctx;
    void (*free_ctx)(void *ctx);
    struct str operation;
};

struct agents_ask *agents_change_start(struct store *store, struct loop *loop,
                                       const struct agent_where *where,
                                       const struct agents_change *change, agents_done_fn *done,
                                       void *ctx);
struct agents_ask *agents_get_start(struct store *store, struct loop *loop,
                                    const struct agent_where *where, agents_done_fn *done,
                                    void *ctx);

struct agents_query {
    int status;     /* 0: any */
    int autonomous; /* -1: any; else 0 or 1 */
    size_t limit;   /* 1 to AGENTS_ANSWER_MAX */
    size_t max_bytes;
    /* Go on after this one. */
    int64_t after_us;
    struct str after_name; /* empty: from the beginning */
};

/* The newest first. */
struct agents_ask *agents_list_start(struct store *store, struct loop *loop,
                                     const struct store_owner *owner,
                                     const struct agents_query *query, agents_done_fn *done,
                                     void *ctx);

#endif
