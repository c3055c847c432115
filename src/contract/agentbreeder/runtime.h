/* runtime: AgentBreeder's Runtime Contract v1 over HTTP.
 *
 * /invoke starts a run and reads it with a stream of mode SINGLE. /stream reads the same run
 * with mode DONE, whose transport close is `data: [DONE]`. /resume answers a run that waits for
 * a human and reads on like /invoke. An /invoke or /stream whose text is a decision does the
 * same in a session that waits for one. When a caller closes the connection the run is
 * cancelled, unless the request or the settings keep it going or the request had an idempotency
 * key. /health, /openapi.json and the agent card need no token.
 *
 * Memory   settings and hosts are borrowed for the life of the table.
 * Threads  an instance and its calls belong to one loop.
 * Source   contracts/agentbreeder.md 1 and 2; checks.md K28, K29.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_RUNTIME_H
#define WEIR_CONTRACT_AGENTBREEDER_RUNTIME_H

#include "contract/agent_card.h"
#include "contract/guest.h"
#include "server/server.h"

struct runtime_settings {
    struct guest_settings
        guest;        /* first: the guest reads it; its workspace is every caller's (K23) */
    struct str token; /* AGENT_AUTH_TOKEN, trimmed; empty: no token is required */
    struct str agent_name, agent_version, framework; /* framework may be empty */
    enum brought_policy brought;                     /* how to treat a caller's message list */
    bool behind_sidecar;                             /* answers tell it their usage */
    struct agent_card_settings card;                 /* what its card says to readers of A2A */
};

/* One loop's share. Until it serves, and once it stops, /health says loading and turns are refused. */
struct runtime_instance {
    struct guest guest;              /* first; its settings are a struct runtime_settings */
    const struct route_table *table; /* the table in use; /openapi.json describes it */
};

static inline const struct runtime_settings *
runtime_settings(const struct runtime_instance *instance) {
    return (const struct runtime_settings *)instance->guest.settings;
}

/* Fill the table of this contract. It borrows `instance`, a struct runtime_instance, which keeps a
 * pointer to it. Call this again when the instance has new settings. */
void runtime_table(void *instance, struct route_table *ret);

/* turn.c: the calls that run an agent. */
route_fn turn_invoke, turn_stream, turn_resume;

/* Make another table of the same listener send this contract's version headers too. */
void runtime_sign(struct route_table *table);

/* How this contract's listener refuses input that never became a request. */
extern const struct refusal_form runtime_refusal;

#endif
