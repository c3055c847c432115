/* What is only read: messages, conversations, agents, and the usage of a user. */
#include "base/arena.h"
#include "orchestrator/rest_inner.h"

#define ANSWER_MAX_BYTES (64 * MIB)
#define LIMIT 50
#define LIMIT_MAX 200

/* --- pages ------------------------------------------------------------------------------------------- */

/* "<microseconds>-<id>" of the oldest message that was shown. */
static bool read_scroll(struct rest_call *rest, struct str text) {
    struct str id, time = str_split(text, '-', &id);
    return id.len && str_to_i64(time, &rest->before_us) &&
           arena_str(rest->arena, id, &rest->before_id);
}

bool rest_read_page(struct rest_call *rest) {
    struct buf text;
    uint64_t limit = LIMIT;
    buf_init(&text, KIB);
    bool good = true;
    rest->before_us = INT64_MAX;
    if (route_query(rest->call, STR("scrollId"), &text) && text.len)
        good = read_scroll(rest, buf_str(&text));
    buf_clear(&text);
    if (good && route_query(rest->call, STR("limit"), &text) && text.len)
        good = str_to_u64(buf_str(&text), &limit) && limit > 0;
    buf_done(&text);
    rest->limit = (int64_t)(limit < LIMIT_MAX ? limit : LIMIT_MAX);
    if (!good) rest_fail(rest, 400, "REQ0001", STR("scrollId or limit is not valid"));
    return good;
}

/* A placeholder is not shown before it is a message. */
static const char select_messages[] =
    "SELECT id, role, content::text, status, coalesce(local_id, ''), coalesce(agent_id, ''), "
    "attachments::text, " ROWS_TIME("created_at") " AS at, " ROWS_TIME(
        "updated_at") " FROM messages WHERE conversation_id = $1 AND status <> 'pending' AND "
                      "($2::bigint = 9223372036854775807 OR (created_at, id) < "
                      "('epoch'::timestamptz + $2::bigint * interval '1 microsecond', $3)) "
                      "ORDER BY created_at DESC, id DESC LIMIT $4::bigint";

static void put_message(struct json_writer *writer, const struct rest_call *rest,
                        struct postgres_rows rows, size_t row) {
    const struct workspace *workspace = rest->workspace;
    size_t agent = workspace_agent(workspace, postgres_content(rows, row, 5));
    shown_message(writer, &(struct shown_message){.id = postgres_content(rows, row, 0),
                                                  .conversation = workspace->conversation,
                                                  .role = postgres_content(rows, row, 1),
                                                  .content = postgres_content(rows, row, 2),
                                                  .status = postgres_content(rows, row, 3),
                                                  .local_id = postgres_content(rows, row, 4),
                                                  .agent = agent < workspace->agent_count
                                                               ? &workspace->agents[agent]
                                                               : NULL,
                                                  .agent_status = AGENT_ONLINE,
                                                  .attachments = postgres_content(rows, row, 6),
                                                  .created_us = postgres_number(rows, row, 7),
                                                  .updated_us = postgres_number(rows, row, 8)});
}

/* The newest page last, its oldest message first. */
static void put_page(struct rest_call *rest, struct postgres_rows rows, struct buf *out) {
    struct json_writer writer = json_writer(out);
    bool more = rows.count > (size_t)rest->limit;
    size_t count = more ? rows.count - 1 : rows.count;
    json_open_object(&writer);
    json_member_array(&writer, "data");
    for (size_t i = count; i-- > 0;) put_message(&writer, rest, rows, i);
    json_close(&writer);
    json_member_object(&writer, "pagination");
    json_member_bool(&writer, "hasNext", more);
    if (more) {
        struct buf scroll;
        buf_init(&scroll, KIB);
        buf_append_i64(&scroll, postgres_number(rows, count - 1, 7));
        buf_append_byte(&scroll, '-');
        buf_append(&scroll, postgres_content(rows, count - 1, 0));
        json_member_str(&writer, "nextScrollId", buf_str(&scroll));
        buf_done(&scroll);
    }
    json_close(&writer);
    json_close(&writer);
}

