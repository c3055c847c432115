/* route: serve HTTP requests from a table of routes.
 *
 * A row names a path, a method, a handler and its requirements. The table adds the fields that
 * every answer of that contract carries and the form of its errors. The whole body is collected
 * before a handler runs, because every row takes one JSON document or none. A reply is one body
 * or a stream of server-sent events.
 *
 * Memory   a call belongs to its exchange. Body, headers and path are lent until the guard or
 *          the handler returns and are released then, so a waiting call holds no request.
 * Threads  a site and its calls belong to one loop. Tables are read-only.
 * Source   RFC 9110; contracts/agentbreeder.md 1.13 (order of checks) and 2 (SSE).
 */
#ifndef WEIR_ROUTE_ROUTE_H
#define WEIR_ROUTE_ROUTE_H

#include "base/lent.h"
#include "base/rate_limits.h"
#include "route/page.h"
#include "route/pattern.h"
#include "server/exchange.h"

struct route_call;
struct route_site;
struct route_table;

/* Runs when the request is complete and every check has passed. It must answer now or later. To
 * answer later it must watch the call (route_watch), which may be gone by then. */
typedef void route_fn(struct route_call *call, void *table_ctx);

/* Who may use a route. There is no default: route_site_new() asserts that every row sets it,
 * and that the table of a guarded row has a guard. */
enum route_door {
    ROUTE_GUARDED =
        1,          /* ask the table's guard, then, if it asked for no secret, page_judge() */
    ROUTE_OPEN = 2, /* everyone and every page; for routes that reveal and change nothing */
};

enum route_needs {
    ROUTE_PLAIN = 0,
    ROUTE_JSON = 1,  /* has a JSON body; its type (400) and size (413) are checked */
    ROUTE_HEAD = 2,  /* HEAD is answered as GET without the body */
    ROUTE_BODY = 4,  /* has a body of another type; its size and its pace are checked */
    ROUTE_VISIT = 8, /* a page for people: a link on another site may lead a browser's window
                        here. It changes nothing and may not be framed */
};

struct route {
    /* "POST", "/invoke". A segment in braces, as in "/weir/v1/runs/{id}", matches any one
     * segment that is not empty. Rows are tried in order. */
    struct str method, path;
    route_fn *handle;
    enum route_door door;
    unsigned needs; /* enum route_needs, or-ed */
};

/* A failure, which the table writes in its own form of error body. */
struct route_failure {
    int status;      /* 400 to 599 */
    struct str code; /* "INVALID_INPUT" */
    struct str message;
    struct str details; /* raw JSON, or empty */
};

enum route_entry {
    ENTRY_REFUSED,
    ENTRY_PROVED,  /* a secret was presented */
    ENTRY_TRUSTED, /* no secret was required; page_judge() decides next */
};

/* Decide whether the request may continue. The order of checks is: route, method, guard, page,
 * body. A refusal fills *ret and may add fields to the answer. */
typedef enum route_entry route_guard_fn(struct route_call *call, const struct route *row,
                                        void *ctx, struct route_failure *ret);

/* Asks for no secret, so that the rules for pages follow. */
route_guard_fn route_trust;

struct route_table {
    const struct route *rows;
    size_t row_count;
    const struct field *always; /* on every response of this table */
    size_t always_count;
    size_t body_max_bytes;
    /* An incomplete body must bring at least body_stretch_bytes in every stretch of
     * body_stretch_ms, or it is answered 408. 0: no such limit. */
    uint64_t body_stretch_ms;
    size_t body_stretch_bytes;
    route_guard_fn *guard; /* NULL only if every row is open */
    /* Web pages that may use these routes with credentials, besides those of the site's rules.
     * NULL: none. */
    bool (*lists_origin)(struct str origin, void *ctx);
    /* Where a rate is on (route_site_rates), for each request that it counts: show the room that is
     * left in the answer's fields, and shape the refusal. `refused` is NULL for a request that goes
     * on. NULL: no fields, and 429 RATE_LIMITED. */
    void (*rated)(struct route_call *call, const struct rate_room *room,
                  struct route_failure *refused);
    /* Append the body of a failure. NULL: {"error":{"code","message","details"}}. */
    void (*failure_body)(const struct route_failure *failure, struct buf *out);
    struct str failure_type; /* the content type of that body; at == NULL: application/json */
    void *ctx;
};

/* --- sites: the tables of one listener, on one loop --------------------------------------- */

/* A path is looked up in the tables in order; the last one answers 404. Tables are borrowed
 * until the site is freed, and their rows stay as they are. */
struct route_site *route_site_new(struct loop *loop, const struct route_table *const *tables,
                                  size_t table_count);
void route_site_free(struct route_site *site);

/* Set the rules for web pages where no token is required. Borrowed until replaced. NULL: the
 * strictest rules. */
void route_site_pages(struct route_site *site, const struct page_rules *rules);

/* Call `fn` for each request that a table's guard refuses. */
typedef void route_refused_fn(const struct route *row, const struct route_failure *failure,
                              void *ctx);
void route_site_refused(struct route_site *site, route_refused_fn *fn, void *ctx);

/* Count each request for a guarded row against the rates of its address, before the guard, and of
 * its token, after it: a token that is not valid counts only for its address. Borrowed; NULL: no
 * limits. A refusal says in Retry-After when to come again. */
void route_site_rates(struct route_site *site, struct rate_limits *rates);

/* For tests: whether each row says who may use it, and guarded rows have a guard. */
bool route_table_ok(const struct route_table *table);
void route_serve(struct route_site *site, struct exchange *exchange);

/* Call `stopping` of every watched call: the daemon begins to stop. */
void route_site_stop(struct route_site *site);
/* The deadline has passed. Open calls get `left` and are cut. */
void route_site_cut(struct route_site *site);

