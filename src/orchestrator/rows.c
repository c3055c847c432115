#include "orchestrator/rows.h"

#include "base/text.h"
#include "base/utf8.h"
#include "orchestrator/jsonb.h"
#include "orchestrator/shown.h"

#include <assert.h>
#include <string.h>

/* Whatever a turn may hold as JSON, with what is around it. */
#define CONTENT_MAX_BYTES (TURN_JSON_MAX_BYTES + 2 * MIB)
#define DELEGATION_ID_MAX 80

struct postgres_value rows_json(struct buf *json) {
    for (size_t i = 0; i + 1 < json->len; i++) {
        if (json->at[i] != '\\') continue;
        bool nul = json->len - i >= 6 && memcmp(json->at + i + 1, "u0000", 5) == 0;
        if (nul) memcpy(json->at + i + 2, "fffd", 4);
        i++; /* what is escaped begins no escape */
    }
    return postgres_text(buf_str(json));
}

/* JSON that was cut would be none. */
static struct postgres_value content_value(struct buf *content) {
    assert(buf_ok(content));
    return rows_json(content);
}

/* --- the user's message ------------------------------------------------------------------------ */

static const char insert_user_message[] =
    "WITH " ROWS_QUOTA
    "stored AS (INSERT INTO messages (id, conversation_id, role, content, status, local_id, "
    "attachments) SELECT $1, $3, 'user', $5::jsonb, 'sent', $4, $6::jsonb FROM quota "
    "WHERE allowed ON CONFLICT DO NOTHING RETURNING id, created_at) "
    "SELECT allowed::int::bigint, coalesce((SELECT id FROM stored), ''), "
    "coalesce((SELECT " ROWS_TIME("created_at") " FROM stored), 0) FROM quota";

/* The statement above does not see what a concurrent one has stored; this one does. */
static const char find_user_message[] = "SELECT u.id, " ROWS_TIME(
    "u.created_at") ", "
                    "(u.content = $4::jsonb AND u.attachments = $5::jsonb)::int::bigint, "
                    "coalesce(a.id, ''), "
                    "coalesce(a.content::text, ''), coalesce(a.status, ''), "
                    "coalesce(a.agent_id, ''), "
                    "coalesce(" ROWS_TIME("a.created_at") ", 0), coalesce(" ROWS_TIME(
                        "a.updated_at") ", 0) "
                                        "FROM messages u LEFT JOIN LATERAL (SELECT * FROM "
                                        "messages m "
                                        "WHERE m.conversation_id = u.conversation_id AND "
                                        "m.role = 'agent' AND "
                                        "m.turn_id IS NOT NULL AND m.content->>'type' NOT IN "
                                        "('tool_status', 'questions') AND "
                                        "m.created_at >= u.created_at AND m.created_at < "
                                        "coalesce((SELECT min(n.created_at) "
                                        "FROM messages n WHERE n.conversation_id = "
                                        "u.conversation_id AND n.role = 'user' AND "
                                        "n.created_at > u.created_at), 'infinity') ORDER BY "
                                        "m.created_at, m.id LIMIT 1) a ON true "
                                        "WHERE u.conversation_id = $1 AND u.role = 'user' AND "
                                        "(u.id = $3 OR u.local_id = $2) LIMIT 1";

struct query *rows_user_message(const struct rows_user_message *message) {
    struct query *query = query_new();
    const struct postgres_value id = postgres_text(message->id),
                                conversation = postgres_text(message->conversation),
                                local_id = query_text_or_null(message->local_id);
    struct str files = message->attachments.len ? message->attachments : STR("[]");
    struct buf held;
    buf_init(&held, 3 * files.len);
    jsonb_put(files, &held);
    const struct postgres_value content = postgres_text(message->content),
                                attachments = postgres_text(buf_str(&held));
    QUERY_STEP(query, insert_user_message, id, postgres_text(message->user), conversation,
               local_id, content, attachments);
    QUERY_STEP(query, find_user_message, conversation, local_id, id, content, attachments);
    buf_done(&held);
    return query;
}

struct rows_stored rows_read_stored(const struct postgres_request *answer) {
    struct postgres_rows first = postgres_rows(answer, 0), found = postgres_rows(answer, 1);
    struct rows_stored stored = {.allowed = postgres_number(first, 0, 0) != 0,
                                 .id = postgres_content(first, 0, 1),
                                 .created_us = postgres_number(first, 0, 2)};
    if (stored.id.len || !found.count) return stored;
    stored.twice = true;
    stored.allowed = true;
    stored.id = postgres_content(found, 0, 0);
    stored.created_us = postgres_number(found, 0, 1);
    stored.same = postgres_number(found, 0, 2) != 0;
    stored.answer.id = postgres_content(found, 0, 3);
    stored.answer.content = postgres_content(found, 0, 4);
    stored.answer.status = postgres_content(found, 0, 5);
    stored.answer.agent = postgres_content(found, 0, 6);
    stored.answer.created_us = postgres_number(found, 0, 7);
    stored.answer.updated_us = postgres_number(found, 0, 8);
    return stored;
}

