/* The Agent2Agent protocol, 0.3 and 1.0, as a guest of the HTTP listener: a task is a run.
 *
 *     POST /a2a, /a2a/{agent}          JSON-RPC; AgentBreeder's tasks/send, too
 *     POST /message:send ...           HTTP+JSON of 1.0, also below /a2a/{agent}
 *     GET  /.well-known/agent-card.json, /a2a/{agent}/.well-known/agent-card.json
 *
 * Memory   constant.
 * Threads  as contract/contract.h says.
 * Source   A2A 1.0; A2A 0.3; conventions.md b2, b10; contracts/agentbreeder.md 5.
 */
#ifndef WEIR_CONTRACT_A2A_CONTRACT_H
#define WEIR_CONTRACT_A2A_CONTRACT_H

#include "contract/contract.h"

extern const struct contract a2a_contract;
extern const struct setting_rows a2a_rows; /* options.c */

#endif
