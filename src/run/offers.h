/* offers: what each agent is told besides its conversation.
 *
 * Its instructions with the agents it may hand the turn to, and the tools it may ask for,
 * those the run answers itself (the transfer) first. They are the same for every turn, so they
 * are written once, when an engine is assembled.
 *
 * Memory   owns its text; borrows the engine's agents and tools, and ends before them.
 * Threads  read-only once made.
 * Source   contracts/crawbl.md 2.6.
 */
#ifndef WEIR_RUN_OFFERS_H
#define WEIR_RUN_OFFERS_H

#include "provider/provider.h"

struct engine;
struct agent;
struct offers;

struct offer {
    struct str system;   /* its instructions, who it is, and whom it can hand over to */
    struct str briefing; /* the same without its own instructions: goes behind others */
    const struct tool_offer *tools;
    size_t tool_count;
};

/* For all agents of `engine`, whose agents and tools are set. */
struct offers *offers_new(const struct engine *engine);
void offers_free(struct offers *offers); /* NULL is fine */

/* What `agent`, one of the engine's, is told. */
const struct offer *offers_of(const struct offers *offers, const struct agent *agent);

#endif
