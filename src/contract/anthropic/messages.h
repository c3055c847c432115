/* messages: a request of Anthropic's Messages API, and a run as its answer.
 *
 *     text of the run       one block of type text
 *     reasoning             blocks of type thinking, where the agent shows it
 *     a caller's call       a block of type tool_use; the answer ends with it
 *     a question            text, and "weir":{"approval":...} with its id
 *
 * The agent's own calls are its own affair: a client would make a tool_use. They are in the run's
 * events.
 *
 * Memory   lives from its request until its answer is out or its caller is gone.
 * Threads  the instance's loop.
 * Source   Anthropic API reference, "Messages", "Streaming messages", "Count tokens".
 */
#ifndef WEIR_CONTRACT_ANTHROPIC_MESSAGES_H
#define WEIR_CONTRACT_ANTHROPIC_MESSAGES_H

#include "route/route.h"

#define ANTHROPIC_CONTRACT "anthropic" /* recorded with the runs */

route_fn messages_create, messages_count_tokens;

#endif
