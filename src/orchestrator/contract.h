/* contract: the orchestrator's row, and what its parts share.
 *
 * `weir orchestrate` is a daemon with this contract. It runs on one loop: a workspace's turns,
 * its runtime and its clients' sockets belong together.
 *
 * Source   contracts of the orchestrator, "Orchestrator side".
 */
#ifndef WEIR_ORCHESTRATOR_CONTRACT_H
#define WEIR_ORCHESTRATOR_CONTRACT_H

#include "base/text.h"
#include "contract/contract.h"
#include "orchestrator/mcp/endpoint.h"
#include "orchestrator/options.h"
#include "orchestrator/talks.h"

struct agent_asks;
struct outbox;
struct sockets;

extern const struct contract orchestrator_contract;

struct orchestrator {
    const struct config *config;
    const struct orchestrator_options *options; /* in it */
    struct loop *loop;
    struct http_pool *http;
    struct token_keys *keys; /* NULL: none */
    struct queries queries;
    struct runtimes *runtimes;
    struct driver *driver;
    struct talks *talks;
    struct agent_asks *asks;
    struct orchestrator_endpoint endpoint; /* of runtimes: tools and blueprints */
    struct text mcp;                       /* its URL on this machine; empty: it has no port */
    struct outbox *outbox;                 /* NULL: usage is not published */
    struct sockets *sockets;               /* NULL: they cannot be served */
    struct server *server;                 /* held until its clients have heard their turns */
    bool holds;
    struct timer idle;      /* while stopping: looks whether a talk is left */
    uint64_t idle_since_ms; /* 0: one was, or it does not stop */
    size_t auditing;        /* rows of the audit log on their way */
    bool open;              /* the database is asked */
    bool known;             /* its tables are ours */
    bool stopping;
    struct err refused; /* why it cannot serve; no code: it can */
};

/* The server may stop: nobody waits for a turn any more. */
void orchestrator_let_go(struct orchestrator *orchestrator);

/* --- callers ------------------------------------------------------------------------------------ */

struct orchestrator_caller {
    struct str user;
    struct str workspace; /* the only one; empty: those that the user owns */
    char room[TOKEN_PAYLOAD_BYTES];
};

/* uid: the gateway's header; authorization: as sent, `count` times. Both may be empty. The texts
 * of the result lie in its room, or in `uid`.
 * errors  ERR_UNAUTHENTICATED */
MUST_CHECK bool orchestrator_caller(const struct orchestrator *orchestrator, struct str uid,
                                    struct str authorization, size_t count,
                                    struct orchestrator_caller *ret, struct err *e);

/* The workspace of a path, or of an event, as this caller sees it. */
struct workspace_question orchestrator_question(const struct orchestrator_caller *caller,
                                                struct str workspace, struct str conversation);

/* --- REST ----------------------------------------------------------------------------------------- */

void orchestrator_routes(void *instance, struct route_table *ret);

#endif
