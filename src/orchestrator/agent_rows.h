/* agent_rows: what a call from agent to agent writes to PostgreSQL.
 *
 * Each function makes one query that may run twice without harm. A row is `running` while the
 * call is; one that its process has left is ended by another.
 *
 * Memory   the caller asks the query (query_ask).
 * Threads  any.
 * Source   contracts of the orchestrator, "Agent-to-agent"; "Rows and REST": agent_messages.
 */
#ifndef WEIR_ORCHESTRATOR_AGENT_ROWS_H
#define WEIR_ORCHESTRATOR_AGENT_ROWS_H

#include "orchestrator/rows.h"

/* Calls that may be within each other. */
#define AGENT_DEPTH_MAX 3
/* Of an answer that is kept. */
#define AGENT_RESPONSE_MAX_BYTES 32768

struct agent_row {
    struct str id, user, workspace, conversation;
    struct str root;               /* the user's message; empty: the newest */
    const struct turn_agent *from; /* NULL: unknown */
    const struct turn_agent *to;
    int64_t depth; /* -1: one more than the deepest that runs for this message */
    struct str request;
};

/* Store it as running, unless it is too deep or the user's quota is used up. */
struct query *agent_rows_begin(const struct agent_row *row);

struct agent_row_begun {
    bool allowed;    /* false: the quota is used up */
    int64_t depth;   /* from AGENT_DEPTH_MAX on it was not stored */
    struct str root; /* borrowed from the answer */
};
struct agent_row_begun agent_rows_begun(const struct postgres_request *answer);

/* Append what was said in the conversation so far, oldest first; nothing when it is empty. */
void agent_rows_context(const struct postgres_request *answer, struct buf *out);

struct agent_row_end {
    bool failed;
    struct str response, error;
    int64_t duration_ms;
};
struct query *agent_rows_end(const struct agent_row *row, const struct agent_row_end *end);

/* The calls with these ids, apart by commas, still run; others that were not touched for
 * stale_ms are ended. */
struct query *agent_rows_sweep(struct str alive, int64_t stale_ms);

#endif
