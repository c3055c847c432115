/* runtime: AgentBreeder's Runtime Contract v1 over HTTP.
 *
 * /invoke is a run read by a stream of mode SINGLE, /stream the same run read by one of mode
 * DONE whose transport close is `data: [DONE]`; /resume answers a run that waits for a human
 * and reads on as /invoke does; so does an /invoke or /stream whose words are a decision, in a
 * session that waits for one. A caller who closes the connection has his run cancelled, unless
 * he or the settings say that it goes on, or he sent an idempotency key. /health, /openapi.json
 * and the agent card are open.
 *
 * Memory   settings and hosts are borrowed for the life of the table.
 * Threads  a desk and its calls belong to one loop.
 * Source   contracts/agentbreeder.md 1 and 2; checks.md K28, K29.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_RUNTIME_H
#define WEIR_CONTRACT_AGENTBREEDER_RUNTIME_H

#include "route/route.h"
#include "run/run.h"
#include "server/server.h"

struct runtime_settings {
    struct str token;     /* AGENT_AUTH_TOKEN, trimmed; empty: everybody is let in */
    struct str workspace; /* of every caller (K23) */
    struct str agent_name, agent_version, framework; /* framework may be empty */
    size_t body_max_bytes;
    uint64_t body_stretch_ms; /* see struct route_table */
    size_t body_stretch_bytes;
    enum session_policy busy;        /* a second turn of a session */
    enum brought_policy brought;     /* a message list of a caller */
    uint64_t stall_ms, heartbeat_ms; /* of /stream */
    struct leaving on_disconnect;    /* for a request that says nothing about it */
    uint64_t keys_kept_ms;           /* how long an idempotency key stands for its run */
    bool keyed_outlives; /* a request with a key, and a decision, go on without their caller,
                            and a failure that left no effect gives the key back (K28) */
};

/* One loop's share. */
struct runtime_desk {
    const struct runtime_settings *settings;
    struct run_host *host;
    bool loaded;                     /* false: /health says loading, turns are refused 503 */
    struct list calls;               /* that wait for their run */
    const struct route_table *table; /* that serves, and is told at /openapi.json */
};

void runtime_desk_init(struct runtime_desk *desk, const struct runtime_settings *settings,
                       struct run_host *host);

/* The table of this contract; it borrows `desk`, and the desk keeps it. Again when the desk has
 * other settings. */
void runtime_table(struct runtime_desk *desk, struct route_table *ret);

/* Have another table of the same listener answer under this contract's version, too. */
void runtime_sign(struct route_table *table);

/* How the listener that carries this contract refuses what never became a request. */
extern const struct refusal_form runtime_refusal;

/* The shutdown deadline passed: end every open turn CANCELLED, as far as its reader can be
 * told (on /stream an error event and [DONE], on /invoke 503). */
void runtime_desk_cut(struct runtime_desk *desk);

#endif