struct query *rows_user_status(struct str message, enum message_status status) {
    struct query *query = query_new();
    QUERY_STEP(query,
               "UPDATE messages SET status = $2, updated_at = clock_timestamp() "
               "WHERE id = $1 AND status IN ('pending', 'sent')",
               postgres_text(message), postgres_text(message_status_name(status)));
    return query;
}

/* --- parts and tools ------------------------------------------------------------------------------ */

static const char insert_placeholder[] =
    "INSERT INTO messages (id, conversation_id, role, content, status, agent_id, turn_id) "
    "VALUES ($1, $2, 'agent', '{\"type\":\"text\",\"text\":\"\"}', 'pending', $3, $4) "
    "ON CONFLICT (id) DO NOTHING";

struct query *rows_placeholder(const struct rows_turn *turn, const struct turn_part *part) {
    struct query *query = query_new();
    QUERY_STEP(query, insert_placeholder, postgres_text(uuid_str(&part->id)),
               postgres_text(turn->conversation), postgres_text(part->agent->id),
               postgres_text(turn->id));
    return query;
}

static const char upsert_tool[] =
    "INSERT INTO messages (id, conversation_id, role, content, status, agent_id, turn_id) "
    "VALUES ($1, $2, 'agent', $5::jsonb, 'delivered', $3, $4) "
    "ON CONFLICT (id) DO UPDATE SET content = excluded.content, "
    "updated_at = clock_timestamp() WHERE messages.content->>'state' = 'running'";

struct query *rows_tool(const struct rows_turn *turn, const struct turn_part *part,
                        const struct turn_tool *tool) {
    struct query *query = query_new();
    struct buf content;
    buf_init(&content, CONTENT_MAX_BYTES);
    shown_tool_content(&content, tool);
    QUERY_STEP(query, upsert_tool, postgres_text(uuid_str(&tool->id)),
               postgres_text(turn->conversation), postgres_text(part->agent->id),
               postgres_text(turn->id), content_value(&content));
    buf_done(&content);
    return query;
}

void rows_part_content(struct buf *out, const struct turn *turn, const struct turn_part *part) {
    struct str text = buf_str(&part->text);
    bool delegated = part->status == MESSAGE_DELEGATED;
    if (!delegated) {
        shown_text_content(out, text);
        return;
    }
    const struct turn_part *last = turn_part_at(turn, turn_part_count(turn) - 1);
    bool failed = last->status == MESSAGE_FAILED || last->status == MESSAGE_INCOMPLETE;
    shown_delegation_content(out, text, part->agent, turn_delegate(turn),
                             failed ? STR("failed") : STR("completed"), text);
}

/* --- usage ---------------------------------------------------------------------------------------- */

#define COUNTED                                                                                \
    "tokens_used, prompt_tokens_used, completion_tokens_used, cost_usd, request_count, "       \
    "last_updated_at"
#define COUNT "total_tokens, prompt_tokens, completion_tokens, cost_usd, 1, now() FROM counted"
#define ADDED(table)                                                                           \
    "tokens_used = " table ".tokens_used + excluded.tokens_used, "                             \
    "prompt_tokens_used = " table ".prompt_tokens_used + excluded.prompt_tokens_used, "        \
    "completion_tokens_used = " table ".completion_tokens_used + "                             \
    "excluded.completion_tokens_used, "                                                        \
    "cost_usd = " table ".cost_usd + excluded.cost_usd, "                                      \
    "request_count = " table ".request_count + 1, last_updated_at = now()"

/* An event that is known already counts nothing. Cached tokens are part of the prompt, and have
 * a price of their own. */
static const char insert_usage[] =
    "WITH price AS (SELECT input_cost_per_token AS prompt, output_cost_per_token AS "
    "completion, "
    "cached_cost_per_token AS cached FROM model_pricing WHERE provider = $9 AND model = $8 AND "
    "region = 'global' AND effective_at <= now() ORDER BY effective_at DESC LIMIT 1), "
    "counted AS (INSERT INTO usage_events (event_id, user_id, workspace_id, conversation_id, "
    "message_id, agent_id, agent_db_id, model, provider, prompt_tokens, completion_tokens, "
    "total_tokens, tool_use_prompt_tokens, thoughts_tokens, cached_tokens, call_sequence, "
    "turn_id, session_id, cost_usd) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $4, "
    "coalesce((SELECT greatest($10 - $15, 0) * prompt + $15 * cached + $11 * completion "
    "FROM price), 0)) ON CONFLICT (event_id) DO NOTHING RETURNING *), "
    "of_user AS (INSERT INTO usage_counters (user_id, period, " COUNTED ") "
    "SELECT user_id, to_char(event_time AT TIME ZONE 'UTC', 'YYYY-MM'), " COUNT
    " ON CONFLICT (user_id, period) DO UPDATE SET " ADDED(
        "usage_counters") ") "
                          "INSERT INTO agent_usage_counters (agent_id, workspace_id, " COUNTED
                          ") "
                          "SELECT agent_db_id, workspace_id, " COUNT
                          " ON CONFLICT (agent_id) DO UPDATE SET " ADDED(
                              "agent_usage_counters");

