/* caller_tools: tools that the caller of a turn brings along, and makes the calls of itself.
 *
 * The model is offered them beside the agent's own. A reply that calls one ends the turn, with the
 * call open:
 *
 *     reply ─▶ calls of the agent's tools only ─▶ made as usual (tool_round.h)
 *        └───▶ one of the caller's among them ─▶ recorded, and the turn is done
 *                                                 the agent's own are not made: error
 *     the next turn brings the results as messages, and the model is shown call and result
 *
 * A call whose arguments cannot be read is not handed over, unless the caller's contract carries
 * them as text: the model learns this, and none of the reply's calls of the caller is made.
 *
 * An open call that no later turn answers is left out of what the model is shown.
 *
 * Memory   a plain value inside its run; its texts and tables are in the run's arena.
 * Threads  the loop of its run.
 * Source   docs/internals/turn.md "Tools of the caller".
 */
#ifndef WEIR_TURN_CALLER_TOOLS_H
#define WEIR_TURN_CALLER_TOOLS_H

#include "provider/provider.h"

struct agent;
struct run;
struct turn_call;
struct run_request;

#define CALLER_TOOLS_MAX 512

struct caller_tools {
    const struct tool_offer *list;
    size_t count;
    bool args_as_text;           /* as struct run_request has it */
    bool choice_told;            /* the choice was sent to the model */
    struct str choice;           /* as struct provider_request has it */
    const struct agent *for_one; /* whose offer `merged` holds */
    const struct tool_offer *merged;
    size_t merged_count;
};

/* Copy the caller's tools.
 * errors  ERR_INVALID_ARGUMENT a name is empty, comes twice, or is one that the agent has; the
 *         parameters are no JSON object; there are too many; the choice names none;
 *         ERR_RESOURCE_EXHAUSTED they are larger than a run may hold */
MUST_CHECK bool run_keep_caller_tools(struct run *run, const struct run_request *from,
                                      struct err *e);

/* Offer them beside those of `asked`. False: the run has failed, its memory is full. */
MUST_CHECK bool run_offer_caller_tools(struct run *run, struct provider_request *asked);

/* Whether it is a call of one of them. */
bool run_is_callers_call(const struct run *run, const struct turn_call *call);

/* If the reply calls one of them: record its calls, end the turn, and return true. */
bool run_hand_over_calls(struct run *run);

/* Whether each result among the messages that the caller brought answers a call, of the list or of
 * the session, that has no other result. False: the run has failed. */
MUST_CHECK bool run_check_results(struct run *run);

#endif
