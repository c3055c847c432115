/* What is only read: messages, conversations, agents, and the usage of a user. */
#include "base/arena.h"
#include "orchestrator/rest_inner.h"

#define ANSWER_MAX_BYTES (64 * MIB)
#define SCROLL_MAX_BYTES (16 * KIB)

/* --- pages ------------------------------------------------------------------------------------------- */

/* "<number>-<bytes of the id>-<id><text>": the last row of the page before. The key itself, so
 * that the next page is found also when that row is gone. */
static bool read_scroll(struct rest_call *rest, struct str text) {
    struct str len_text, rest_text, number = str_split(text, '-', &rest_text);
    uint64_t len;
    len_text = str_split(rest_text, '-', &rest_text);
    rest->from = true;
    return rest_text.at && str_to_i64(number, &rest->from_number) &&
           str_to_u64(len_text, &len) && len <= rest_text.len &&
           arena_str(rest->arena, str_head(rest_text, (size_t)len), &rest->from_id) &&
           arena_str(rest->arena, str_skip(rest_text, (size_t)len), &rest->from_text);
}

static void put_scroll(struct json_writer *writer, int64_t number, struct str id,
                       struct str text) {
    struct buf scroll;
    buf_init(&scroll, SCROLL_MAX_BYTES);
    buf_append_i64(&scroll, number);
    buf_printf(&scroll, "-%zu-", id.len);
    buf_append(&scroll, id);
    buf_append(&scroll, text);
    json_member_str(writer, "nextScrollId", buf_str(&scroll));
    buf_done(&scroll);
}

bool rest_read_page(struct rest_call *rest, uint64_t usual, uint64_t most) {
    struct buf text;
    uint64_t limit = usual;
    buf_init(&text, SCROLL_MAX_BYTES);
    bool good = true;
    rest->from_number = INT64_MAX;
    rest->from_id = rest->from_text = STR_EMPTY;
    if (route_query(rest->call, STR("scrollId"), &text) && text.len)
        good = read_scroll(rest, buf_str(&text));
    buf_clear(&text);
    if (good && route_query(rest->call, STR("limit"), &text) && text.len)
        good = str_to_u64(buf_str(&text), &limit) && limit > 0;
    buf_done(&text);
    rest->limit = (int64_t)(limit < most ? limit : most);
    if (!good) rest_fail(rest, 400, "REQ0001", STR("scrollId or limit is not valid"));
    return good;
}

static void put_pagination(struct json_writer *writer, bool more, int64_t number, struct str id,
                           struct str text) {
    json_member_object(writer, "pagination");
    json_member_bool(writer, "hasNext", more);
    if (more) put_scroll(writer, number, id, text);
    json_close(writer);
}

/* --- messages ------------------------------------------------------------------------------------------ */

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
    put_pagination(&writer, more, more ? postgres_number(rows, count - 1, 7) : 0,
                   more ? postgres_content(rows, count - 1, 0) : STR_EMPTY, STR_EMPTY);
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
               postgres_int(rest->from_number), postgres_text(rest->from_id),
               postgres_int(rest->limit + 1));
    rest_ask(rest, query, on_messages);
}

/* --- conversations and agents --------------------------------------------------------------------------- */

/* Each row: the item, then the key by which it goes on: a number, an id and a text. */
static const char select_conversations[] =
    "SELECT json_build_object('id', id, 'workspace_id', workspace_id, 'agent_id', agent_id, "
    "'type', type, 'title', title, 'unread_count', unread_count)::text, "
    "(type <> 'swarm')::int::bigint, id, title FROM conversations WHERE workspace_id = $1 AND "
    "($2::bigint = 0 OR ((type <> 'swarm'), title, id) > ($3::bigint > 0, $5, $4)) "
    "ORDER BY (type <> 'swarm'), title, id LIMIT $6::bigint";

static const char select_agents[] =
    "SELECT json_build_object('id', id, 'workspace_id', workspace_id, 'name', name, 'role', "
    "role, 'slug', slug, 'avatar', avatar_url, 'description', description, 'status', "
    "'online')::text, sort_order::bigint, slug, '' FROM agents WHERE workspace_id = $1 AND "
    "($2::bigint = 0 OR (sort_order, slug) > ($3::bigint, $4)) AND $5::text IS NOT NULL "
    "ORDER BY sort_order, slug LIMIT $6::bigint";

static void put_lines(const struct rest_call *rest, struct postgres_rows rows,
                      struct buf *out) {
    struct json_writer writer = json_writer(out);
    bool more = rows.count > (size_t)rest->limit;
    size_t count = more ? rows.count - 1 : rows.count, last = count ? count - 1 : 0;
    json_open_object(&writer);
    json_member_array(&writer, "data");
    for (size_t i = 0; i < count; i++) json_write_raw(&writer, postgres_content(rows, i, 0));
    json_close(&writer);
    put_pagination(&writer, more, more ? postgres_number(rows, last, 1) : 0,
                   more ? postgres_content(rows, last, 2) : STR_EMPTY,
                   more ? postgres_content(rows, last, 3) : STR_EMPTY);
    json_close(&writer);
}

static void on_lines(const struct postgres_request *rows, const struct err *failed, void *ctx) {
    struct rest_call *rest = ctx;
    if (rest_answered(rest, failed)) {
        struct buf body;
        buf_init(&body, ANSWER_MAX_BYTES);
        put_lines(rest, postgres_rows(rows, 0), &body);
        rest_answer(rest, 200, &body);
        buf_done(&body);
    }
    rest_release(rest);
}

static void ask_lines(struct rest_call *rest, const char *sql) {
    struct query *query = query_new();
    QUERY_STEP(query, sql, postgres_text(rest->workspace->id), postgres_int(rest->from),
               postgres_int(rest->from ? rest->from_number : 0), postgres_text(rest->from_id),
               postgres_text(rest->from_text), postgres_int(rest->limit + 1));
    rest_ask(rest, query, on_lines);
}

void rest_conversations(struct rest_call *rest) {
    ask_lines(rest, select_conversations);
}

void rest_agents(struct rest_call *rest) {
    ask_lines(rest, select_agents);
}

/* --- usage -------------------------------------------------------------------------------------------------- */

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
