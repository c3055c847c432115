/* relay: one request on its way to the agent, and the answer on its way back.
 *
 *     reading ─▶ asking ─▶ collecting ─▶ answered ─▶ over
 *        │          ├────▶ passing ─────────▲
 *        │          └────▶ events ──────────┤
 *        └▶ waiting ─▶ asking, answered     │    refused, or the agent failed
 *              for the answer of another request under the same key
 *
 * A request that the guardrails read is read whole first; every other one is passed on as it
 * comes, both ways, and the slower side paces the faster one. An answer is collected if
 * something in it must be rewritten. After [DONE] the agent gets a moment to end its stream, so
 * that it does not take the end for a client that has left. When the client leaves, the agent's connection closes at
 * once; a request with an idempotency key runs on instead, and its answer is kept.
 *
 * Private to sidecar/.
 *
 * Memory   a relay frees itself when its exchange has closed and its run has ended.
 * Threads  one loop's.
 * Source   contracts/agentbreeder.md 4.3, 4.6 and 4.10.
 */
#ifndef WEIR_SIDECAR_RELAY_H
#define WEIR_SIDECAR_RELAY_H

#include "base/states.h"
#include "client/forward.h"
#include "sidecar/events.h"
#include "sidecar/inner.h"
#include "sidecar/proxy_head.h"
#include "sidecar/refusal.h"

enum relay_state {
    RELAY_READING,    /* the request's body comes in */
    RELAY_WAITING,    /* for the answer of the request that has its key */
    RELAY_ASKING,     /* the agent has the request, or gets it */
    RELAY_COLLECTING, /* its answer is read whole */
    RELAY_PASSING,    /* its answer is passed on as it comes */
    RELAY_EVENTS,     /* its answer is an event stream, frame by frame */
    RELAY_ANSWERED,   /* nothing more is sent; parts may still have to leave */
    RELAY_OVER,
    RELAY_STATE_COUNT,
};

extern const struct state relay_states[RELAY_STATE_COUNT];

enum relay_kind {
    RELAY_PLAIN,   /* only passed on */
    RELAY_TURN,    /* /invoke, /resume: the answer gets our fields */
    RELAY_STREAM,  /* /stream */
    RELAY_OPENAPI, /* passed on; an own document if the agent has none */
};

struct relay_target {
    struct str url;  /* lives as long as the sidecar */
    struct str path; /* of the request that is passed on; lives as long as the exchange */
    enum relay_kind kind;
    bool is_agent;   /* else: another server, which gets no credentials of the caller */
    struct str name; /* of that server, likewise */
};

struct relay {
    struct list link; /* in sidecar->relays */
    struct sidecar *sidecar;
    struct exchange *exchange; /* NULL: closed */
    struct relay_target target;
    enum relay_state state;
    struct trace trace;
    /* For its spans. */
    struct text path;  /* no text: none are wanted */
    struct str method; /* a constant */
    uint64_t asked_us; /* when the agent was asked; 0: it was not */
    int status;        /* that the client got; 0: none yet */
    struct str error;  /* why it failed: a constant, or empty */
    uint64_t began_us;
    bool is_head;

    /* the request */
    bool collects;     /* its body is read whole */
    bool body_ended;   /* it has all come */
    struct buf body;   /* so far */
    struct timer slow; /* an incomplete body must bring something from time to time */
    size_t slow_from, received;
    size_t owed;         /* bytes of the body that are not consumed yet */
    bool chunks;         /* its length was not known */
    struct text key;     /* idempotency key, or no text */
    struct text request; /* what makes it the same request, while it waits */
    struct replay *run;  /* NULL: its key is not claimed by it */
    struct replay_waiter waiter;
    struct holding holding; /* the bodies here */
    struct text head; /* of the request to the agent, written while the exchange is there */

    /* the answer */
    struct forward *forward; /* NULL: the agent is not asked, or any more */
    struct account *account; /* what was posted meanwhile under its trace id */
    struct spent found;      /* what the answer says of its own usage */
    struct proxy_response response;
    struct buf answer;    /* while collecting */
    struct events events; /* in RELAY_EVENTS */
    bool has_events;
    size_t event_held; /* bytes of a long event that are counted in `holding` */
    bool paused;       /* the client is slower than the agent */
    bool drains;       /* after [DONE] the agent may end its stream by itself */
    struct timer heartbeat;
    uint64_t sent_ms; /* when something last went to the client */
};

/* Take a request that may be passed on. */
void relay_start(struct sidecar *sidecar, struct exchange *exchange,
                 const struct relay_target *target);

/* Cut all of them: the sidecar stops. */
void relay_cut_all(struct sidecar *sidecar);

/* --- between relay.c and relay_answer.c ------------------------------------------------------- */

void relay_move(struct relay *relay, enum relay_state next);

/* Answer with a failure and end. keep_key: a retry must not run again. */
void relay_refuse(struct relay *relay, int status, struct str code, struct str message,
                  bool keep_key);

/* Note that so many more bytes of a body are kept. False: there is no room, and it was
 * refused. */
MUST_CHECK bool relay_hold(struct relay *relay, size_t bytes, bool keep_key);

/* The same with what a guardrail found in the request, or in the answer of a run. */
enum relay_text { RELAY_REQUEST, RELAY_ANSWER };
void relay_block(struct relay *relay, const struct filter_result *result, enum relay_text text);

/* Report how long a guardrail read a whole body. */
void relay_span_rules(const struct relay *relay, uint64_t began_us, enum relay_text text);

/* The answer is complete, and has been given to the exchange if there is one. `answer`: NULL: a
 * key is given back. */
void relay_end(struct relay *relay, const struct replay_answer *answer);

/* The run is over and the exchange closed: free it. */
void relay_settle(struct relay *relay);

/* relay_answer.c: ask the agent. relay->head and relay->body are complete. */
void relay_ask(struct relay *relay);

/* The client reads again, or the heartbeat is due. */
void relay_drained(struct relay *relay);
void relay_beat(void *relay);

#endif
