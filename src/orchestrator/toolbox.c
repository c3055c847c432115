#include "orchestrator/toolbox.h"

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "orchestrator/agent_asks.h"
#include "orchestrator/jsonb.h"
#include "orchestrator/readers.h"
#include "orchestrator/toolbox_inner.h"

#include <stdlib.h>

#define ARENA_MAX_BYTES (4 * MIB)
#define BODY_MAX_BYTES MIB
#define BODY_STRETCH_MS 10000
#define BODY_STRETCH_BYTES KIB
#define SEARCH_LIMIT 20
#define AUDIT_JSON_MAX_BYTES (ORCHESTRATOR_AUDIT_PAYLOAD_BYTES + KIB)
#define SEARCH_LIMIT_MAX 50
#define AUDITING_MAX 1000 /* rows that wait for the database; then no call begins */

static const struct str not_now = STR_INIT("the orchestrator is not ready; try again later");

/* --- a use ------------------------------------------------------------------------------------ */

static void use_free(struct tool_use *use) {
    workspace_unref(use->workspace);
    arena_free(use->arena);
    free(use);
}

static void toolbox_on_left(void *ctx) {
    struct tool_use *use = ctx;
    use->left = true;
}

void tool_use_answer(struct tool_use *use, struct str json) {
    orchestrator_call_answer(use->call, json);
    use_free(use);
}

void tool_use_fail(struct tool_use *use, struct str text) {
    orchestrator_call_fail(use->call, text);
    use_free(use);
}

bool tool_use_answered(struct tool_use *use, const struct err *failed) {
    if (!failed && !use->left) return true;
    if (failed && (failed->code == ERR_NOT_FOUND || readers_refused(failed)))
        tool_use_fail(use, err_text(failed));
    else if (!failed)
        tool_use_fail(use, STR("the caller left before it was done"));
    else
        tool_use_fail(use, STR("the database cannot be reached now; try again later"));
    return false;
}

void tool_use_read(struct tool_use *use, struct query *query, query_done_fn *done) {
    const struct read_owner owner = {use->view.workspace, use->view.user};
    readers_ask(use->orchestrator->queries.readers, &owner, query, done, use);
}

void tool_use_ask(struct tool_use *use, struct query *query, query_done_fn *done) {
    query_ask(query, &use->orchestrator->queries, QUERY_REPEATABLE, done, use);
}

struct str tool_use_text(const struct tool_use *use, const char *key) {
    struct str text;
    struct json value = json_find(use->view.arguments, str_from(key));
    return json_str(value, use->arena, &text) ? text : STR_EMPTY;
}

static bool tool_use_flag(const struct tool_use *use, const char *key) {
    bool flag;
    return json_bool(json_find(use->view.arguments, str_from(key)), &flag) && flag;
}

static void toolbox_on_workspace(struct workspace *found, const struct err *failed, void *ctx) {
    struct tool_use *use = ctx;
    use->workspace = found;
    if (tool_use_answered(use, failed)) use->found(use);
}

/* The request may be gone before the database has answered. */
static bool use_keep_view(struct tool_use *use, const struct orchestrator_call_view *view) {
    struct str arguments = STR("{}");
    struct err e;
    use->view = *view;
    return (view->arguments.kind != JSON_OBJECT ||
            arena_str(use->arena, view->arguments.raw, &arguments)) &&
           json_read(arguments, &use->view.arguments, &e) &&
           arena_str(use->arena, view->workspace, &use->view.workspace) &&
           arena_str(use->arena, view->user, &use->view.user) &&
           arena_str(use->arena, view->conversation, &use->view.conversation);
}

void tool_use_start(struct orchestrator_call *call, const struct orchestrator_call_view *view,
                    struct orchestrator *orchestrator, struct str conversation,
                    void (*found)(struct tool_use *use)) {
    if (!orchestrator->talks || orchestrator->stopping) {
        orchestrator_call_fail(call, not_now);
        return;
    }
    struct tool_use *use = MEM_NEW(struct tool_use);
    const struct workspace_question question = {.user = view->user,
                                                .id = view->workspace,
                                                .conversation = conversation,
                                                .make = true,
                                                .reads = true};
    *use = (struct tool_use){.orchestrator = orchestrator,
                             .call = call,
                             .arena = arena_new(ARENA_MAX_BYTES),
                             .found = found,
                             .id = STR_EMPTY};
    orchestrator_call_watch(call, toolbox_on_left, use);
    if (!use_keep_view(use, view)) {
        tool_use_fail(use, STR("the arguments are too long"));
        return;
    }
    workspace_find(&orchestrator->queries, &question, toolbox_on_workspace, use);
}

