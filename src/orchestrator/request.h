/* request: the message that a client sends, in REST and in Socket.IO.
 *
 *     {"workspace_id","conversation_id","local_id","content":{"type":"text","text"},
 *      "mentions":[{"agent_id","agent_name","offset","length"}],"attachments":[...]}
 *
 * Memory   what is read lies in the arena.
 * Threads  any.
 * Source   contracts of the orchestrator, "Socket.IO".
 */
#ifndef WEIR_ORCHESTRATOR_REQUEST_H
#define WEIR_ORCHESTRATOR_REQUEST_H

#include "orchestrator/talks.h"
#include "wire/json.h"

#define REQUEST_MENTIONS_MAX 32

struct request_mention {
    struct str agent; /* its id */
    uint64_t offset, length;
};

struct request {
    struct str workspace, conversation, local_id, text;
    struct str attachments; /* a JSON array; empty: none */
    struct request_mention mentions[REQUEST_MENTIONS_MAX];
    size_t mention_count;
};

/* errors  ERR_INVALID_ARGUMENT a required member is missing, or text has a NUL byte */
MUST_CHECK bool request_read(struct json json, struct arena *arena, struct request *ret,
                             struct err *e);

/* The request in this workspace. Mentions of unknown agents are left out. `mentions` has room for
 * REQUEST_MENTIONS_MAX and lives as long as the result. */
struct talk_request request_for(const struct request *request, struct workspace *workspace,
                                struct talk_mention *mentions);

#endif
