/* sidecar: the layer in front of another program's agent, from start to stop.
 *
 *     client ─▶ inbound :8080 ─▶ token, rates, guardrails ─▶ agent 127.0.0.1:8081
 *     agent  ─▶ helpers 9090, 9091, 9092: cost, A2A, MCP, health
 *
 * Everything is on one loop: the parts share state without locks, and a sidecar has a part of
 * one core. It writes no file, except an outbox that is configured. SIGTERM and SIGINT stop it:
 * requests in flight get a few seconds.
 *
 * Memory   borrows the options.
 * Threads  sidecar_run() blocks its thread until the sidecar has stopped.
 * Source   contracts/agentbreeder.md 4.
 */
#ifndef WEIR_SIDECAR_SIDECAR_H
#define WEIR_SIDECAR_SIDECAR_H

#include "sidecar/options.h"

/* Where it listens. */
struct sidecar_ports {
    int inbound, a2a, mcp, cost; /* 0: off */
};

struct sidecar_run {
    const struct sidecar_options *options;
    const char *const *environment; /* of MCP servers that are programs, without our tokens */
    void (*on_ready)(const struct sidecar_ports *ports, void *ctx); /* may be NULL */
    void *ctx;
};

/* errors  the reason it could not serve: a rule, an address, the outbox */
MUST_CHECK bool sidecar_run(const struct sidecar_run *run, struct err *e);

#endif
