/* converse: agents of an AgentRuntime elsewhere, asked over its Converse.
 *
 *     turn ─▶ ConverseRequest ─▶ chunk, thinking, tool_call, tool_result, usage ... ─▶ done
 *
 * The runtime has the tools, the delegates and the history of its sessions; we show what it
 * does and record it. How it is asked is converse_turn.h.
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

/* "host:port", "host", "[::1]:port": both are views into the address.
 * errors  ERR_INVALID_ARGUMENT */
MUST_CHECK bool converse_read_address(struct str address, struct str *ret_host,
                                      uint16_t *ret_port, struct err *e);

#endif
