/* converse: AgentRuntime.Converse, many turns on one bidirectional stream.
 *
 * Each request is a turn. It becomes a run, one stream of mode DONE reads the run's journal,
 * and the DoneEvent is the last message of the turn. Then the next request is read. A failed
 * turn is a DoneEvent whose model begins with "ERROR:", and the call stays open. A gRPC status
 * ends the call only when the call itself cannot continue.
 *
 * Memory   settings and hosts are borrowed for the life of the service.
 * Threads  each call belongs to its loop.
 * Source   contracts/crawbl.md 2.1 to 2.4; checks.md K8, K11, K15, K18 and group O.
 */
#ifndef WEIR_CONTRACT_CRAWBL_CONVERSE_H
#define WEIR_CONTRACT_CRAWBL_CONVERSE_H

#include "contract/crawbl/guard.h"
#include "contract/crawbl/workspace_agents.h"
#include "turn/run.h"

struct converse_settings {
    struct crawbl_guard guard;
    bool lenient;             /* upstream's fallbacks instead of ERROR (K15) */
    bool errors_as_text;      /* K12 */
    bool sticky;              /* the last speaker answers, not the Manager */
    enum session_policy busy; /* what to do with a second turn of a session */
    size_t message_max_bytes;
    struct leaving on_disconnect; /* what happens to a turn whose caller leaves */
    uint64_t stall_ms;            /* a peer that reads nothing for this long is cut */
};

/* One loop's share of the service. */
struct converse_instance {
    const struct converse_settings *settings;
    struct run_host *host;
    struct workspace_agents *workspace_agents; /* chooses the engine of a turn */
};

/* Fill a service. Its methods and names are constant; `instance` is borrowed. Call this again
 * when the instance has new settings. */
void converse_service(struct converse_instance *instance, struct rpc_service *ret);

#endif
