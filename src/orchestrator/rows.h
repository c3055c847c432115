/* rows: what a turn writes to PostgreSQL.
 *
 * Each function makes one query, whose statements take effect together. All of them may run
 * twice without harm: rows have ids that were chosen before, and the status of a message only
 * rises.
 *
 * Memory   the caller asks the query (query_ask).
 * Threads  any.
 * Source   contracts of the orchestrator, "Rows and REST", "Usage counters and quota".
 */
#ifndef WEIR_ORCHESTRATOR_ROWS_H
#define WEIR_ORCHESTRATOR_ROWS_H

#include "orchestrator/query.h"
#include "orchestrator/turn.h"
#include "orchestrator/workspace.h"

/* A time column as microseconds since 1970. */
#define ROWS_TIME(column) "(extract(epoch FROM " column ") * 1000000)::bigint"

/* Tables of a WITH: `quota` says whether the user of $2 may spend more tokens this month. */
#define ROWS_QUOTA                                                                             \
    "plan AS (SELECT p.monthly_token_limit AS most FROM usage_quotas q "                       \
    "JOIN usage_plans p USING (plan_id) WHERE q.user_id = $2 AND "                             \
    "(q.expires_at IS NULL OR q.expires_at > now()) ORDER BY q.effective_at DESC LIMIT 1), "   \
    "used AS (SELECT tokens_used FROM usage_counters WHERE user_id = $2 AND "                  \
    "period = to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM')), "                                 \
    "quota AS (SELECT NOT EXISTS (SELECT FROM plan WHERE most > 0 AND "                        \
    "coalesce((SELECT tokens_used FROM used), 0) >= most) AS allowed), "

/* --- the user's message ------------------------------------------------------------------------ */

struct rows_user_message {
    struct str id, user, conversation, local_id;
    struct str content, attachments; /* JSON */
};

/* Store it, unless the user's quota is used up or the conversation has one with this local id. */
struct query *rows_user_message(const struct rows_user_message *message);

struct rows_stored {
    bool allowed;  /* false: the quota is used up */
    bool twice;    /* it was stored before; `id` is that row's */
    bool same;     /* twice: with the same content and attachments */
    struct str id; /* all texts are borrowed from the query's answer */
    int64_t created_us;
    /* twice: the agent's message that follows it, up to the user's next one; id empty: none */
    struct {
        struct str id, content, status, agent;
        int64_t created_us, updated_us;
    } answer;
};
struct rows_stored rows_read_stored(const struct postgres_request *answer);

struct query *rows_user_status(struct str message, enum message_status status);

/* --- a turn -------------------------------------------------------------------------------------- */

struct rows_turn {
    struct str id;                                     /* of the turn */
    struct str user, workspace, conversation, message; /* the user's message */
};

struct query *rows_placeholder(const struct rows_turn *turn, const struct turn_part *part);
struct query *rows_tool(const struct rows_turn *turn, const struct turn_part *part,
                        const struct turn_tool *tool);

/* Count a model call: the event with its cost, and the user's and the agent's counters. Nothing
 * that a runtime says may keep it from being counted, so it is a query of its own. */
struct rows_usage {
    struct str event;   /* its id; it counts once */
    struct str message; /* that it is counted for */
    struct str agent;   /* the slug that the runtime named */
    const struct event_usage *usage;
};
struct query *rows_usage(const struct rows_turn *turn, const struct turn_part *part,
                         const struct rows_usage *call);
/* What the part has said so far, for a process that ends this one's turn. */
struct query *rows_partial(const struct turn_part *part);

/* The end: all parts and the delegations. The answer has the id and the times of each message in
 * its last step. */
struct query *rows_finish(const struct rows_turn *turn, const struct turn *from,
                          int64_t duration_ms);
/* False: there is no such message any more. */
bool rows_read_times(const struct postgres_request *answer, struct str message,
                     int64_t *ret_created_us, int64_t *ret_updated_us);

/* The turns with these ids, apart by commas, still run. */
struct query *rows_alive(struct str turns);

/* End what a dead process has left: placeholders that were not touched for this long, at most
 * ROWS_SWEEP_MAX of them. Each row
 * of the answer is an id, a conversation, a workspace, an agent and a status. */
struct query *rows_sweep(int64_t stale_ms);
#define ROWS_SWEEP_MAX 500

/* The vendor of a model, by its name: "openai", "anthropic", "bedrock", or empty. */
struct str rows_provider(struct str model);

/* PostgreSQL's jsonb holds no NUL, which a runtime may say: it becomes U+FFFD. */
struct postgres_value rows_json(struct buf *json);

/* Append the content of a part as it is stored. */
void rows_part_content(struct buf *out, const struct turn *turn, const struct turn_part *part);

#endif
