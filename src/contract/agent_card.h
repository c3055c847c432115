/* agent_card: what a program learns of an agent before it talks to it: its A2A card.
 *
 * The same members say it to readers of A2A 0.3 (`url`, `preferredTransport`) and of 1.0
 * (`supportedInterfaces`), which skip each other's. They stand in the cards at both well-known
 * paths, the Runtime Contract's among them. The first agent's card offers each agent as a skill,
 * and is served at the root; the card of agent X has its addresses below /a2a/X.
 *
 * Memory   borrows what it is given.
 * Threads  the loop of the call.
 * Source   A2A 1.0 4.4, 8.2; A2A 0.3 5.5; conventions.md b2, b10.
 */
#ifndef WEIR_CONTRACT_AGENT_CARD_H
#define WEIR_CONTRACT_AGENT_CARD_H

#include "contract/contract.h"
#include "wire/json.h"

struct agent_card_settings {
    bool a2a;       /* the agents speak A2A; else there is no such card */
    struct str url; /* where others reach this program; empty: the host that a request names */
    bool webhooks;  /* it calls those that clients name */
    bool tls;       /* of the listener */
    struct str name, version; /* of the program; the first agent's */
};

struct agent_card_settings agent_card_settings(const struct config *config);

/* Open no object and close none: the members of the card of `agent`, without name and version.
 * `secured`: callers need a token. */
void agent_card_write(struct route_call *call, const struct agent_card_settings *settings,
                      const struct engine *engine, const struct agent *agent, bool secured,
                      struct json_writer *w);

#endif
