/* request: the body of a message request.
 *
 * Memory   results are views into the body or lie in the arena.
 * Threads  none.
 * Source   Anthropic API reference, "Messages": model, messages, system, tools, tool_choice,
 *          metadata, stream, output_config.format. What belongs to the agent (max_tokens, temperature, thinking and so on)
 *          is checked for its type and otherwise left to the agent's own settings.
 */
#ifndef WEIR_CONTRACT_ANTHROPIC_REQUEST_H
#define WEIR_CONTRACT_ANTHROPIC_REQUEST_H

#include "contract/guest_turn.h"

enum messages_use {
    MESSAGES_WHOLE,   /* the list is the whole conversation */
    MESSAGES_GO_ON,   /* a session has what was before it */
    MESSAGES_COUNTED, /* a body of count_tokens, which needs no max_tokens */
};

/* Fill ret->agent, user, text, messages, tools, tool_choice, schema, streams.
 * errors  ERR_MALFORMED no JSON; ERR_INVALID_ARGUMENT what is wrong, with its place; ERR_TOO_LARGE
 *         the arena's limit */
MUST_CHECK bool messages_request_parse(struct str body, enum messages_use use,
                                       struct arena *arena, struct guest_request *ret,
                                       struct err *e);

#endif