/* --- what is only read --------------------------------------------------------------------------- */

/* A row whose only column is the answer. */
static void on_json(const struct postgres_request *rows, const struct err *failed, void *ctx) {
    struct tool_use *use = ctx;
    if (!tool_use_answered(use, failed)) return;
    struct postgres_rows answer = postgres_rows(rows, 0);
    if (answer.count)
        tool_use_answer(use, postgres_content(answer, 0, 0));
    else
        tool_use_fail(use, STR("there is nothing"));
}

static const char select_profile[] =
    "SELECT json_build_object('user_id', $1::text, 'plan_id', coalesce((SELECT plan_id FROM "
    "usage_quotas WHERE user_id = $1 AND (expires_at IS NULL OR expires_at > now()) "
    "ORDER BY effective_at DESC LIMIT 1), ''), 'workspaces', coalesce((SELECT "
    "json_agg(json_build_object('id', id, 'name', name) ORDER BY created_at, id) FROM (SELECT "
    "* "
    "FROM workspaces WHERE user_id = $1 ORDER BY created_at, id LIMIT 100) w), "
    "'[]'::json))::text";

static void profile_found(struct tool_use *use) {
    struct query *query = query_new();
    QUERY_STEP(query, select_profile, postgres_text(use->workspace->user));
    tool_use_read(use, query, on_json);
}

static const char select_info[] =
    "SELECT json_strip_nulls(json_build_object('workspace_id', w.id, 'name', w.name, "
    "'created_at', to_char(w.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), "
    "'conversations', (SELECT count(*) FROM conversations WHERE workspace_id = w.id), "
    "'agents', CASE WHEN $2::bigint = 1 THEN (SELECT json_agg(json_build_object('id', id, "
    "'slug', slug, 'name', name, 'role', role, 'description', description) ORDER BY "
    "sort_order, slug) FROM (SELECT * FROM agents WHERE workspace_id = w.id "
    "ORDER BY sort_order, slug LIMIT 64) a) END))::text FROM workspaces w WHERE w.id = $1";

static void info_found(struct tool_use *use) {
    struct query *query = query_new();
    QUERY_STEP(query, select_info, postgres_text(use->workspace->id),
               postgres_int(tool_use_flag(use, "include_agents")));
    tool_use_read(use, query, on_json);
}

/* None is archived here, so include_archived adds none. */
static const char select_conversations[] =
    "SELECT json_build_object('conversations', coalesce(json_agg(json_build_object('id', c.id, "
    "'type', c.type, 'title', c.title, 'agent_slug', coalesce(a.slug, ''), 'updated_at', "
    "to_char(c.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')) "
    "ORDER BY c.updated_at DESC, c.id), '[]'::json))::text FROM (SELECT * FROM conversations "
    "WHERE workspace_id = $1 ORDER BY updated_at DESC, id LIMIT 200) c "
    "LEFT JOIN agents a ON a.id = c.agent_id";

static void conversations_found(struct tool_use *use) {
    struct query *query = query_new();
    QUERY_STEP(query, select_conversations, postgres_text(use->workspace->id));
    tool_use_read(use, query, on_json);
}

#define SEARCH_QUERY_MAX_BYTES 512

/* Messages of the newest 20,000 that have every word. */
static const char select_matches[] =
    "SELECT json_build_object('messages', coalesce(json_agg(json_build_object('id', m.id, "
    "'role', m.role, 'agent_slug', coalesce(a.slug, ''), 'text', left(m.text, 4000), "
    "'created_at', to_char(m.created_at AT TIME ZONE 'UTC', "
    "'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')) ORDER BY m.created_at DESC, m.id DESC), "
    "'[]'::json))::text "
    "FROM (SELECT * FROM (SELECT id, role, agent_id, created_at, content->>'text' AS text FROM "
    "messages WHERE conversation_id = $1 AND status <> 'pending' "
    "ORDER BY created_at DESC, id DESC LIMIT 20000) newest WHERE text <> '' AND NOT EXISTS "
    "(SELECT FROM unnest(regexp_split_to_array(btrim(lower($2)), '\\s+')) word "
    "WHERE position(word IN lower(text)) = 0) ORDER BY created_at DESC, id DESC "
    "LIMIT $3::bigint) m LEFT JOIN agents a ON a.id = m.agent_id";

