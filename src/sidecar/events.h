/* events: an agent's event stream on its way through the sidecar.
 *
 * Feed it the stream in pieces of any size. What may pass comes out as whole frames, unchanged
 * unless a guardrail redacts something. The end is written by us: `[DONE]` is held back, and
 * the agent's own `event: done` is kept, so that the stream always ends
 *
 *     [event: error]  event: done  data: [DONE]
 *
 * with our fields in `done`. The text of `delta` and `text` is one text for the rules: a match
 * may span events, and what may become one is held back, GUARDRAIL_MATCH_MAX_BYTES per rule at
 * most, until later text, the result or the end. All other events are read string by string.
 *
 * Memory   owns what it holds back. Borrows the rules.
 * Lends    JSON to the callbacks.
 * Threads  none; one stream belongs to one loop.
 * Source   contracts/agentbreeder.md 2 and 4.6.
 */
#ifndef WEIR_SIDECAR_EVENTS_H
#define WEIR_SIDECAR_EVENTS_H

#include "base/text.h"
#include "guardrail/filter.h"
#include "sidecar/sse_frames.h"
#include "wire/json.h"

struct events_sink {
    /* An event that is no text: it may tell of usage. */
    void (*on_event)(struct json object, void *ctx);
    /* Append the object of `event: done`. `own`: the agent's, or JSON_NONE. */
    void (*write_done)(struct json own, struct buf *out, void *ctx);
    void *ctx;
};

struct events_options {
    bool terminates;        /* the stream of a turn: it ends with done and [DONE] */
    size_t event_max_bytes; /* of one event; more of it may be held after redaction */
    struct guardrails rules;
    struct events_sink sink;
};

struct events {
    struct events_options options;
    struct sse_frames frames;
    struct filter filter;
    struct buf *out;       /* during a feed */
    struct text done;      /* the agent's own object */
    bool resulted, failed; /* `result` or an error came */
    struct err fault;      /* why we gave the stream up; its code is ERR_NONE: we did not */
    bool ended;            /* the agent sent [DONE] */
    bool over;             /* [DONE] was written, or the end of another stream */
};

void events_init(struct events *events, const struct events_options *options);
void events_done(struct events *events);

/* Append what may pass. False: the stream is over, and the agent's is not needed any more; or
 * it was given up, which is the fault: an event is too long, or no rule can read it. */
MUST_CHECK bool events_feed(struct events *events, struct str bytes, struct buf *out);

/* Bytes of the event that has begun and is not whole yet. */
size_t events_waiting(const struct events *events);

/* The agent's stream has ended before events_feed() returned false. `why`: how, if it broke.
 * Append the end. */
void events_end(struct events *events, const struct err *why, struct buf *out);

/* Whether the stream is over because the agent sent [DONE]. */
bool events_ended_well(const struct events *events);

/* The rule that has blocked the stream, or NULL. */
const struct guardrail *events_blocked_by(const struct events *events);

#endif
