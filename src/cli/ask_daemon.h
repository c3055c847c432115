/* ask_daemon: send one request to a running daemon.
 *
 * For commands that show or change the state of a running daemon. Where it is:
 *
 *     --url (WEIR_URL)                     that one: http://HOST:PORT, or unix:/path
 *     a command's own daemon has the data folder   there, with its token (cli/shared_daemon.h)
 *     listen.http is set, with a port      there, on this machine
 *     otherwise                            where the daemon listens that has the data folder;
 *                                          without such a daemon, at listen.http, but not where
 *                                          --data names a folder and that daemon has another
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

#include "cli/shared_daemon.h"
#include "client/http.h"
#include "config/config.h"

struct daemon_question {
    struct str method; /* "GET" */
    struct str path;   /* "/weir/v1/approvals?limit=3", already escaped */
    struct str body;   /* JSON, or empty */
    /* Gets the bytes of a successful answer as they come. */
    void (*on_body)(struct str bytes, void *ctx);
    void *ctx;
    uint64_t answer_ms; /* until the answer begins, at most; 0: two minutes */
    const char *doubt;  /* in the error where nothing answers; NULL: "is it running?" */
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
    struct buf base;             /* "http://127.0.0.1:8080" */
    struct str socket;           /* "unix:/path": there, whatever host `base` names; or empty.
                                    Borrowed as `trust` is, or of --url */
    struct buf authorization;    /* "Bearer ...", or empty */
    struct str trust;            /* borrowed of the settings */
    struct shared_daemon shared; /* in use until daemon_target_done() */
};

/* What --url or WEIR_URL names, or NULL.
 * flag  of --url, or NULL */
const char *daemon_url(const char *flag);

/* Whether what daemon_url() names can be an address. True if it names none. */
MUST_CHECK bool daemon_url_check(const char *flag, struct err *e);

/* url, token: what the command line names, or NULL. The target refers to `config`; end it with
 * daemon_target_done(), also after a failure.
 * errors  ERR_FAILED_PRECONDITION the settings do not say where the daemon is;
 *         ERR_INVALID_ARGUMENT the URL; ERR_ABORTED --data names a folder, no daemon has it, and
 *         the one that listens at the usual address has another */
MUST_CHECK bool daemon_target_find(const struct config *config, const char *url,
                                   const char *token, struct daemon_target *ret, struct err *e);
/* The daemon at one of its listeners, without a token. End it likewise. */
MUST_CHECK bool daemon_target_at(const struct config *config,
                                 const struct daemon_listener *listener,
                                 struct daemon_target *ret, struct err *e);
/* The daemon that another command has started, and its token. False: there is none. */
MUST_CHECK bool daemon_target_join(struct daemon_target *target, const struct config *config);

void daemon_target_init(struct daemon_target *target, const struct config *config);
void daemon_target_done(struct daemon_target *target);

/* "http://127.0.0.1:8080" or "unix:/path", for people. */
struct str daemon_target_where(const struct daemon_target *target);

/* A new pool whose calls reach it. Loops are added by the caller. */
struct http_pool *daemon_target_pool(const struct daemon_target *target);

/* "unix:/path": the target is there. False: `address` says something else. */
MUST_CHECK bool daemon_target_take_socket(struct daemon_target *target, struct str address);

/* Set the token, if it is not empty. */
void daemon_target_authorize(struct daemon_target *target, struct str token);

/* The headers of a request to it. Returns how many: at most 2. */
size_t daemon_target_headers(const struct daemon_target *target, struct str body,
                             struct http_header ret[2]);

/* Fill *e from a refusal: the status, and the daemon's own message in the body. False. */
bool daemon_refused(unsigned status, struct str body, struct err *e);

/* --- asking ------------------------------------------------------------------------------- */

/* Append a parameter of the query to a path, escaped. */
void daemon_path_add(struct buf *path, const char *name, struct str value);

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
MUST_CHECK bool ask_daemon_whole(const struct config *config, struct str method,
                                 struct str path, struct str body, struct buf *out,
                                 struct err *e);

/* --- for commands of TAKES_DAEMON (cli.h) ------------------------------------------------- */

struct asked;

/* Ask the daemon of such a command. */
MUST_CHECK bool asked_answer(const struct asked *asked, const struct daemon_question *question,
                             struct err *e);
/* For on_body: append the bytes to the buf that is `ctx`. */
void ask_daemon_keep(struct str bytes, void *ctx);
/* The answer is appended to `out`. */
MUST_CHECK bool asked_whole(const struct asked *asked, struct str method, struct str path,
                            struct str body, struct buf *out, struct err *e);

#endif