static void search_found(struct tool_use *use) {
    struct query *query = query_new();
    int64_t limit;
    if (!json_i64(json_find(use->view.arguments, STR("limit")), &limit) || limit < 1)
        limit = SEARCH_LIMIT;
    QUERY_STEP(query, select_matches, postgres_text(use->workspace->conversation),
               postgres_text(tool_use_text(use, "query")),
               postgres_int(limit < SEARCH_LIMIT_MAX ? limit : SEARCH_LIMIT_MAX));
    tool_use_read(use, query, on_json);
}

static void get_user_profile(struct orchestrator_call *call,
                             const struct orchestrator_call_view *view, void *ctx) {
    tool_use_start(call, view, ctx, STR_EMPTY, profile_found);
}

static void get_workspace_info(struct orchestrator_call *call,
                               const struct orchestrator_call_view *view, void *ctx) {
    tool_use_start(call, view, ctx, STR_EMPTY, info_found);
}

static void list_conversations(struct orchestrator_call *call,
                               const struct orchestrator_call_view *view, void *ctx) {
    tool_use_start(call, view, ctx, STR_EMPTY, conversations_found);
}

static void search_past_messages(struct orchestrator_call *call,
                                 const struct orchestrator_call_view *view, void *ctx) {
    struct json query = json_find(view->arguments, STR("query"));
    if (!id_ok(view->conversation))
        orchestrator_call_fail(call, STR("conversation_id is required"));
    else if (jsonb_has_nul(query.raw))
        orchestrator_call_fail(call, STR("query " NO_NUL));
    else if (query.raw.len > SEARCH_QUERY_MAX_BYTES)
        orchestrator_call_fail(call, STR("query is too long: a few words find a message"));
    else
        tool_use_start(call, view, ctx, view->conversation, search_found);
}

/* --- other agents ------------------------------------------------------------------------------- */

static void send_message_to_agent(struct orchestrator_call *call,
                                  const struct orchestrator_call_view *view, void *ctx) {
    const struct orchestrator *orchestrator = ctx;
    if (orchestrator->asks)
        agent_asks_serve(orchestrator->asks, call, view);
    else
        orchestrator_call_fail(call, not_now);
}

/* --- the audit ------------------------------------------------------------------------------------ */

static const char insert_audit[] =
    "INSERT INTO mcp_audit_logs (id, user_id, workspace_id, session_id, tool, input, output, "
    "error, success, duration_ms) VALUES ($1, $2, $3, $4, $5, $6::jsonb, $7::jsonb, "
    "coalesce($7::jsonb->>'error', ''), $8::bigint = 1, $9) ON CONFLICT (id) DO NOTHING";

/* A row on its way. */
struct auditing {
    struct orchestrator *orchestrator;
    struct text workspace, user, tool;
    bool error;
};

/* Our own log is what is left of it. Calls that were refused may be many. */
static void audit_lost(const struct orchestrator_audit *row, const char *why) {
    (row->refused ? log_often
                  : log_line)(LOG_ERROR,
                              "a tool call is not in mcp_audit_logs: " STR_FMT
                              " of workspace " STR_FMT ", user " STR_FMT ", which %s: %s",
                              STR_ARG(row->tool), STR_ARG(row->workspace), STR_ARG(row->user),
                              row->error ? "failed" : "succeeded", why);
}

static void audit_end(struct auditing *auditing) {
    text_done(&auditing->workspace);
    text_done(&auditing->user);
    text_done(&auditing->tool);
    free(auditing);
}

static void on_audited(const struct postgres_request *rows, const struct err *failed,
                       void *ctx) {
    struct auditing *auditing = ctx;
    (void)rows;
    const struct orchestrator_audit row = {.workspace = text_str(auditing->workspace),
                                           .user = text_str(auditing->user),
                                           .tool = text_str(auditing->tool),
                                           .error = auditing->error};
    auditing->orchestrator->auditing--;
    if (failed) audit_lost(&row, failed->text);
    audit_end(auditing);
}

