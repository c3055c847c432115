/* What is only read: messages, conversations, agents, and the usage of a user. */
#include "base/arena.h"
#include "base/utf8.h"
#include "orchestrator/rest_inner.h"

#define ANSWER_MAX_BYTES (64 * MIB)
#define QUERY_MAX_BYTES (16 * KIB) /* more than a request's target may have */
#define SCROLL_TEXT_MAX_BYTES 512  /* of a text that a list is ordered by */
/* Microseconds of more than 10,000 years, which PostgreSQL's times reach. */
#define SCROLL_NUMBER_MAX INT64_C(400000000000000000)

/* --- pages ------------------------------------------------------------------------------------------- */

static bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

/* "<number>-<bytes of the id>-<id><text>": the last row of the page before. The key itself, so
 * that the next page is found also when that row is gone. A long text is cut, which '+' in place
 * of the second '-' says: then the row is asked for the rest of it. */
static bool read_scroll(struct rest_call *rest, struct str text) {
    struct str rest_text, number = str_split(text, '-', &rest_text);
    size_t digits = 0;
    uint64_t len;
    while (digits < rest_text.len && is_digit(rest_text.at[digits])) digits++;
    struct str len_text = str_head(rest_text, digits), mark = str_skip(rest_text, digits);
    rest->from = true;
    if (!mark.len || (mark.at[0] != '-' && mark.at[0] != '+')) return false;
    rest->from_cut = mark.at[0] == '+';
    rest_text = str_skip(mark, 1);
    return str_to_i64(number, &rest->from_number) && rest->from_number >= -SCROLL_NUMBER_MAX &&
           rest->from_number <= SCROLL_NUMBER_MAX && str_to_u64(len_text, &len) &&
           len <= rest_text.len &&
           arena_str(rest->arena, str_head(rest_text, (size_t)len), &rest->from_id) &&
           arena_str(rest->arena, str_skip(rest_text, (size_t)len), &rest->from_text);
}

static void put_scroll(struct json_writer *writer, int64_t number, struct str id,
                       struct str text) {
    struct buf scroll;
    struct str head = str_head(text, utf8_cut(text, SCROLL_TEXT_MAX_BYTES));
    buf_init(&scroll, id.len + head.len + KIB);
    buf_append_i64(&scroll, number);
    buf_printf(&scroll, "-%zu%c", id.len, head.len < text.len ? '+' : '-');
    buf_append(&scroll, id);
    buf_append(&scroll, head);
    json_member_str(writer, "nextScrollId", buf_str(&scroll));
    buf_done(&scroll);
}

/* False: there is none, or an empty one. *good becomes false when it cannot be read. */
static bool read_query(struct rest_call *rest, struct str name, struct buf *text, bool *good) {
    buf_clear(text);
    enum query_value value = route_query(rest->call, name, text);
    if (value == QUERY_BAD) *good = false;
    return value == QUERY_READ && text->len > 0;
}

bool rest_read_page(struct rest_call *rest, uint64_t usual, uint64_t most) {
    struct buf text;
    uint64_t limit = usual;
    buf_init(&text, QUERY_MAX_BYTES);
    bool good = true;
    rest->from_number = INT64_MAX;
    rest->from_id = rest->from_text = STR_EMPTY;
    if (read_query(rest, STR("scrollId"), &text, &good))
        good = read_scroll(rest, buf_str(&text));
    if (good && read_query(rest, STR("limit"), &text, &good))
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

/* Of a page, in the database. It ends after the row that passes this, and has one at least. */
#define PAGE_MAX_BYTES "8388608"

/* A page's rows until they are too many bytes, with how many come after each. `page` is a query
 * with one row more than the page, `bytes` the size of its row. */
#define BOUNDED(page, columns, bytes, order)                                                   \
    "WITH page AS (" page "), sized AS (SELECT *, sum(" bytes ") OVER (ORDER BY " order        \
    ") - " bytes " AS before, count(*) OVER () - row_number() OVER (ORDER BY " order           \
    ") AS after FROM page) SELECT " columns                                                    \
    ", after FROM sized WHERE before < " PAGE_MAX_BYTES " ORDER BY " order

/* How many of the rows the page has; whether there are more. */
static size_t page_count(const struct rest_call *rest, struct postgres_rows rows,
                         size_t after_column, bool *ret_more) {
    size_t count = rows.count > (size_t)rest->limit ? (size_t)rest->limit : rows.count;
    *ret_more = count && postgres_number(rows, count - 1, after_column) > 0;
    return count;
}

/* JSON that was cut would be none. */
static void answer_page(struct rest_call *rest, const struct buf *body) {
    if (buf_ok(body))
        rest_answer(rest, 200, body);
    else
        rest_fail(rest, 500, "INT0001", STR("The page is too large: ask for a lower limit"));
}

/* A placeholder is not shown before it is a message. */
static const char select_messages[] = BOUNDED(
    "SELECT id, role, content::text AS said, status, coalesce(local_id, '') AS local, "
    "coalesce(agent_id, '') AS agent, attachments::text AS attached, "
    "created_at, " ROWS_TIME("created_at") " AS at, " ROWS_TIME(
        "updated_at") " AS changed "
                      "FROM messages WHERE conversation_id = $1 AND status <> 'pending' "
                      "AND "
                      "($2::bigint = 9223372036854775807 OR (created_at, id) < "
                      "('epoch'::timestamptz + $2::bigint * interval '1 microsecond', $3)) "
                      "ORDER BY created_at DESC, id DESC LIMIT $4::bigint",
    "id, role, said, status, local, agent, attached, at, changed",
    "(octet_length(said) + octet_length(attached) + octet_length(local))",
    "created_at DESC, id DESC");

static void rest_read_put_message(struct json_writer *writer, const struct rest_call *rest,
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
    bool more;
    size_t count = page_count(rest, rows, 9, &more);
    json_open_object(&writer);
    json_member_array(&writer, "data");
    for (size_t i = count; i-- > 0;) rest_read_put_message(&writer, rest, rows, i);
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
        answer_page(rest, &body);
        buf_done(&body);
    }
    rest_release(rest);
}

