/* daemon: the parts put together, from start to stop.
 *
 *     starting ─▶ serving ─▶ stopping ─▶ stopped
 *
 * A start has one order:
 *
 *     configuration, agents ─▶ listeners ─▶ loops, early callers ─▶ the store ─▶ ready
 *
 * It listens before the store is open, so that probes get an answer at once (`loading`); those that
 * came during the start are answered before the store begins. Until the store is open, turns wait
 * or are refused. A daemon that cannot listen opens no store. SIGTERM and SIGINT stop the daemon:
 * new calls are refused, idle streams end, and turns may finish until the shutdown deadline. Turns
 * that are still running then are cut, everything is written, and the process ends. A second
 * signal ends it at once. SIGHUP makes it read its configuration again (config_snapshot.h); during
 * the start that is postponed, and during the stop it is ignored.
 *
 * Memory   borrows the configuration.
 * Threads  daemon_run() blocks its thread until the daemon has stopped.
 * Source   design.md "Listeners"; checks.md K17, K18 and group D.
 */
#ifndef WEIR_DAEMON_DAEMON_H
#define WEIR_DAEMON_DAEMON_H

#include "base/version.h"
#include "config/config.h"
#include "contract/contract.h"

#include <sys/types.h>

struct daemon;

struct daemon_options {
    const struct config *config;
    const struct config_input *input;       /* for reading it again */
    const struct contract_table *contracts; /* the protocols it serves; constant */
    struct str demo_key; /* if not empty, used in place of the configured signing keys */
    /* If not empty: it was started for commands, who find it by this token in the data folder, and
     * ends when none of them is left (daemon/clients.h). starter: the parent process. */
    struct str client_token;
    pid_t starter;
    /* Called once, when it serves: all ports are known and the store is open. May be NULL. */
    void (*on_ready)(const struct daemon *daemon, void *ctx);
    void *ctx;
};

/* Run the daemon; returns when it has stopped.
 * errors  the reason it could not serve; none after on_ready, because a stop is a success */
MUST_CHECK bool daemon_run(const struct daemon_options *options, struct err *e);

/* For on_ready: the port of a listener ("http", "grpc"), 0 when it has none; and the slugs of
 * the agents, "manager → researcher, writer". */
int daemon_port(const struct daemon *daemon, const char *listener);
void daemon_agents_text(const struct daemon *daemon, struct buf *out);

#endif
