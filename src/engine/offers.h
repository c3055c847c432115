/* offers: what each agent's model is given besides the conversation.
 *
 * This is the agent's instructions, the agents it may hand the turn to, and the tools it may
 * call. Tools that the run answers itself (the transfer) come first. All of it is the same for
 * every turn, so it is written once, when an engine is assembled.
 *
 * Memory   owns its text; borrows the engine's agents and tools, which must outlive it.
 * Threads  read-only once made.
 * Source   contracts/crawbl.md 2.6.
 */
#ifndef WEIR_ENGINE_OFFERS_H
#define WEIR_ENGINE_OFFERS_H

#include "provider/provider.h"

struct engine;
struct agent;
struct offers;

struct offer {
    struct str system; /* its instructions, its name, and the agents it may hand the turn to */
    struct str briefing; /* the same without its instructions: appended to the caller's */
    const struct tool_offer *tools;
    size_t tool_count;
};

/* For all agents of `engine`, whose agents and tools are set. */
struct offers *offers_new(const struct engine *engine);
void offers_free(struct offers *offers); /* NULL is fine */

/* The offer for `agent`, one of the engine's. */
const struct offer *offers_of(const struct offers *offers, const struct agent *agent);

#endif
