/* rest_inner: what rest.c and rest_read.c share.
 *
 * Threads  the loop's.
 */
#ifndef WEIR_ORCHESTRATOR_REST_INNER_H
#define WEIR_ORCHESTRATOR_REST_INNER_H

#include "orchestrator/contract.h"
#include "orchestrator/request.h"

struct rest_call {
    unsigned refs;           /* the route call's, and one for each thing that is asked */
    struct route_call *call; /* NULL: the caller has left */
    struct orchestrator *orchestrator;
    struct arena *arena;
    struct orchestrator_caller caller;
    struct workspace *workspace;
    void (*found)(struct rest_call *rest); /* the workspace is known */
    struct request request;
    struct talk *talk; /* NULL: none runs */
    bool sends;        /* it sends a message; else it only reads */
    /* Of a page. */
    int64_t limit;
    int64_t from_number; /* of messages: microseconds; else what a list is ordered by first */
    struct str from_id, from_text;
    bool from;     /* it goes on where another page has ended */
    bool from_cut; /* from_text is the beginning of that row's text */
};

/* --- rest.c --------------------------------------------------------------------------------------- */

/* Whether the path names a conversation of the workspace. If not, e.g. because it is no id at all,
 * the call has been answered. */
MUST_CHECK bool rest_conversation(struct rest_call *rest);

void rest_fail(struct rest_call *rest, int status, const char *code, struct str message);
void rest_answer(struct rest_call *rest, int status, const struct buf *body);
/* Read; `done` gets the call, and ends with rest_release(). */
void rest_ask(struct rest_call *rest, struct query *query, query_done_fn *done);
/* Whether the caller is still there and there is an answer; a failure is answered here. */
bool rest_answered(struct rest_call *rest, const struct err *failed);
void rest_release(struct rest_call *rest);

/* --- rest_read.c ------------------------------------------------------------------------------------ */

/* Read scrollId and limit; by default a page has `usual`, and at most `most`. False: it was
 * refused. */
bool rest_read_page(struct rest_call *rest, uint64_t usual, uint64_t most);
#define REST_MESSAGES 50, 200
#define REST_LINES 200, 1000
void rest_messages(struct rest_call *rest);
void rest_conversations(struct rest_call *rest);
void rest_agents(struct rest_call *rest);
void rest_usage(struct rest_call *rest);

#endif
