/* responses: what a new response and a stored one have in common. Private to this contract.
 *
 * Memory   struct responding is its turn's.
 * Threads  the loop of its call.
 */
#ifndef WEIR_CONTRACT_OPENAI_RESPONSES_H
#define WEIR_CONTRACT_OPENAI_RESPONSES_H

#include "contract/openai/api_turn.h"
#include "contract/openai/response.h"
#include "contract/openai/response_input.h"
#include "contract/run_head.h"
#include "contract/run_summary.h"

struct asked;

struct responding {
    struct response response;
    struct run_head *head; /* while it is looked up */
    struct asked *asked;
    bool newest_vain;            /* the newest run of the conversation had no outcome */
    uint64_t previous_run, mark; /* of a new one */
    bool seen;                   /* an event has been seen */
    bool answered;               /* in the background: the rest is not sent */
    /* Of a stored one. */
    uint64_t run;
    enum responding_wish { WISH_READ, WISH_INPUT, WISH_STREAM, WISH_CANCEL, WISH_DELETE } wish;
    struct response_input input; /* WISH_INPUT */
    struct response_input_page page;
    struct run_summary summary;
    struct run_scan *scan; /* while it is read from the store */
    struct buf body;       /* the response, as its last event left it; empty: it goes on */
    bool over;             /* no later event is part of it */
};

static inline struct responding *responding_of(const struct api_turn *turn) {
    return turn->own;
}

struct api_turn *responding_new(void);
void responding_free(struct guest_turn *base); /* for struct guest_form */

/* Whether the run with this first event is a stored response of this caller. */
bool responding_owns(const struct api_turn *turn, const struct event *started);

/* Note an event and fold it. */
void responding_note(struct api_turn *turn, const struct event *event);

/* The response as it is; `last` as response_write() has it. */
void responding_write(const struct api_turn *turn, const struct event *last, struct buf *out);

/* Answer with it. */
void responding_reply(const struct api_turn *turn, const struct event *last);

extern const struct stream_wire responding_events_wire;

#endif
