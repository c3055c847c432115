/* ask_daemon: send one request to a running daemon.
 *
 * For commands that show or change the state of a running daemon. Where it is:
 *
 *     --url (WEIR_URL)                     that one
 *     listen.http is set, with a port      there, on this machine
 *     otherwise                            where the daemon listens that has the data folder;
 *                                          without such a daemon, at listen.http
 *
 * The token is AGENT_AUTH_TOKEN (tokens.auth_token_file), and a daemon on this machine is asked
 * without a proxy. The calls block.
 *
 * Memory   see each function.
 * Threads  the main thread.
 * Source   checks.md K23.
 */
#ifndef WEIR_CLI_ASK_DAEMON_H
#define WEIR_CLI_ASK_DAEMON_H

#include "client/http.h"
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

/* --- whom to ask -------------------------------------------------------------------------- */

struct daemon_target {
    struct buf base;          /* "http://127.0.0.1:8080" */
    struct buf authorization; /* "Bearer ...", or empty */
    struct str trust;         /* borrowed of the settings */
};

/* url, token: what the command line names, or NULL. The target refers to `config`; end it with
 * daemon_target_done(), also after a failure.
 * errors  ERR_FAILED_PRECONDITION the settings do not say where the daemon is;
 *         ERR_INVALID_ARGUMENT the URL */
MUST_CHECK bool daemon_target_find(const struct config *config, const char *url,
                                   const char *token, struct daemon_target *ret, struct err *e);
void daemon_target_init(struct daemon_target *target, const struct config *config);
void daemon_target_done(struct daemon_target *target);

/* Set the token, if it is not empty. */
void daemon_target_authorize(struct daemon_target *target, struct str token);

/* The headers of a request to it. Returns how many: at most 2. */
size_t daemon_target_headers(const struct daemon_target *target, struct str body,
                             struct http_header ret[2]);

/* Fill *e from a refusal: the status, and the daemon's own message in the body. False. */
bool daemon_refused(unsigned status, struct str body, struct err *e);

/* --- asking ------------------------------------------------------------------------------- */

/* False: there was no successful answer. A refusal carries the daemon's own message.
 * errors  ERR_UNAVAILABLE no daemon listens there, or 503; ERR_NOT_FOUND 404; ERR_ABORTED 409;
 *         ERR_INVALID_ARGUMENT another 4xx; ERR_INTERNAL another 5xx */
MUST_CHECK bool ask_target(const struct daemon_target *target,
                           const struct daemon_question *question, struct err *e);

/* The answer is appended to `out`. */
MUST_CHECK bool ask_target_whole(const struct daemon_target *target, struct str method,
                                 struct str path, struct str body, struct buf *out,
                                 struct err *e);

/* The same with the daemon of the settings. */
MUST_CHECK bool ask_daemon(const struct config *config, const struct daemon_question *question,
                           struct err *e);
MUST_CHECK bool ask_daemon_whole(const struct config *config, struct str method,
                                 struct str path, struct str body, struct buf *out,
                                 struct err *e);

/* A whole command that asks a daemon and takes nothing but --json, --url, --token and settings. It
 * returns what `act` returns, or EXIT_USAGE. */
struct asking_flags {
    const char *url, *token;
    bool json;
};
typedef int asking_act_fn(const struct config *config, const struct asking_flags *flags);
int command_asking(int arg_count, const char *const *args, const char *usage,
                   asking_act_fn *act);

#endif
