/* daemon: the parts put together, from start to stop.
 *
 *     starting ─▶ serving ─▶ stopping ─▶ stopped
 *
 * It listens before the store is open, so that a probe is answered at once (`loading`); turns
 * wait or are refused until then. SIGTERM and SIGINT stop it: no new calls, idle streams end,
 * turns may finish until the shutdown deadline, then they are pre-empted, what happened is
 * written, and the process ends. A second signal ends it at once. SIGHUP has it read its
 * configuration again (edition.h); while it starts that waits, and while it stops it means
 * nothing.
 *
 * Memory   borrows the configuration.
 * Threads  daemon_run() blocks its thread until all is over.
 * Source   design.md "Listeners"; checks.md K17, K18 and group D.
 */
#ifndef WEIR_DAEMON_DAEMON_H
#define WEIR_DAEMON_DAEMON_H

#include "config/config.h"
#include "contract/contract.h"

#define WEIR_VERSION "0.1.0"

struct daemon;

struct daemon_options {
    const struct config *config;
    const struct config_input *input;       /* for reading it again */
    const struct contract_table *contracts; /* what it speaks; constant */
    struct str demo_key; /* stands for config's signing keys when not empty */
    /* Once, when it serves: all ports are known and the store is open. May be NULL. */
    void (*on_ready)(const struct daemon *daemon, void *ctx);
    void *ctx;
};

/* Returns when the daemon has stopped.
 * errors  what kept it from serving; after on_ready there is none, a stop is a success */
MUST_CHECK bool daemon_run(const struct daemon_options *options, struct err *e);

/* For on_ready: the port of a listener ("http", "grpc"), 0 when it has none; when the process
 * of this program began; and the slugs of the agents, "manager → researcher, writer". */
int daemon_port(const struct daemon *daemon, const char *listener);
void daemon_agents_text(const struct daemon *daemon, struct buf *out);

#endif
