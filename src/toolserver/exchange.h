/* exchange: one HTTP request to a tool server, and how it is answered.
 *
 * A POST may hold several requests, each with its own answer. The answers are one JSON body, sent
 * when the last one is known, or events of a stream, sent as they come. Which of the two is
 * decided when the first thing must be sent; before, an exchange can still be refused.
 *
 * Private to toolserver/.
 *
 * Memory   opaque to the calls; freed when its HTTP call has closed.
 * Threads  the loop of its server.
 */
#ifndef WEIR_TOOLSERVER_EXCHANGE_H
#define WEIR_TOOLSERVER_EXCHANGE_H

#include "toolserver/call.h"
#include "toolserver/cursor.h"
#include "toolserver/request.h"
#include "wire/mcp_version.h"

struct toolserver_exchange {
    struct toolserver *server;
    struct route_call *call;
    struct list link; /* in server->exchanges */
    struct arena *arena;
    struct toolserver_caller caller;
    const char *version; /* a constant: of its protocol; NULL: not known */
    struct str session;  /* empty: none */
    bool stateless;      /* of 2026-07-28 */
    bool accepts_events;
    bool is_batch;
    bool streams;   /* an event stream is open */
    bool reading;   /* its messages are still being read */
    bool replied;   /* the whole reply was given to the route */
    bool gone;      /* the peer left */
    size_t pending; /* calls without an answer */
    struct list calls;
    struct buf body; /* answers so far, if it does not stream */
};

struct toolserver_call {
    struct list link;
    struct toolserver_exchange *exchange;
    uint8_t state; /* enum toolserver_call_state; written by call_move() only */
    bool resumes;  /* it began in another exchange */
    struct json id, token;
    struct json meta; /* `_meta` of its request, or JSON_NONE */
    struct toolserver_tool tool;
    uint64_t run, seq; /* 0: it has no run; of the last event that was reported */
    struct toolserver_entry entry;
    const struct toolserver_call_watch *watch;
    void *ctx;
};

/* exchange.c */
struct toolserver_exchange *toolserver_exchange_new(struct toolserver *server,
                                                    struct route_call *call,
                                                    const struct toolserver_caller *caller);

/* Refuse the whole exchange with an HTTP status and an error of JSON-RPC. id: JSON, or "null" */
void toolserver_exchange_refuse(struct toolserver_exchange *exchange, int status, struct str id,
                                int64_t code, struct str message, struct str data);

/* Reply without a body. */
void toolserver_exchange_empty(struct toolserver_exchange *exchange, int status);

/* All messages were read: reply if every answer is known. */
void toolserver_exchange_read(struct toolserver_exchange *exchange);

/* Begin the event stream, if the client reads one and none is open. */
void toolserver_exchange_stream(struct toolserver_exchange *exchange);

/* Send an event that has an id and no message, if the stream is open. */
void toolserver_exchange_prime(struct toolserver_exchange *exchange, struct str id);

/* Send one message, with the id of its event, or empty. */
void toolserver_exchange_send(struct toolserver_exchange *exchange, struct str id,
                              struct str message);

/* Answer one request; its result is a JSON object. */
void toolserver_exchange_result(struct toolserver_exchange *exchange, struct json id,
                                struct str result);
void toolserver_exchange_error(struct toolserver_exchange *exchange, struct json id,
                               int64_t code, struct str message);

/* call.c */
struct toolserver_call *toolserver_call_new(struct toolserver_exchange *exchange,
                                            struct json id, struct json token);
/* The tool has been asked: it has answered, or it is running. */
void toolserver_call_started(struct toolserver_call *call);
void toolserver_call_left(struct toolserver_call *call);
void toolserver_call_free(struct toolserver_call *call);

#endif
