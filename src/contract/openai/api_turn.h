/* api_turn: one request of OpenAI's API that runs an agent. Private to this contract.
 *
 * What Chat Completions and Responses add to a guest's turn (contract/guest_turn.h): how both are
 * refused, and what a run comes to.
 *
 * Memory   lives from its request until its answer is out or its caller is gone.
 * Threads  the instance's loop.
 */
#ifndef WEIR_CONTRACT_OPENAI_API_TURN_H
#define WEIR_CONTRACT_OPENAI_API_TURN_H

#include "contract/completion.h"
#include "contract/openai/api_error.h"
#include "contract/openai/openai.h"
#include "contract/openai/request.h"
#include "route/route_json.h"

struct api_turn {
    struct guest_turn base;
    struct completion completion;
    struct text head; /* the beginning of each chunk */
    bool begun;       /* a chunk has been sent */
    bool wants_usage;
    void *own; /* of responses */
};

struct api_turn *api_turn_new(void);

/* For struct guest_form. */
void api_turn_free(struct guest_turn *base);
void api_turn_refuse(struct guest_turn *base, const struct err *why);
void api_turn_refuse_for(struct guest_turn *base, enum guest_refusal why);

static inline struct api_turn *api_turn_of(struct guest_turn *base) {
    return CONTAINER_OF(base, struct api_turn, base);
}

/* The request is read: what its answer must know of it. */
void api_turn_expect(struct api_turn *turn, const struct guest_request *request);

/* A run that began elsewhere does not say again which agent was asked, and where; nor does a question
 * that is asked again. */
void api_turn_note_origin(struct api_turn *turn);

/* Refuse the request with a code of its own, and end the turn. */
void api_turn_refuse_as(struct api_turn *turn, int status, struct str code, struct str message,
                        struct str param);

/* Note an event of the run; as completion_note(). */
bool api_turn_note(struct api_turn *turn, const struct event *event);

/* How a run's end without an answer is shown. `last` is NULL if the cause was outside it. */
struct api_failure api_turn_failure(enum close_cause cause, enum err_code status,
                                    const struct event *last, struct str *ret_message);

/* A whole answer ends without success. True: the content filter cut it, and what there is of it is
 * the answer. False: its caller has left, or has been answered with the error. */
bool api_turn_ends_filtered(struct api_turn *turn, enum err_code status, enum close_cause cause,
                            const struct event *last);

#endif