static const char update_partial[] =
    "UPDATE messages SET content = $2::jsonb, updated_at = clock_timestamp() "
    "WHERE id = $1 AND status = 'pending'";

struct str rows_provider(struct str model) {
    if (str_starts(model, STR("gpt-")) || str_starts(model, STR("o1-")) ||
        str_starts(model, STR("o3-")))
        return STR("openai");
    if (str_starts(model, STR("claude-"))) return STR("anthropic");
    return str_find(model, STR("anthropic.")) < model.len ? STR("bedrock") : STR_EMPTY;
}

static struct postgres_value counted(int64_t tokens) {
    return postgres_int(tokens > 0 ? tokens : 0);
}

static int64_t total_of(const struct event_usage *usage) {
    int64_t prompt = usage->prompt > 0 ? usage->prompt : 0;
    int64_t completion = usage->completion > 0 ? usage->completion : 0;
    return usage->total > 0 ? usage->total : usage_sum(prompt, completion);
}

/* Of names that a runtime reports. Consumers of usage drop events with longer ones. */
#define NAME_MAX_BYTES 256

static struct str bounded(struct str name) {
    return str_head(name, utf8_cut(name, NAME_MAX_BYTES));
}

struct query *rows_usage(const struct rows_turn *turn, const struct turn_part *part,
                         const struct rows_usage *call) {
    struct query *query = query_new();
    const struct event_usage *usage = call->usage;
    QUERY_STEP(query, insert_usage, postgres_text(call->event), postgres_text(turn->user),
               postgres_text(turn->workspace), postgres_text(turn->conversation),
               postgres_text(call->message), postgres_text(bounded(call->agent)),
               postgres_text(part->agent->id), postgres_text(bounded(usage->model)),
               postgres_text(rows_provider(usage->model)), counted(usage->prompt),
               counted(usage->completion), counted(total_of(usage)), counted(usage->tool_use),
               counted(usage->thoughts), counted(usage->cached), counted(usage->call_sequence),
               postgres_text(turn->id));
    return query;
}

struct query *rows_partial(const struct turn_part *part) {
    struct query *query = query_new();
    struct buf content;
    buf_init(&content, CONTENT_MAX_BYTES);
    shown_text_content(&content, buf_str(&part->text));
    QUERY_STEP(query, update_partial, postgres_text(uuid_str(&part->id)),
               content_value(&content));
    buf_done(&content);
    return query;
}

/* --- the end ---------------------------------------------------------------------------------------- */

static const char drop_part[] = "DELETE FROM messages WHERE id = $1 AND status = 'pending'";

/* Also when its placeholder could not be stored. */
static const char finish_part[] =
    "INSERT INTO messages (id, conversation_id, role, content, status, agent_id, turn_id) "
    "VALUES ($1, $2, 'agent', $5::jsonb, $6, $3, $4) "
    "ON CONFLICT (id) DO UPDATE SET content = excluded.content, status = excluded.status, "
    "updated_at = clock_timestamp() WHERE messages.status = 'pending'";

static const char finish_tools[] =
    "UPDATE messages SET content = jsonb_set(content, '{state}', '\"failed\"'), "
    "updated_at = clock_timestamp() WHERE turn_id = $1 AND content->>'type' = 'tool_status' "
    "AND content->>'state' = 'running'";

static const char insert_delegation[] =
    "INSERT INTO agent_delegations (id, workspace_id, conversation_id, trigger_message_id, "
    "delegator_agent_id, delegate_agent_id, tool_name, task_summary, status, duration_ms) "
    "VALUES ($1, $2, $3, $4, $5, $6, 'transfer_to_agent', left($7::jsonb->>'text', 500), $8, "
    "$9) "
    "ON CONFLICT (id) DO NOTHING";

static const char touch_conversation[] =
    "UPDATE conversations SET updated_at = clock_timestamp() WHERE id = $1";

static const char read_times[] = "SELECT id, " ROWS_TIME("created_at") ", " ROWS_TIME(
    "updated_at") " FROM messages WHERE turn_id = $1 LIMIT 1000";

