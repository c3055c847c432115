/* ask_daemon: send one request to the daemon that runs with these settings.
 *
 * For commands that show or change the state of a running daemon. The request goes to its HTTP
 * listener on this machine, at the configured address, with AGENT_AUTH_TOKEN
 * (tokens.auth_token_file) as the token and without a proxy. The call blocks.
 *
 * Memory   see each function.
 * Threads  the main thread.
 * Source   checks.md K23.
 */
#ifndef WEIR_CLI_ASK_DAEMON_H
#define WEIR_CLI_ASK_DAEMON_H

#include "config/config.h"

struct daemon_question {
    struct str method; /* "GET" */
    struct str path;   /* "/weir/v1/approvals?limit=3", already escaped */
    struct str body;   /* JSON, or empty */
    /* Gets the bytes of a successful answer as they come. */
    void (*on_body)(struct str bytes, void *ctx);
    void *ctx;
};

/* One of the daemon's listeners, as the settings have it. */
struct daemon_listener {
    struct str address;
    const char *what, *setting, *flag; /* "HTTP", "listen.http", "--http" */
};

/* Append the URL of a listener, "http://127.0.0.1:8080": a wildcard address is reached over
 * loopback.
 * errors  ERR_FAILED_PRECONDITION the settings do not say where it is */
MUST_CHECK bool daemon_write_base(const struct config *config,
                                  const struct daemon_listener *listener, struct buf *out,
                                  struct err *e);

/* False: there was no successful answer. A refusal carries the daemon's own message.
 * errors  ERR_UNAVAILABLE no daemon listens there; ERR_NOT_FOUND 404; ERR_ABORTED 409;
 *         ERR_INVALID_ARGUMENT another 4xx; ERR_INTERNAL 5xx */
MUST_CHECK bool ask_daemon(const struct config *config, const struct daemon_question *question,
                           struct err *e);

/* The same; the answer is appended to `out`. */
MUST_CHECK bool ask_daemon_whole(const struct config *config, struct str method,
                                 struct str path, struct str body, struct buf *out,
                                 struct err *e);

#endif
