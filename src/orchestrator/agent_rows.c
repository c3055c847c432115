#include "orchestrator/agent_rows.h"

#include "base/utf8.h"

#define CONTEXT_MESSAGES 20
#define CONTEXT_MESSAGE_BYTES 500

/* --- the beginning ---------------------------------------------------------------------------- */

/* So that two calls of a conversation at once do not get the same depth. */
static const char lock_conversation[] =
    "SELECT pg_advisory_xact_lock(hashtextextended($1, 4261875))";

static const char begin[] =
    "WITH root AS (SELECT coalesce($6, (SELECT id FROM messages WHERE conversation_id = $4 AND "
    "role = 'user' ORDER BY created_at DESC, id DESC LIMIT 1)) AS id), " ROWS_QUOTA
    "place AS (SELECT CASE WHEN $5::bigint >= 0 THEN $5::bigint ELSE 1 + coalesce((SELECT "
    "max(depth) FROM agent_messages WHERE conversation_id = $4 AND status = 'running' AND "
    "root_message_id IS NOT DISTINCT FROM (SELECT id FROM root) AND id <> $1), -1) END "
    "AS depth), "
    "stored AS (INSERT INTO agent_messages (id, workspace_id, conversation_id, "
    "root_message_id, from_agent_id, from_agent_slug, to_agent_id, to_agent_slug, "
    "request_text, status, depth) SELECT $1, $3, $4, (SELECT id FROM root), $7, $8, $9, $10, "
    "$11, 'running', depth FROM quota, place WHERE allowed AND depth < $12::bigint "
    "ON CONFLICT (id) DO NOTHING) "
    "SELECT allowed::int::bigint, depth, coalesce((SELECT id FROM root), '') FROM quota, place";

/* A question or a tool has no text of its own to show here. */
static const char read_context[] =
    "SELECT m.role, coalesce(a.name, 'Agent'), left(m.content->>'text', 500) FROM messages m "
    "LEFT JOIN agents a ON a.id = m.agent_id WHERE m.conversation_id = $1 AND "
    "m.status <> 'pending' AND m.content->>'text' <> '' "
    "ORDER BY m.created_at DESC, m.id DESC LIMIT $2::bigint";

struct query *agent_rows_begin(const struct agent_row *row) {
    struct query *query = query_new();
    const struct turn_agent *from = row->from;
    const struct postgres_value conversation = postgres_text(row->conversation);
    QUERY_STEP(query, lock_conversation, conversation);
    QUERY_STEP(query, begin, postgres_text(row->id), postgres_text(row->user),
               postgres_text(row->workspace), conversation, postgres_int(row->depth),
               query_text_or_null(row->root), query_text_or_null(from ? from->id : STR_EMPTY),
               postgres_text(from ? from->slug : STR_EMPTY), postgres_text(row->to->id),
               postgres_text(row->to->slug), postgres_text(row->request),
               postgres_int(AGENT_DEPTH_MAX));
    QUERY_STEP(query, read_context, conversation, postgres_int(CONTEXT_MESSAGES));
    return query;
}

struct agent_row_begun agent_rows_begun(const struct postgres_request *answer) {
    struct postgres_rows rows = postgres_rows(answer, 1);
    return (struct agent_row_begun){.allowed = postgres_number(rows, 0, 0) != 0,
                                    .depth = postgres_number(rows, 0, 1),
                                    .root = postgres_content(rows, 0, 2)};
}

void agent_rows_context(const struct postgres_request *answer, struct buf *out) {
    struct postgres_rows rows = postgres_rows(answer, 2);
    for (size_t i = rows.count; i-- > 0;) {
        struct str role = postgres_content(rows, i, 0), text = postgres_content(rows, i, 2);
        bool user = str_equal(role, STR("user"));
        buf_append(out, user ? STR("User") : postgres_content(rows, i, 1));
        buf_append(out, STR(": "));
        buf_append(out, str_head(text, utf8_cut(text, CONTEXT_MESSAGE_BYTES)));
        buf_append_byte(out, '\n');
    }
}

/* --- the end -------------------------------------------------------------------------------------- */

static const char end_call[] =
    "UPDATE agent_messages SET status = $2, response_text = $3, error = $4, duration_ms = $5, "
    "updated_at = clock_timestamp() WHERE id = $1 AND status = 'running'";

static const char insert_delegation[] =
    "INSERT INTO agent_delegations (id, workspace_id, conversation_id, trigger_message_id, "
    "delegator_agent_id, delegate_agent_id, tool_name, task_summary, status, duration_ms) "
    "VALUES ($1, $2, $3, $4, $5, $6, 'send_message_to_agent', left($7, 500), $8, $9) "
    "ON CONFLICT (id) DO NOTHING";

struct query *agent_rows_end(const struct agent_row *row, const struct agent_row_end *end) {
    struct query *query = query_new();
    const struct postgres_value id = postgres_text(row->id),
                                took_ms = postgres_int(end->duration_ms),
                                status = postgres_text(end->failed ? STR("failed")
                                                                   : STR("completed"));
    struct buf kept;
    size_t len = utf8_cut(end->response, AGENT_RESPONSE_MAX_BYTES);
    buf_init(&kept, AGENT_RESPONSE_MAX_BYTES + KIB);
    buf_append(&kept, str_head(end->response, len));
    if (len < end->response.len) buf_append(&kept, STR("\n[truncated]"));
    QUERY_STEP(query, end_call, id, status, postgres_text(buf_str(&kept)),
               postgres_text(end->error), took_ms);
    if (row->from)
        QUERY_STEP(query, insert_delegation, id, postgres_text(row->workspace),
                   postgres_text(row->conversation), query_text_or_null(row->root),
                   postgres_text(row->from->id), postgres_text(row->to->id),
                   postgres_text(row->request), status, took_ms);
    buf_done(&kept);
    return query;
}

/* --- calls of the living and of the dead ------------------------------------------------------------ */

static const char touch[] =
    "UPDATE agent_messages SET updated_at = clock_timestamp() WHERE status = 'running' AND "
    "id = ANY (string_to_array($1, ','))";

static const char sweep[] =
    "UPDATE agent_messages SET status = 'failed', error = 'interrupted', "
    "updated_at = clock_timestamp() WHERE id IN (SELECT id FROM agent_messages WHERE "
    "status = 'running' AND updated_at < clock_timestamp() - "
    "make_interval(secs => $1::bigint / 1000.0) ORDER BY updated_at LIMIT 500 "
    "FOR UPDATE SKIP LOCKED)";

struct query *agent_rows_sweep(struct str alive, int64_t stale_ms) {
    struct query *query = query_new();
    if (alive.len) QUERY_STEP(query, touch, postgres_text(alive));
    QUERY_STEP(query, sweep, postgres_int(stale_ms));
    return query;
}
