/* request: read what a client asks, from the params of JSON-RPC or a body of HTTP+JSON.
 *
 * A message's parts become what the agent reads: texts and data (as JSON) as text, pictures as
 * pictures, and files of text as text below their names. A message that answers a question may be a
 * text, or data in the form of a decision (session/decision.h).
 *
 * Memory   results lie in the caller's arena, or borrow the text that was read.
 * Threads  none; values only.
 * Source   A2A 0.3 6 and 7; A2A 1.0 3.1, 4.1; contracts/agentbreeder.md 5.1.
 */
#ifndef WEIR_CONTRACT_A2A_REQUEST_H
#define WEIR_CONTRACT_A2A_REQUEST_H

#include "base/arena.h"
#include "contract/a2a/webhook.h"
#include "provider/provider.h"
#include "wire/json.h"

#define A2A_ALL_HISTORY (-1)
#define A2A_PAGE_USUAL 50
#define A2A_PAGE_MOST 100

struct a2a_request {
    /* A message to send. */
    struct str text;
    const struct message *pictured; /* the same with pictures; NULL: it has none */
    struct str context;             /* empty: a new one */
    struct str extras;              /* as struct run_request has it; names the message */
    struct str metadata;            /* the message's, as it came; empty: it has none */
    bool immediately;               /* answer with the task as soon as it is there */
    bool has_webhook;
    struct webhook webhook; /* of `has_webhook`, or to put */
    struct str webhook_id;  /* to get, to delete; or empty */

    bool names_task;
    uint64_t task; /* 0 when the name is no task's */

    int64_t history_max; /* messages; A2A_ALL_HISTORY */

    /* Of a list. */
    struct str status; /* of 1.0, or empty */
    int64_t
        status_from_ms; /* Unix time: tasks whose state changed then or later; INT64_MIN: all */
    /* Where the page begins: at this session, and in it before this run; 0: at the newest. */
    int64_t before_session;
    uint64_t before;
    size_t page_size;
    bool with_artifacts;
};

void a2a_request_init(struct a2a_request *ret);

/* Read the parameters of an operation.
 * errors  ERR_INVALID_ARGUMENT with the place; ERR_UNIMPLEMENTED a part that no agent takes;
 *         ERR_RESOURCE_EXHAUSTED the arena's limit */
MUST_CHECK bool a2a_request_read(enum a2a_operation operation, enum a2a_dialect dialect,
                                 struct json params, struct arena *arena,
                                 struct a2a_request *ret, struct err *e);

/* The id of a task as we write it; 0: it is not one. */
uint64_t a2a_task_id(struct str text);

#endif
