/* inner: what the parts of a running sidecar share.
 *
 * Private to sidecar/.
 *
 * Memory   the sidecar owns all of it.
 * Threads  one loop's.
 */
#ifndef WEIR_SIDECAR_INNER_H
#define WEIR_SIDECAR_INNER_H

#include "client/forward.h"
#include "client/http.h"
#include "guardrail/guardrail.h"
#include "route/route.h"
#include "server/server.h"
#include "sidecar/accounts.h"
#include "sidecar/agent_health.h"
#include "sidecar/deliveries.h"
#include "sidecar/held.h"
#include "sidecar/options.h"
#include "sidecar/replays.h"

struct tool_program;

struct sidecar_counts {
    uint64_t requests, refused, limited, blocked, replayed, unreachable, late, full;
};

struct sidecar {
    const struct sidecar_options *options;
    struct loop *loop;
    struct http_pool *pool;
    struct server *server;
    struct guardrail **rules; /* all of them; they read requests */
    size_t rule_count;
    struct guardrails request_rules, answer_rules;
    struct price_book *prices;
    struct accounts *accounts;
    struct rate_limits *rates;
    struct exporter *exporter;     /* NULL: no spans are sent */
    struct replays *replays;       /* NULL: keys are only passed on */
    struct deliveries *deliveries; /* NULL: there is no platform */
    struct agent_health *health;
    struct forward_habit agent_habit;
    struct tool_program **programs; /* one for each MCP server; NULL: it is no program */
    struct route_table helper_table;
    const struct route_table *helper_tables[1]; /* that one */
    struct route_site *helpers;
    struct list relays;
    struct held held;
    struct sidecar_counts counts;
    bool stopping;
};

/* Append the body of /health: the contract's keys and those of the published sidecar. The
 * helpers' one has counts as well. */
void sidecar_write_health(const struct sidecar *sidecar, bool counts, struct buf *out);

#endif
