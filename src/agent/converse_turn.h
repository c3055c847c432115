/* converse_turn: one turn at an AgentRuntime elsewhere, over its Converse.
 *
 *     start ─▶ on_sent ─▶ on_event, on_event, ... ─▶ the last event, or on_failed
 *
 * One stream serves a conversation over many turns and is kept open between them
 * (client/grpc_keep.h), or each turn has a stream of its own. All streams of a loop to one
 * runtime share a connection. Each stream opens with a token that is signed for it. Turns of one
 * conversation that run at once have a stream each. A turn of a trace has its own stream: the
 * trace is metadata of the stream.
 *
 * A request is sent again only if the runtime provably never saw it: it could not be reached,
 * or refused the stream. What was written to a stream may have run.
 *
 * Memory   the target and the request are borrowed until the end. A turn frees itself before its
 *          last callback, or by converse_turn_cancel().
 * Threads  the loop's.
 * Source   contracts of the agent runtime, "Opening a turn".
 */
#ifndef WEIR_AGENT_CONVERSE_TURN_H
#define WEIR_AGENT_CONVERSE_TURN_H

#include "agent/converse_event.h"
#include "base/states.h"
#include "client/http.h"
#include "wire/token.h"
#include "wire/trace_context.h"

struct converse_turn;

/* Which runtime, and how it is asked. */
struct converse_target {
    struct str name, address; /* for messages; "host:port" */
    struct str host;          /* in the address */
    uint16_t port;
    bool secure;                   /* over TLS */
    bool per_turn;                 /* each turn has its own stream */
    const struct token_keys *keys; /* NULL: no token is sent */
    uint64_t stall_ms;             /* the longest silence */
    struct http_pool *http;
};

struct converse_question {
    struct str session, message, agent, system, workspace, user;
    const struct trace_context
        *trace; /* goes with the stream, which then serves one turn; NULL:
                                          there is none */
};

struct converse_failure {
    enum err_code code;
    const char *reason; /* one of agent/kind.h */
    const char *what;   /* "cannot be reached": goes after the runtime's name */
    struct str why;     /* may be empty */
    bool never_seen;    /* the runtime has provably done nothing */
};

/* None of them runs before converse_turn_start() has returned. The turn may be paused and
 * cancelled inside each, except the last. */
struct converse_sink {
    void (*on_sent)(void *ctx); /* the request has left; once; may be NULL */
    /* CONVERSE_DONE and CONVERSE_ERROR are the last. */
    void (*on_event)(const struct converse_event *event, void *ctx);
    void (*on_failed)(const struct converse_failure *failure, void *ctx); /* the last */
};

struct converse_turn *converse_turn_start(struct loop *loop,
                                          const struct converse_target *target,
                                          const struct converse_question *question,
                                          const struct converse_sink *sink, void *ctx);

/* No callback is made until the turn is resumed. */
void converse_turn_pause(struct converse_turn *turn);
void converse_turn_resume(struct converse_turn *turn);

/* Nothing more is reported, and the stream is reset. */
void converse_turn_cancel(struct converse_turn *turn);

/* --- the states of a turn, for tests and the drawing ------------------------------------ */

enum converse_turn_state {
    CONVERSE_TURN_ASKING,  /* the request was sent; no event yet */
    CONVERSE_TURN_WAITING, /* for the next attempt */
    CONVERSE_TURN_READING, /* at least one event has arrived */
    CONVERSE_TURN_OVER,    /* the end is reported, or the turn was cancelled */
    CONVERSE_TURN_STATE_COUNT,
};

extern const struct state converse_turn_states[CONVERSE_TURN_STATE_COUNT];

#endif
