/* route: HTTP requests by table.
 *
 * A row names a path, a method, its handler and what it needs; the table adds what every
 * answer of that contract carries and how its errors look. The whole body is collected before
 * a handler runs, because every row here takes one JSON document or none. A reply is one body
 * or a stream of server-sent events.
 *
 * Memory   a call belongs to its exchange. Body, headers and path are lent until the guard or
 *          the handler returns, then they are given back: a call that waits holds no request.
 * Threads  a site and its calls belong to one loop. Tables are read-only.
 * Source   RFC 9110; contracts/agentbreeder.md 1.13 (order of checks) and 2 (SSE).
 */
#ifndef WEIR_ROUTE_ROUTE_H
#define WEIR_ROUTE_ROUTE_H

#include "base/lent.h"
#include "route/page.h"
#include "server/exchange.h"

struct route_call;
struct route_site;
struct route_table;

/* Runs when the request is whole and every check passed. Must answer, now or later; to
 * answer later it must watch the call (route_watch), which may be gone by then. */
typedef void route_fn(struct route_call *call, void *table_ctx);

/* Who may come in. A row must say it: nothing is not an answer, and a site of which a row says
 * nothing, or says guarded where its table has no guard, is not made. */
enum route_door {
    ROUTE_GUARDED = 1, /* the table's guard is asked, then, if need be, page_judge() */
    ROUTE_OPEN = 2,    /* everybody, and every page: what tells nothing and does nothing */
};

enum route_needs {
    ROUTE_PLAIN = 0,
    ROUTE_JSON = 1, /* has a JSON body: its type is checked (400) and its size (413) */
    ROUTE_HEAD = 2, /* HEAD is answered as GET without the body */
};

struct route {
    /* "POST", "/invoke"; a segment in braces, "/weir/v1/runs/{id}", takes any one segment that
     * is not empty. Rows are tried in order. */
    struct str method, path;
    route_fn *handle;
    enum route_door door;
    unsigned needs; /* enum route_needs, or-ed */
};

/* One failure, for the table's own shape of error bodies. */
struct route_failure {
    int status;      /* 400 to 599 */
    struct str code; /* "INVALID_INPUT" */
    struct str message;
    struct str details; /* raw JSON, or empty */
};

enum route_entry {
    ENTRY_REFUSED,
    ENTRY_PROVED,  /* a secret was shown */
    ENTRY_TRUSTED, /* none was asked for: is it a web page that uses its reader's machine? */
};

/* May the request go on? Asked in this order: route, method, guard, page, body. A refusal fills
 * *ret and may add fields to it. */
typedef enum route_entry route_guard_fn(struct route_call *call, const struct route *row,
                                        void *ctx, struct route_failure *ret);

struct route_table {
    const struct route *rows;
    size_t row_count;
    const struct field *always; /* on every response of this table */
    size_t always_count;
    size_t body_max_bytes;
    /* A body that is not whole must bring so much in every stretch of this length, or it is
     * answered 408. 0: it may take its time. */
    uint64_t body_stretch_ms;
    size_t body_stretch_bytes;
    route_guard_fn *guard; /* NULL: every row is open */
    /* Append the JSON body of a failure. NULL: {"error":{"code","message","details"}}. */
    void (*failure_body)(const struct route_failure *failure, struct buf *out);
    void *ctx;
};

/* --- sites: the tables of one listener, on one loop --------------------------------------- */

/* Tables are asked in order for a path; the last answers 404. Borrowed until freed. */
struct route_site *route_site_new(struct loop *loop, const struct route_table *const *tables,
                                  size_t table_count);
void route_site_free(struct route_site *site);

/* Which pages may ask where no token is; borrowed until others come. NULL: the strictest. */
void route_site_pages(struct route_site *site, const struct page_rules *rules);

/* For tests: whether each row of a table says who may come in, and a guard is there to ask. */
bool route_table_ok(const struct route_table *table);
void route_serve(struct route_site *site, struct exchange *exchange);

/* Tell every call that asked (route_on_stop) that the daemon stops. */
void route_site_stop(struct route_site *site);
/* The deadline passed: the calls still open are told with `left`, and cut. */
void route_site_cut(struct route_site *site);

/* --- inside a call ----------------------------------------------------------------------- */

struct exchange *route_exchange(struct route_call *call);
struct loop *route_loop(const struct route_call *call);
struct lent route_body(const struct route_call *call); /* whole, after the checks */

/* What stands in the path where the row has `{name}`, as sent; empty when the row has none. */
struct lent route_parameter(const struct route_call *call, struct str name);

/* The same percent-decoded, appended to `out`; false when it is no valid text. */
MUST_CHECK bool route_parameter_text(const struct route_call *call, struct str name,
                                     struct buf *out);

/* The first value of a query parameter, percent-decoded, appended to `out`; false when it is
 * not there or is no valid text. */
MUST_CHECK bool route_query(const struct route_call *call, struct str name, struct buf *out);

/* The first value of a request header, trimmed; at == NULL when absent. */
struct lent route_header(const struct route_call *call, struct str lower_case_name);

/* One more field for the response head (copied), 16 at most; before the reply begins. */
void route_field(struct route_call *call, struct str name, struct str value);

/* A copy of a few bytes (64 KiB a call with all its fields) for this answer's head and body:
 * valid until it begins. */
struct str route_keep(struct route_call *call, struct str text);

/* Answer with one body and end. */
void route_reply(struct route_call *call, int status, struct str content_type, struct str body);

/* Answer in the table's shape for failures and end. */
void route_fail(struct route_call *call, const struct route_failure *failure);

/* What a handler that answers later wants to know; every callback may be NULL. Of `left` and
 * `closed` exactly one comes, once, and never from inside a function of this header. */
struct route_watch {
    void (*left)(void *ctx);     /* the peer is gone or was cut: last call, send nothing more */
    void (*drained)(void *ctx);  /* see route_wake_at */
    void (*stopping)(void *ctx); /* the daemon begins to stop */
    void (*closed)(void *ctx);   /* the reply went out whole: last call */
};
void route_watch(struct route_call *call, const struct route_watch *watch, void *ctx);

/* --- server-sent events ------------------------------------------------------------------ */

/* Status 200 and the head of an event stream, sent at once. `Connection: keep-alive` is added
 * on HTTP/1.1 only (K5). */
void route_sse_begin(struct route_call *call);
/* One event; `name` and `id` may be empty. data holds no line break when it is JSON of ours.
 * What a cut call still sends is dropped. */
void route_sse_event(struct route_call *call, struct str name, struct str id, struct str data);
/* A comment line, which every reader skips: the heartbeat. */
void route_sse_comment(struct route_call *call, struct str text);
/* End the body. What the contract wants as its last event has been sent before. */
void route_sse_end(struct route_call *call);

/* A body of another type, in pieces: lines, say. It ends with route_sse_end(). */
void route_pieces_begin(struct route_call *call, struct str content_type);
void route_piece(struct route_call *call, struct str bytes);

/* A body whose length is known, in pieces, with any status; route_sse_end() after the last of
 * them. False: HEAD, which is answered; nothing may follow. */
MUST_CHECK bool route_sized_begin(struct route_call *call, int status, struct str content_type,
                                  uint64_t len);

size_t route_queued(const struct route_call *call);
void route_wake_at(struct route_call *call, size_t low);
uint64_t route_stalled_ms(const struct route_call *call);
/* Cut the connection (HTTP/1) or the stream (HTTP/2): a reader that does not read. `left`
 * follows. */
void route_cut(struct route_call *call);

#endif
