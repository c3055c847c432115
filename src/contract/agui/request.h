/* request: a RunAgentInput.
 *
 *     messages           the whole conversation, as the client has it
 *     tools              of the client's own: the model may call them
 *     state, context     for the model, as the first message; for agents that are programs, with
 *                        forwardedProps, as metadata
 *     resume             the answer to an interrupt
 *
 * Memory   results are views into the body or lie in the arena.
 * Threads  none.
 * Source   AG-UI specification 1.0, RunAgentInput.
 */
#ifndef WEIR_CONTRACT_AGUI_REQUEST_H
#define WEIR_CONTRACT_AGUI_REQUEST_H

#include "contract/guest_turn.h"

struct run_input {
    struct str thread, run; /* as the client names them; it gets both back */
    bool has_state;         /* an object, which an agent may change */
};

/* Fill *ret and the request's session, messages, tools, extras and decision.
 * errors  ERR_MALFORMED no JSON; ERR_INVALID_ARGUMENT what is wrong, with its place; ERR_TOO_LARGE
 *         the arena's limit */
MUST_CHECK bool run_input_parse(struct str body, struct arena *arena, struct run_input *ret,
                                struct guest_request *ret_request, struct err *e);

#endif
