/* postgres: a connection to a PostgreSQL server, for one loop.
 *
 * A request is a list of statements that take effect together or not at all. Requests are sent
 * at once, one after the other, without waiting for answers (pipeline mode), and are done in
 * the order in which they were sent. A lost connection is made again; meanwhile requests wait,
 * at most until their deadline.
 *
 *     connecting ─▶ ready ─▶ paused ─▶ connecting ...      any ─▶ closed
 *
 *     request: waiting ─▶ sent ─▶ done
 *                 ▲         │     serialization failure, deadlock, read-only server; or the
 *                 └─────────┘     connection broke, and it may be repeated
 *
 * The statements between two requests are one transaction of the server: it needs no BEGIN and
 * no COMMIT, and a request costs one round trip however many statements it has.
 *
 * Memory   a request, its steps and their values belong to the caller, who keeps them unchanged
 *          until on_done has run. Rows are lent to on_done. Limit what a statement can answer in
 *          its SQL (LIMIT): an answer is in memory as a whole.
 * Threads  the loop's. libpq is loaded, names are looked up and connections are made on a
 *          worker.
 * Source   PostgreSQL 15, chapters 34.5 "Pipeline Mode" and 55.2.4 "Pipelining"; checks.md T5
 *          to T7.
 */
#ifndef WEIR_POSTGRES_POSTGRES_H
#define WEIR_POSTGRES_POSTGRES_H

#include "base/err.h"
#include "base/states.h"
#include "loop/loop.h"

struct postgres;
struct postgres_request;

/* --- statements and their values -------------------------------------------------------------- */

enum postgres_type { POSTGRES_NULL, POSTGRES_TEXT, POSTGRES_BYTES, POSTGRES_INT };

/* text, bytea or bigint. Text must be UTF-8 without NUL: the server refuses other text. */
struct postgres_value {
    enum postgres_type type;
    struct str bytes; /* of text and bytes; borrowed */
    int64_t number;
};

#define POSTGRES_VALUES_MAX 32

static inline struct postgres_value postgres_null(void) {
    return (struct postgres_value){.type = POSTGRES_NULL};
}

static inline struct postgres_value postgres_text(struct str text) {
    return (struct postgres_value){.type = POSTGRES_TEXT, .bytes = text};
}

static inline struct postgres_value postgres_bytes(struct str bytes) {
    return (struct postgres_value){.type = POSTGRES_BYTES, .bytes = bytes};
}

static inline struct postgres_value postgres_int(int64_t number) {
    return (struct postgres_value){.type = POSTGRES_INT, .number = number};
}

/* One statement. It is prepared once for each connection, under the address of its text: the
 * text must stay for the life of the process, such as a literal. */
struct postgres_step {
    const char *sql;    /* with $1, $2 ... for the values */
    size_t value_count; /* at most POSTGRES_VALUES_MAX */
    const struct postgres_value *values;
};

#define POSTGRES_STEPS_MAX 64

/* --- rows --------------------------------------------------------------------------------------- */

struct postgres_rows {
    const void *result; /* libpq's */
    size_t count;
    int64_t affected; /* how many rows it changed or returned */
};

/* The rows of step `step`. Only in on_done of a request that did not fail. */
struct postgres_rows postgres_rows(const struct postgres_request *request, size_t step);

/* The rows of a result of libpq's. Private to postgres/. */
struct postgres_rows postgres_rows_of(const void *result);

bool postgres_is_null(struct postgres_rows rows, size_t row, size_t column);
/* A bigint, integer, smallint or boolean (0 or 1); 0 when it is null. */
int64_t postgres_number(struct postgres_rows rows, size_t row, size_t column);
/* text, bytea or another type in its binary form; empty when it is null. */
struct str postgres_content(struct postgres_rows rows, size_t row, size_t column);

/* --- requests ------------------------------------------------------------------------------------ */