static void add_part(struct query *query, const struct rows_turn *turn, const struct turn *from,
                     const struct turn_part *part) {
    const struct postgres_value id = postgres_text(uuid_str(&part->id));
    struct buf content;
    if (part->dropped) {
        QUERY_STEP(query, drop_part, id);
        return;
    }
    buf_init(&content, CONTENT_MAX_BYTES);
    rows_part_content(&content, from, part);
    QUERY_STEP(query, finish_part, id, postgres_text(turn->conversation),
               postgres_text(part->agent->id), postgres_text(turn->id), content_value(&content),
               postgres_text(message_status_name(part->status)));
    buf_done(&content);
}

/* Its summary is what the card of the delegation shows: what the primary has said. As JSON, so that a
 * NUL in it is what it is in the messages, U+FFFD. */
static void add_delegation(struct query *query, const struct rows_turn *turn,
                           const struct turn *from, size_t index, int64_t duration_ms) {
    const struct turn_part *part = turn_part_at(from, index), *first = turn_part_at(from, 0);
    bool failed = part->status == MESSAGE_FAILED || part->status == MESSAGE_INCOMPLETE;
    struct buf id, said;
    buf_init(&id, DELEGATION_ID_MAX);
    buf_init(&said, CONTENT_MAX_BYTES);
    buf_printf(&id, STR_FMT ":%zu", STR_ARG(turn->id), index);
    shown_text_content(&said, buf_str(&first->text));
    QUERY_STEP(
        query, insert_delegation, postgres_text(buf_str(&id)), postgres_text(turn->workspace),
        postgres_text(turn->conversation), postgres_text(turn->message),
        postgres_text(first->agent->id), postgres_text(part->agent->id), content_value(&said),
        postgres_text(failed ? STR("failed") : STR("completed")), postgres_int(duration_ms));
    buf_done(&id);
    buf_done(&said);
}

struct query *rows_finish(const struct rows_turn *turn, const struct turn *from,
                          int64_t duration_ms) {
    struct query *query = query_new();
    for (size_t i = 0; i < turn_part_count(from); i++)
        add_part(query, turn, from, turn_part_at(from, i));
    for (size_t i = 1; i < turn_part_count(from); i++)
        add_delegation(query, turn, from, i, duration_ms);
    QUERY_STEP(query, finish_tools, postgres_text(turn->id));
    QUERY_STEP(query, touch_conversation, postgres_text(turn->conversation));
    QUERY_STEP(query, read_times, postgres_text(turn->id));
    return query;
}

bool rows_read_times(const struct postgres_request *answer, struct str message,
                     int64_t *ret_created_us, int64_t *ret_updated_us) {
    struct postgres_rows rows = postgres_rows(answer, answer->step_count - 1);
    for (size_t i = 0; i < rows.count; i++) {
        if (!str_equal(postgres_content(rows, i, 0), message)) continue;
        *ret_created_us = postgres_number(rows, i, 1);
        *ret_updated_us = postgres_number(rows, i, 2);
        return true;
    }
    return false;
}

/* --- turns of the living and of the dead -------------------------------------------------------------- */

struct query *rows_alive(struct str turns) {
    struct query *query = query_new();
    QUERY_STEP(query,
               "UPDATE messages SET updated_at = clock_timestamp() WHERE status = 'pending' "
               "AND turn_id = ANY (string_to_array($1, ','))",
               postgres_text(turns));
    return query;
}

static const char sweep[] =
    "WITH dead AS (UPDATE messages m SET "
    "status = CASE WHEN btrim(content->>'text') = '' THEN 'failed' ELSE 'incomplete' END, "
    "content = CASE WHEN btrim(content->>'text') = '' THEN "
    "'{\"type\":\"text\",\"text\":\"The assistant was interrupted\"}' ELSE content END, "
    "updated_at = clock_timestamp() "
    "WHERE id IN (SELECT id FROM messages WHERE status = 'pending' AND "
    "updated_at < clock_timestamp() - make_interval(secs => $1::bigint / 1000.0) "
    "ORDER BY updated_at LIMIT 500 FOR UPDATE SKIP LOCKED) " /* ROWS_SWEEP_MAX */
    "RETURNING m.id, m.conversation_id, m.agent_id, m.status, m.turn_id), "
    "tools AS (UPDATE messages SET content = jsonb_set(content, '{state}', '\"failed\"') "
    "WHERE turn_id IN (SELECT turn_id FROM dead) AND content->>'type' = 'tool_status' AND "
    "content->>'state' = 'running') "
    "SELECT dead.id, dead.conversation_id, c.workspace_id, coalesce(dead.agent_id, ''), "
    "dead.status FROM dead JOIN conversations c ON c.id = dead.conversation_id";

struct query *rows_sweep(int64_t stale_ms) {
    struct query *query = query_new();
    QUERY_STEP(query, sweep, postgres_int(stale_ms));
    return query;
}