static void put_payload(struct buf *out, struct str json) {
    buf_init(out, 3 * AUDIT_JSON_MAX_BYTES);
    jsonb_put(json, out);
}

/* If no caller received the answer of a call, the output says so. */
static void put_output(struct buf *out, const struct orchestrator_audit *row) {
    struct str rest = str_skip(row->result, 1);
    if (!row->unheard || !str_starts(row->result, STR("{"))) {
        put_payload(out, row->result);
        return;
    }
    buf_init(out, 3 * AUDIT_JSON_MAX_BYTES);
    buf_append(out, STR("{\"_unheard\":true"));
    if (!str_starts(rest, STR("}"))) buf_append_byte(out, ',');
    jsonb_put(rest, out);
}

static struct query *audit_query(const struct orchestrator_audit *row) {
    struct uuid id = uuid_new();
    struct query *query = query_new();
    struct buf input, output;
    put_payload(&input, row->arguments);
    put_output(&output, row);
    QUERY_STEP(query, insert_audit, postgres_text(uuid_str(&id)), postgres_text(row->user),
               postgres_text(row->workspace), postgres_text(row->conversation),
               postgres_text(row->tool), postgres_text(buf_str(&input)),
               postgres_text(buf_str(&output)), postgres_int(!row->error),
               postgres_int((int64_t)row->took_ms));
    buf_done(&input);
    buf_done(&output);
    return query;
}

/* Calls that were refused do not wait for the database. */
static void audit(const struct orchestrator_audit *row, void *ctx) {
    struct orchestrator *orchestrator = ctx;
    if (row->refused || !orchestrator->open) {
        audit_lost(row, "no row can be kept now");
        return;
    }
    struct auditing *auditing = MEM_NEW(struct auditing);
    *auditing = (struct auditing){.orchestrator = orchestrator,
                                  .workspace = text_copy(row->workspace),
                                  .user = text_copy(row->user),
                                  .tool = text_copy(row->tool),
                                  .error = row->error};
    orchestrator->auditing++;
    query_ask(audit_query(row), &orchestrator->queries, QUERY_STEADFAST, on_audited, auditing);
}

/* Before the tables are known, after the database is closed, and while it does not take the rows of
 * many calls, no row could be kept: no call begins. */
static bool toolbox_ready(void *ctx) {
    const struct orchestrator *orchestrator = ctx;
    return orchestrator->talks && orchestrator->open && orchestrator->auditing < AUDITING_MAX;
}

/* --- all of it -------------------------------------------------------------------------------------- */

void toolbox_init(struct orchestrator *orchestrator, struct store *store) {
    struct orchestrator_endpoint *endpoint = &orchestrator->endpoint;
    *endpoint = (struct orchestrator_endpoint){.keys = orchestrator->keys,
                                               .store = store,
                                               .blueprint = blueprint_serve,
                                               .audit = audit,
                                               .ready = toolbox_ready,
                                               .ctx = orchestrator,
                                               .body_max_bytes = BODY_MAX_BYTES,
                                               .body_stretch_ms = BODY_STRETCH_MS,
                                               .body_stretch_bytes = BODY_STRETCH_BYTES};
    endpoint->tools[ORCHESTRATOR_GET_USER_PROFILE] = get_user_profile;
    endpoint->tools[ORCHESTRATOR_GET_WORKSPACE_INFO] = get_workspace_info;
    endpoint->tools[ORCHESTRATOR_LIST_CONVERSATIONS] = list_conversations;
    endpoint->tools[ORCHESTRATOR_SEARCH_PAST_MESSAGES] = search_past_messages;
    endpoint->tools[ORCHESTRATOR_SEND_MESSAGE_TO_AGENT] = send_message_to_agent;
    endpoint->tools[ORCHESTRATOR_ASK_QUESTIONS] = questions_ask;
    orchestrator_endpoint_init(endpoint, orchestrator->loop);
}

void toolbox_routes(void *instance, struct route_table *ret) {
    struct orchestrator *orchestrator = instance;
    orchestrator_endpoint_table(&orchestrator->endpoint, ret);
}