/* `failed` is NULL when it has taken effect. Never called before postgres_ask() returns.
 * errors  ERR_UNAVAILABLE        no connection in time, or too many requests: it has no effect
 *         ERR_OUTCOME_UNKNOWN    the connection broke after it was sent: look whether it had one
 *         ERR_DEADLINE_EXCEEDED  the server gave up at its deadline: it has no effect
 *         ERR_ABORTED            it met others again and again until its deadline: no effect
 *         ERR_ALREADY_EXISTS     a unique key is taken
 *         ERR_FAILED_PRECONDITION  a table is missing or has another shape; a constraint
 *         ERR_INVALID_ARGUMENT, ERR_PERMISSION_DENIED, ERR_RESOURCE_EXHAUSTED, ERR_INTERNAL
 *                                as the server said; request->sqlstate has its code */
typedef void postgres_done_fn(struct postgres_request *request, const struct err *failed,
                              void *ctx);

enum postgres_request_state {
    POSTGRES_IDLE, /* not begun, or done */
    POSTGRES_WAITING,
    POSTGRES_SENT,
    POSTGRES_FAILING, /* refused before it was sent; on_done follows in this turn */
    POSTGRES_REQUEST_STATE_COUNT,
};

/* Zeroed, except for the members that the user sets. */
struct postgres_request {
    const struct postgres_step *steps;
    size_t step_count; /* 1 to POSTGRES_STEPS_MAX */
    /* It only reads, or notices by itself that it has taken effect before: when the connection
     * breaks after it was sent, it is sent again. */
    bool repeatable;
    uint64_t timeout_ms; /* 0: that of the connection, which it must not exceed */
    postgres_done_fn *on_done;
    void *ctx;
    char sqlstate[6]; /* of a failure that the server reported; else empty */
    /* Private to postgres. */
    enum postgres_request_state state;
    struct list link;
    uint64_t deadline_ms;
    uint64_t prepares;                    /* a bit for each step that was prepared with it */
    unsigned numbers[POSTGRES_STEPS_MAX]; /* of their prepared statements */
    void *results[POSTGRES_STEPS_MAX];
    size_t result_bytes;
    bool aborted;    /* a step failed */
    bool met_others; /* it was undone before, through no fault of its own */
    struct err failed;
};

extern const struct state postgres_request_states[POSTGRES_REQUEST_STATE_COUNT];

/* Begin a request. The same one may be used again from its on_done on. */
void postgres_ask(struct postgres *postgres, struct postgres_request *request);

/* --- the connection -------------------------------------------------------------------------------- */

enum postgres_state {
    POSTGRES_CONNECTING, /* a worker is at it */
    POSTGRES_READY,
    POSTGRES_PAUSED, /* it broke; the next attempt is some time away */
    POSTGRES_CLOSED,
    POSTGRES_STATE_COUNT,
};

extern const struct state postgres_states[POSTGRES_STATE_COUNT];

/* Connected (failed is NULL), or not any more, or still not. */
typedef void postgres_state_fn(const struct err *failed, void *ctx);

#define POSTGRES_TIMEOUT_MS 5000
#define POSTGRES_WAITING_MAX 10000

struct postgres_options {
    struct loop *loop;           /* not a fake one */
    struct str url;              /* postgres://user:password@host:port/database?..., or libpq's
                          "host=... dbname=..." */
    struct str schema;           /* the search path, one name; empty: the server's */
    uint64_t timeout_ms;         /* of requests; 0: POSTGRES_TIMEOUT_MS */
    size_t waiting_max;          /* requests not done; 0: POSTGRES_WAITING_MAX */
    postgres_state_fn *on_state; /* may be NULL */
    void *ctx;
};

/* Connects in the background. */
struct postgres *postgres_open(const struct postgres_options *options);

enum postgres_state postgres_state(const struct postgres *postgres);

/* Give up: requests that wait fail with ERR_UNAVAILABLE, those that were sent with
 * ERR_OUTCOME_UNKNOWN (ERR_UNAVAILABLE when they are repeatable). Their on_done runs before
 * this returns. No request may follow. closed(ctx) is called in a later turn, and from then on nothing of it is left
 * on the loop. */
void postgres_close(struct postgres *postgres, task_fn *closed, void *ctx);

#endif
