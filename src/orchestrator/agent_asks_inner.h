/* agent_asks_inner: what agent_asks.c, agent_turn.c and agent_ask_unref.c share.
 *
 * Threads  the orchestrator's loop.
 */
#ifndef WEIR_ORCHESTRATOR_AGENT_ASKS_INNER_H
#define WEIR_ORCHESTRATOR_AGENT_ASKS_INNER_H

#include "orchestrator/agent_asks.h"
#include "orchestrator/agent_rows.h"

struct agent_asks {
    struct talks_options options;
    struct talks *talks;
    struct list all;
    struct timer sweep;
    size_t asking; /* queries of its own */
    bool stopped;
};

struct agent_ask {
    struct list link;
    struct agent_asks *asks;
    unsigned refs; /* its own until it is over, and one for each query */
    enum agent_ask_state state;
    struct orchestrator_call *call; /* NULL: no answer is wanted any more, or it was given */
    struct workspace *workspace;    /* with the conversation; NULL: not found yet */
    struct text slug, request;      /* who is asked what */
    struct uuid id;
    struct timer again; /* looks for the agent that asks */
    unsigned looks;

    /* Who asks, if that is known. */
    const struct turn_agent *from; /* in `workspace`; NULL: unknown */
    struct text message;           /* the message in which it asks */
    struct text root;              /* the user's message */
    struct text path;              /* "/manager/wally/": who asked whom, to the one who asks */
    int64_t depth;                 /* -1: unknown */

    /* The turn. */
    const struct turn_agent *to; /* in `workspace` */
    struct text asked;           /* the request with its context */
    struct converse_question question;
    struct turn *turn;   /* NULL: it has not begun */
    struct drive *drive; /* NULL: not with a runtime */
    struct buf failure;
    uint64_t began_ms;
};

/* --- agent_asks.c -------------------------------------------------------------------------- */

void agent_ask_move(struct agent_ask *ask, enum agent_ask_state next);
/* Answer, and be over. */
void agent_ask_over(struct agent_ask *ask);
struct agent_row agent_ask_row(const struct agent_ask *ask);
void agent_ask_query(struct agent_ask *ask, struct query *query, enum query_kind kind,
                     query_done_fn *done);

/* --- agent_turn.c --------------------------------------------------------------------------- */

/* It is admitted. */
void agent_turn_begin(struct agent_ask *ask);
/* No answer is wanted any more. */
void agent_turn_cancel(struct agent_ask *ask);

/* --- agent_ask_unref.c, by itself because gcc's analyzer does not count ---------------------- */

void agent_ask_unref(struct agent_ask *ask);

#endif
