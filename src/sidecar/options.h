/* options: the settings of the sidecar.
 *
 * The published sidecar's environment variables and its YAML file, with the same names, and
 * more keys of our own. The environment beats the file; an empty variable does not count.
 *
 * Memory   the caller owns the options; all texts are in their arena.
 * Threads  read-only once read. sidecar_options_read() reads files: call it before the loop runs.
 * Source   contracts/agentbreeder.md 4.2.
 */
#ifndef WEIR_SIDECAR_OPTIONS_H
#define WEIR_SIDECAR_OPTIONS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/rate_limits.h"
#include "exporter/headers.h"
#include "guardrail/guardrail.h"
#include "provider/price.h"
#include "sidecar/reserved.h"

#define SIDECAR_FILE "/etc/agentbreeder/sidecar.yaml"

/* Another agent that ours may ask. */
struct sidecar_peer {
    struct str name, url;
    struct str token; /* empty: the sidecar's own */
};

/* An MCP server. */
struct sidecar_tools {
    struct str name;
    struct str url;          /* over HTTP; empty: a program */
    const char *const *args; /* the program and its arguments; ends with NULL */
};

struct sidecar_options {
    struct arena *arena;
    bool disabled; /* by AGENTBREEDER_SIDECAR; nothing else was read */

    struct str agent_name, agent_version;
    struct str inbound, a2a, mcp, cost; /* addresses; empty: off */
    struct str agent_url;
    struct str token;         /* empty: none is required */
    bool wrong_token_401;     /* as the published sidecar; the contract says 403 */
    struct str otlp_endpoint; /* of telemetry */
    struct exporter_headers otlp_headers;

    struct str api_url, api_token; /* of the platform; no URL: events of cost go nowhere */
    bool platform_routes; /* the routes that the platform has, not the published ones */
    struct str team;      /* for those */
    struct str outbox;    /* file of events that wait; empty: they wait in memory */

    struct guardrail_rule *rules; /* after the default ones */
    size_t rule_count;
    bool default_rules, luhn; /* luhn: of the default rule for payment cards */
    bool scan_answers;        /* answers pass the rules, too */

    struct sidecar_peer *peers;
    size_t peer_count;
    struct sidecar_tools *tools;
    size_t tool_count;
    struct price *prices;
    size_t price_count;
    enum reserved_tokens tokens;

    uint64_t connect_ms, first_byte_ms, stall_ms, total_ms; /* of the agent; 0: no limit */
    uint64_t heartbeat_ms;                                  /* 0: none */
    uint64_t stop_ms;
    uint64_t body_max_bytes, answer_max_bytes;
    uint64_t bodies_max_bytes; /* of all that are kept at once */
    uint64_t idempotency_ms;   /* 0: keys are only passed on */
    struct rate_limit rates[RATE_SCOPES];
};

/* file         of -c, or NULL: SIDECAR_FILE. A file that is missing is as an empty one.
 * environment  "NAME=value"; ends with NULL
 * errors  ERR_INVALID_ARGUMENT what is wrong, where, and the fix; those of reading the file */
MUST_CHECK bool sidecar_options_read(const char *file, const char *const *environment,
                                     struct sidecar_options **ret, struct err *e);
void sidecar_options_free(struct sidecar_options *options); /* accepts NULL */

/* Append all settings: keys, variables, defaults and meanings, as --help and the docs show
 * them. */
void sidecar_options_help(struct buf *out);

#endif
