/* change: what a call makes of an agent.
 *
 * An agent is stored as an InitializeAgentResponse: who it is, and its state. The functions of
 * store/agents.h are called within the transaction, with what is stored at that moment, so two
 * calls at once are made one after the other and neither's change is lost.
 *
 * Private to contract/nimi/agent.
 *
 * Memory   a request is copied; its owner is the request to the store.
 * Threads  the changes: the store's. The rest: any.
 * Source   contracts/nimi.md 1.12.
 */
#ifndef WEIR_CONTRACT_NIMI_AGENT_CHANGE_H
#define WEIR_CONTRACT_NIMI_AGENT_CHANGE_H

#include "contract/nimi/fault.h"
#include "store/agents.h"

#define CHANGE_MUTATIONS_MAX 100
#define CHANGE_ATTRIBUTES_MAX 64
#define CHANGE_KEY_MAX_BYTES 128
#define CHANGE_VALUE_MAX_BYTES (4 * KIB)
#define CHANGE_STATUS_TEXT_MAX_BYTES (1 * KIB)
#define CHANGE_STRUCT_MAX_BYTES (16 * KIB) /* metadata; extensions */

/* What a call does to an agent.
 * errors  ERR_NOT_FOUND; ERR_FAILED_PRECONDITION it is terminated;
 *         ERR_RESOURCE_EXHAUSTED it has too many attributes */
struct change_kind;
extern const struct change_kind change_initialize, change_terminate, change_update;

/* For the store, with a copy of the request. */
struct agents_change change_new(const struct change_kind *kind, const void *request);

/* What can be said of a request without its agent.
 * errors  PROTOCOL_ENVELOPE_INVALID */
MUST_CHECK bool change_check_initialize(const struct nimi_initialize_agent_request *from,
                                        struct fault *fault);
MUST_CHECK bool change_check_update(const struct nimi_update_agent_state_request *from,
                                    struct fault *fault);

#endif
