/* answer: one routed request, from its header section to the last byte of its answer.
 *
 *     collecting ─▶ handling ─▶ streaming ─▶ answered ─▶ closed
 *         │  │         └───────────────────────▲  │         ▲
 *         │  └─────────────────────────────────┘  │         │    refused without a handler
 *         └──────── (any of them) ──────▶ gone ◀──┘ ────────┘    left or cut, and reported
 *
 * Only route/ includes this header; other modules use route.h.
 *
 * Memory   freed when its exchange closes.
 * Threads  one loop.
 */
#ifndef WEIR_ROUTE_ANSWER_H
#define WEIR_ROUTE_ANSWER_H

#include "base/states.h"
#include "loop/loop.h"
#include "route/route.h"

enum answer_state {
    ANSWER_COLLECTING, /* the checks run, the body comes in */
    ANSWER_HANDLING,   /* the handler runs or will answer later */
    ANSWER_STREAMING,  /* an event stream is open */
    ANSWER_ANSWERED,   /* complete; parts may still have to be sent */
    ANSWER_GONE,       /* left() has run, or the handler did not watch */
    ANSWER_CLOSED,     /* the exchange is gone; the memory is freed next */
    ANSWER_STATE_COUNT,
};

extern const struct state answer_states[ANSWER_STATE_COUNT];

/* A bit for each byte that may follow the slash of a table's paths: most tables have no path that
 * begins as one that is looked for. */
struct route_heads {
    uint64_t bits[4];
};

struct route_site {
    const struct page_rules *pages; /* NULL: the strictest */
    struct loop *loop;
    const struct route_table *const *tables;
    size_t table_count;
    struct route_heads *heads; /* of each table */
    struct list calls;
    struct rate_limits *rates; /* NULL: no limits */
    route_refused_fn *refused; /* may be NULL */
    void *refused_ctx;
};

struct route_call {
    uint32_t magic;
    uint8_t state;   /* enum answer_state; written by move() only */
    bool no_body;    /* the method is HEAD */
    bool aborted;    /* cut by us; further output is dropped */
    bool drains;     /* refused, but still reading the rest of the request */
    bool cuts_short; /* too large or too slow; the rest is not read */
    bool upgraded;   /* the connection speaks another protocol */
    bool gathers;    /* what is written waits for route_leave_now() */
    struct list link;
    uint64_t caller; /* a hash of what the guard named it; 0: nothing */
    struct exchange *exchange;
    struct route_site *site;
    const struct route_table *table;
    const struct route *row; /* NULL until found */
    struct buf body;
    struct timer slow;     /* runs while the body comes in, also of a refused request */
    size_t stretch_from;   /* bytes received when it was last started */
    size_t received_bytes; /* body bytes received in all */
    struct arena *arena;   /* for `extra`; NULL until a field is added */
    struct extra *extra;
    const struct route_watch *watch;
    void *watch_ctx;
};

/* Accept the exchange; the call is ANSWER_COLLECTING and `table` shapes its answer. */
struct route_call *answer_new(struct route_site *site, struct exchange *exchange);

/* The checks have found its row. Collect the body, then call the handler. */
void answer_collect(struct route_call *call, const struct route *row);

/* Answer with a head alone, without a handler. */
void answer_empty(struct route_call *call, int status);

/* route_refuse() when memory was refused (mem_check): 503, and when to try again. */
void answer_overloaded(struct route_call *call, const struct err *why);

static inline struct str answer_header(const struct route_call *call, struct str name) {
    return lent_read(route_header(call, name));
}

/* For sites, on any call: */
void answer_say_stopping(struct route_call *call);
void answer_cut(struct route_call *call);

#endif