void rest_messages(struct rest_call *rest) {
    if (!rest_conversation(rest)) return;
    struct query *query = query_new();
    QUERY_STEP(query, select_messages, postgres_text(rest->workspace->conversation),
               postgres_int(rest->from_number), postgres_text(rest->from_id),
               postgres_int(rest->limit + 1));
    rest_ask(rest, query, on_messages);
}

/* --- conversations and agents --------------------------------------------------------------------------- */

/* Each row: the item, then the key by which it goes on: a number, an id and a text. */
#define BOUNDED_LINES(page)                                                                    \
    BOUNDED(page, "item, number, id, text",                                                    \
            "(octet_length(item) + octet_length(id) + octet_length(text))",                    \
            "number, text, id")

/* The text to go on from: $5, or what it was cut from ($7). Of a row that is gone meanwhile the
 * next page goes on from the cut text: rows that begin with it may come twice, and none is
 * left out. */
#define WHOLE(column, table)                                                                   \
    "CASE WHEN $7::bigint = 1 THEN coalesce((SELECT " column " FROM " table                    \
    " WHERE id = $4 AND workspace_id = $1), $5) ELSE $5 END"

static const char select_conversations[] = BOUNDED_LINES(
    "SELECT json_build_object('id', id, 'workspace_id', workspace_id, 'agent_id', agent_id, "
    "'type', type, 'title', title, 'unread_count', unread_count)::text AS item, "
    "(type <> 'swarm')::int::bigint AS number, id, title AS text FROM conversations WHERE "
    "workspace_id = $1 AND "
    "($2::bigint = 0 OR ((type <> 'swarm'), title, id) > ($3::bigint > 0, " WHOLE(
        "title", "conversations") ", $4)) "
                                  "ORDER BY (type <> 'swarm'), title, id LIMIT $6::bigint");

static const char select_agents[] = BOUNDED_LINES(
    "SELECT json_build_object('id', id, 'workspace_id', workspace_id, 'name', name, 'role', "
    "role, 'slug', slug, 'avatar', avatar_url, 'description', description, 'status', "
    "'online')::text AS item, sort_order::bigint AS number, id, slug AS text FROM agents "
    "WHERE workspace_id = $1 AND "
    "($2::bigint = 0 OR (sort_order, slug, id) > ($3::bigint, " WHOLE(
        "slug", "agents") ", $4)) "
                          "ORDER BY sort_order, slug, id LIMIT $6::bigint");

static void put_lines(const struct rest_call *rest, struct postgres_rows rows,
                      struct buf *out) {
    struct json_writer writer = json_writer(out);
    bool more;
    size_t count = page_count(rest, rows, 4, &more), last = count ? count - 1 : 0;
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
        answer_page(rest, &body);
        buf_done(&body);
    }
    rest_release(rest);
}

static void ask_lines(struct rest_call *rest, const char *sql) {
    struct query *query = query_new();
    QUERY_STEP(query, sql, postgres_text(rest->workspace->id), postgres_int(rest->from),
               postgres_int(rest->from ? rest->from_number : 0), postgres_text(rest->from_id),
               postgres_text(rest->from_text), postgres_int(rest->limit + 1),
               postgres_int(rest->from_cut));
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
static void rest_read_on_body(const struct postgres_request *rows, const struct err *failed,
                              void *ctx) {
    struct rest_call *rest = ctx;
    if (rest_answered(rest, failed))
        route_reply(rest->call, 200, STR("application/json"),
                    postgres_content(postgres_rows(rows, 0), 0, 0));
    rest_release(rest);
}

static void ask_for(struct rest_call *rest, const char *sql, struct str id) {
    struct query *query = query_new();
    QUERY_STEP(query, sql, postgres_text(id));
    rest_ask(rest, query, rest_read_on_body);
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