/* --- inside a call ----------------------------------------------------------------------- */

struct exchange *route_exchange(struct route_call *call);
struct loop *route_loop(const struct route_call *call);
struct lent route_body(const struct route_call *call); /* complete, after the checks */

/* The value of path parameter `{name}`, as sent; empty when the row has none of that name. */
struct lent route_parameter(const struct route_call *call, struct str name);

/* The same percent-decoded, appended to `out`. False when it is not valid text. */
MUST_CHECK bool route_parameter_text(const struct route_call *call, struct str name,
                                     struct buf *out);

/* The first value of a query parameter, percent-decoded, appended to `out`; see query_find(). */
MUST_CHECK enum query_value route_query(const struct route_call *call, struct str name,
                                        struct buf *out);

/* The first value of a request header, trimmed; at == NULL when absent. */
struct lent route_header(const struct route_call *call, struct str lower_case_name);

/* Set a field of the response head (copied), 16 at most, before the reply begins. A field of the
 * same name that was set before is replaced. */
void route_field(struct route_call *call, struct str name, struct str value);

/* For a guard: name the caller, so that new tokens of it share the rate of its token. Without this the
 * token itself is counted. */
void route_caller(struct route_call *call, struct str workspace, struct str user);

/* Add Retry-After, in whole seconds, where the failure says when asking again can help. */
void route_retry_after(struct route_call *call, const struct err *why);

/* Copy a few bytes for this answer's head and body (64 KiB per call, with all its fields). The
 * copy is valid until the answer begins. */
struct str route_keep(struct route_call *call, struct str text);

/* Answer with one body and end the call. */
void route_reply(struct route_call *call, int status, struct str content_type, struct str body);

/* Answer in the table's form for failures and end the call. */
void route_fail(struct route_call *call, const struct route_failure *failure);

/* The same with a formatted message, and no details. */
PRINTF_LIKE(4, 5)
void route_refuse(struct route_call *call, int status, struct str code, const char *format,
                  ...);

/* Callbacks for a handler that answers later; each may be NULL. Exactly one of `left` and
 * `closed` is called, once, and never from inside a function of this header. */
struct route_watch {
    void (*left)(void *ctx);     /* the peer left or was cut: last callback; send no more */
    void (*drained)(void *ctx);  /* see route_wake_at */
    void (*stopping)(void *ctx); /* the daemon begins to stop */
    void (*closed)(void *ctx);   /* the whole reply was sent: last callback */
    /* After route_upgrade(): bytes of the peer, valid until this returns. The peer gets no
     * further credit for them until route_consumed(). */
    void (*received)(struct lent bytes, void *ctx);
};
void route_watch(struct route_call *call, const struct route_watch *watch, void *ctx);

/* --- server-sent events ------------------------------------------------------------------ */

/* Send status 200 and the head of an event stream at once. `Connection: keep-alive` is added on
 * HTTP/1.1 only (K5). */
void route_sse_begin(struct route_call *call);
/* Send one event; `name` and `id` may be empty. JSON is sent on one line, because many clients read
 * no second one. Events of a call that was cut are dropped. */
void route_sse_event(struct route_call *call, struct str name, struct str id, struct str data);
/* The same for many: append whole events, as sse.h writes them, to the buffer that this returns,
 * then call route_sse_wrote() with the length that it had. NULL: the call was cut. */
struct buf *route_sse_out(struct route_call *call);
void route_sse_wrote(struct route_call *call, size_t begin);
/* What is written between the two leaves together, and at once if nothing waits in front of it: for
 * what nothing will join in this turn (see exchange_send_now()). */
void route_gather(struct route_call *call);
void route_leave_now(struct route_call *call);
/* Send a comment line, which readers ignore: the heartbeat. */
void route_sse_comment(struct route_call *call, struct str text);
/* End the body. The caller has already sent the contract's last event. */
void route_sse_end(struct route_call *call);

/* Begin a body of another type, sent in pieces, for example lines. End it with
 * route_sse_end(). */
void route_pieces_begin(struct route_call *call, struct str content_type);
void route_piece(struct route_call *call, struct str bytes);
/* The same for a piece that nothing will join in this turn: see exchange_send_now(). */
void route_piece_now(struct route_call *call, struct str bytes);

/* Begin a body of known length, sent in pieces, with any status. Call route_sse_end() after the
 * last piece. False: the method was HEAD and has been answered; send nothing. */
MUST_CHECK bool route_sized_begin(struct route_call *call, int status, struct str content_type,
                                  uint64_t len);

/* --- another protocol (RFC 9110 7.8) ------------------------------------------------------ */

/* Whether the request asks for `protocol` ("websocket") and can get it: a GET by HTTP/1.1 whose
 * Upgrade names it. All checks of a route hold before this is asked. */
bool route_wants_upgrade(const struct route_call *call, struct str protocol);

/* Answer 101 with the fields added to the call. The call must be watched, with `received`. What
 * is sent with route_piece() leaves as it is; route_sse_end() closes the connection. */
void route_upgrade(struct route_call *call, struct str protocol);
void route_consumed(struct route_call *call, size_t len);

/* As those of rpc.h. */
size_t route_queued(const struct route_call *call);
size_t route_pressure(const struct route_call *call);
void route_wake_at(struct route_call *call, size_t low);
uint64_t route_stalled_ms(const struct route_call *call);
/* Cut the connection (HTTP/1) or the stream (HTTP/2) of a peer that does not read:
 * ENHANCE_YOUR_CALM. `left` follows. */
void route_cut(struct route_call *call);
/* The same where we cannot send the rest, so that what was sent does not look whole:
 * INTERNAL_ERROR. */
void route_break(struct route_call *call);

#endif
