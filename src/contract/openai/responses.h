/* responses: what a new response and a stored one have in common. Private to this contract.
 *
 * Memory   struct responding is its turn's.
 * Threads  the loop of its call.
 */
#ifndef WEIR_CONTRACT_OPENAI_RESPONSES_H
#define WEIR_CONTRACT_OPENAI_RESPONSES_H

#include "contract/openai/api_turn.h"
#include "contract/openai/response.h"
#include "contract/openai/run_head.h"

struct asked;

struct responding {
    struct response response;
    struct run_head *head; /* while it is looked up */
    struct asked *asked;
    uint64_t previous_run, mark; /* of a new one */
    bool seen;                   /* an event has been seen */
    bool answered;               /* in the background: the rest is not sent */
    /* Of a stored one. */
    uint64_t run;
    enum responding_wish { WISH_READ, WISH_STREAM, WISH_CANCEL, WISH_DELETE } wish;
};

void responding_open(struct api_turn *turn);
void responding_free(struct api_turn *turn);

/* Whether the run with this first event is a stored response of this caller. */
bool responding_owns(const struct api_turn *turn, const struct event *started);

/* Note an event and fold it. */
void responding_note(struct api_turn *turn, const struct event *event);

/* Answer with the response as it is; `last` as response_write() has it. */
void responding_reply(const struct api_turn *turn, const struct event *last);

enum stream_verdict responding_judge(const struct event *event, void *ctx);

extern const struct stream_wire responding_events_wire;

#endif
