/* ask_daemon: one request to the daemon that runs with these settings.
 *
 * For commands that show or change what a running daemon has: they ask its HTTP listener on
 * this machine, at the address of the settings, with AGENT_AUTH_TOKEN (tokens.auth_token_file)
 * as the token. No proxy is asked. The call blocks.
 *
 * Memory   said at each call.
 * Threads  the main thread.
 * Source   checks.md K23.
 */
#ifndef WEIR_CLI_ASK_DAEMON_H
#define WEIR_CLI_ASK_DAEMON_H

#include "config/config.h"

struct daemon_question {
    struct str method; /* "GET" */
    struct str path;   /* "/weir/v1/approvals?limit=3": escaped where it must be */
    struct str body;   /* JSON, or empty */
    /* The bytes of an answer that is well, as they come. */
    void (*on_body)(struct str bytes, void *ctx);
    void *ctx;
};

/* False: there is no good answer. What a daemon refuses with is told in its own words.
 * errors  ERR_UNAVAILABLE nobody listens there; ERR_NOT_FOUND 404; ERR_ABORTED 409;
 *         ERR_INVALID_ARGUMENT another 4xx; ERR_INTERNAL 5xx */
MUST_CHECK bool ask_daemon(const struct config *config, const struct daemon_question *question,
                           struct err *e);

/* The same; the answer is appended to `out`. */
MUST_CHECK bool ask_daemon_whole(const struct config *config, struct str method,
                                 struct str path, struct str body, struct buf *out,
                                 struct err *e);

/* Append `text` as it may stand in a path or a query: percent-encoded. */
void ask_daemon_escape(struct buf *out, struct str text);

#endif
