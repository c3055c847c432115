/* converse: agents of an AgentRuntime elsewhere, asked over its Converse.
 *
 *     turn ─▶ ConverseRequest ─▶ chunk, thinking, tool_call, tool_result, usage ... ─▶ done
 *
 * The runtime has the tools, the delegates and the history of its sessions; we show what it
 * does and record it. One stream serves a conversation over many turns and is kept open between
 * them (client/grpc_keep.h), or each turn has a stream of its own. All streams of a loop to one
 * runtime share a connection. Each stream opens with a token that is signed for it.
 *
 * A request is sent again only if the runtime provably never saw it: it could not be reached,
 * or refused the stream. What was written to a stream may have run.
 *
 * Memory   the http pool outlives the providers and their calls.
 * Threads  as provider.h.
 * Source   docs/remote-agents.md; contracts of the agent runtime.
 */
#ifndef WEIR_AGENT_CONVERSE_H
#define WEIR_AGENT_CONVERSE_H

#include "agent/kind.h"

/* The port of an address without one. */
#define CONVERSE_PORT 42618

/* --- the states of one call, for tests and the drawing ---------------------------------- */

enum converse_state {
    CONVERSE_ASKING,  /* the request was sent; no event yet */
    CONVERSE_WAITING, /* for the next attempt */
    CONVERSE_READING, /* at least one event has arrived */
    CONVERSE_OVER,    /* the end was reported, or the call was cancelled */
    CONVERSE_STATE_COUNT,
};

struct str converse_state_name(enum converse_state state);
bool converse_may_become(enum converse_state state, enum converse_state next);

/* "host:port", "host", "[::1]:port": both are views into the address.
 * errors  ERR_INVALID_ARGUMENT */
MUST_CHECK bool converse_read_address(struct str address, struct str *ret_host,
                                      uint16_t *ret_port, struct err *e);

#endif