static void on_messages(const struct postgres_request *rows, const struct err *failed,
                        void *ctx) {
    struct rest_call *rest = ctx;
    if (rest_answered(rest, failed)) {
        struct buf body;
        buf_init(&body, ANSWER_MAX_BYTES);
        put_page(rest, postgres_rows(rows, 0), &body);
        rest_answer(rest, 200, &body);
        buf_done(&body);
    }
    rest_release(rest);
}

void rest_messages(struct rest_call *rest) {
    struct query *query = query_new();
    QUERY_STEP(query, select_messages, postgres_text(rest->workspace->conversation),
               postgres_int(rest->before_us), postgres_text(rest->before_id),
               postgres_int(rest->limit + 1));
    rest_ask(rest, query, on_messages);
}

/* --- conversations and agents --------------------------------------------------------------------------- */

static const char select_conversations[] =
    "SELECT json_build_object('data', coalesce(json_agg(json_build_object('id', id, "
    "'workspace_id', workspace_id, 'agent_id', agent_id, 'type', type, 'title', title, "
    "'unread_count', unread_count) ORDER BY type DESC, title), '[]'::json))::text "
    "FROM (SELECT * FROM conversations WHERE workspace_id = $1 LIMIT 1000) c";

static const char select_agents[] =
    "SELECT json_build_object('data', coalesce(json_agg(json_build_object('id', id, "
    "'workspace_id', workspace_id, 'name', name, 'role', role, 'slug', slug, "
    "'avatar', avatar_url, 'description', description, 'status', 'online') "
    "ORDER BY sort_order, slug), '[]'::json))::text "
    "FROM (SELECT * FROM agents WHERE workspace_id = $1 LIMIT 1000) a";

/* A row whose only column is the body. */
static void on_body(const struct postgres_request *rows, const struct err *failed, void *ctx) {
    struct rest_call *rest = ctx;
    if (rest_answered(rest, failed))
        route_reply(rest->call, 200, STR("application/json"),
                    postgres_content(postgres_rows(rows, 0), 0, 0));
    rest_release(rest);
}

static void ask_for(struct rest_call *rest, const char *sql, struct str id) {
    struct query *query = query_new();
    QUERY_STEP(query, sql, postgres_text(id));
    rest_ask(rest, query, on_body);
}

void rest_conversations(struct rest_call *rest) {
    ask_for(rest, select_conversations, rest->workspace->id);
}

void rest_agents(struct rest_call *rest) {
    ask_for(rest, select_agents, rest->workspace->id);
}

/* --- usage -------------------------------------------------------------------------------------------------- */

static const char select_usage[] =
    "WITH month AS (SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM') AS period), "
    "plan AS (SELECT plan_id, monthly_token_limit FROM usage_quotas q JOIN usage_plans p "
    "USING (plan_id) WHERE q.user_id = $1 AND (q.expires_at IS NULL OR q.expires_at > now()) "
    "ORDER BY q.effective_at DESC LIMIT 1) "
    "SELECT json_build_object('data', json_build_object('current_period', month.period, "
    "'tokens_used', coalesce(tokens_used, 0), "
    "'prompt_tokens_used', coalesce(prompt_tokens_used, 0), "
    "'completion_tokens_used', coalesce(completion_tokens_used, 0), "
    "'request_count', coalesce(request_count, 0), "
    "'token_limit', coalesce((SELECT monthly_token_limit FROM plan), 0), "
    "'plan_id', coalesce((SELECT plan_id FROM plan), '')))::text "
    "FROM month LEFT JOIN usage_counters c ON c.period = month.period AND c.user_id = $1";

void rest_usage(struct rest_call *rest) {
    ask_for(rest, select_usage, rest->caller.user);
}
