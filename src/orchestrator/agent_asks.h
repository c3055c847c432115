/* agent_asks: an agent asks another one and gets its answer, the tool send_message_to_agent.
 *
 *     finding ─▶ admitting ─▶ asking ─▶ storing ─▶ over
 *        └───────────┴────────────────────────────▲
 *
 * The call comes over MCP while the runtime of its agent is in a turn. The other agent is asked
 * with a Converse of its own on the same session, and what it says is the result of the tool. It
 * is no message of the conversation, but its usage counts, clients see the delegation, and each
 * call is a row.
 *
 * A call names its user and conversation, not its agent. Runtimes say what an agent asks before
 * they ask it, so the turn that has said it is looked for; of a runtime that says nothing, the
 * depth is that of the deepest call which runs for the same message of the user. An agent asks
 * neither itself nor whom it is asking already further up, and calls are at most
 * AGENT_DEPTH_MAX within each other.
 *
 * Memory   a call lives until it is answered and stored.
 * Threads  the orchestrator's loop.
 * Source   contracts of the orchestrator, "Agent-to-agent, workflows, test double".
 */
#ifndef WEIR_ORCHESTRATOR_AGENT_ASKS_H
#define WEIR_ORCHESTRATOR_AGENT_ASKS_H

#include "base/states.h"
#include "orchestrator/mcp/endpoint.h"
#include "orchestrator/talks.h"

/* Calls of a workspace that run at once. */
#define AGENT_ASKS_MAX 32

struct agent_asks;

/* The options of talks: the database, the driver, where events go. `talks` may not be NULL. */
struct agent_asks *agent_asks_new(const struct talks_options *options, struct talks *talks);
/* End all calls. What is not stored by then is ended by another process. */
void agent_asks_stop(struct agent_asks *asks);
void agent_asks_free(struct agent_asks *asks); /* accepts NULL */
bool agent_asks_idle(const struct agent_asks *asks);

void agent_asks_serve(struct agent_asks *asks, struct orchestrator_call *call,
                      const struct orchestrator_call_view *view);

/* --- states, for tests and the drawing ------------------------------------------------------ */

enum agent_ask_state {
    AGENT_ASK_FINDING,   /* the workspace, and the agent that asks */
    AGENT_ASK_ADMITTING, /* its row is being stored */
    AGENT_ASK_ASKING,    /* the other agent */
    AGENT_ASK_STORING,   /* the end */
    AGENT_ASK_OVER,
    AGENT_ASK_STATE_COUNT,
};

extern const struct state agent_ask_states[AGENT_ASK_STATE_COUNT];

#endif
