#include "orchestrator/workspace.h"

#include "base/arena.h"
#include "base/mem.h"
#include "orchestrator/readers.h"

#include <stdlib.h>

#define ARENA_MAX_BYTES (4 * MIB)

#define MICROSECONDS(column) "(extract(epoch FROM " column ") * 1000000)::bigint"

static const char find_workspace[] = "SELECT user_id FROM workspaces WHERE id = $1";

static const char find_conversation[] =
    "SELECT id, type, coalesce(agent_id, ''), title FROM conversations "
    "WHERE id = $1 AND workspace_id = $2";

static const char find_agents[] =
    "SELECT id, name, role, slug, avatar_url, description, " MICROSECONDS(
        "created_at") ", " MICROSECONDS("updated_at") " FROM agents WHERE workspace_id = $1 "
                                                      "ORDER BY sort_order, slug LIMIT 64";

/* --- the first use ---------------------------------------------------------------------------- */

static const struct {
    struct str slug, name, role, description, prompt;
} seeds[] = {
    {STR_INIT("manager"), STR_INIT("Manager"), STR_INIT("manager"),
     STR_INIT("Answers by itself, or hands over to who knows more."),
     STR_INIT("You lead a small team. Answer simple things yourself. Hand research on the web, "
              "and questions of dates and schedules, to the agent for it, without saying so.")},
    {STR_INIT("wally"), STR_INIT("Wally"), STR_INIT("sub-agent"),
     STR_INIT("Finds things out on the web."),
     STR_INIT("You research on the web. Say what you found, and where.")},
    {STR_INIT("eve"), STR_INIT("Eve"), STR_INIT("sub-agent"),
     STR_INIT("Knows dates, time zones and schedules."),
     STR_INIT("You reckon with dates and time zones, and plan schedules.")},
};

static const char make_workspace[] =
    "INSERT INTO workspaces (id, user_id, name) VALUES ($1, $2, 'My Workspace') "
    "ON CONFLICT (id) DO NOTHING";

/* Only by the one whose workspace it is, so that two first uses make one set. */
static const char make_agent[] =
    "INSERT INTO agents (id, workspace_id, name, role, slug, description, system_prompt, "
    "sort_order) SELECT $3, id, $4, $5, $6, $7, $8, $9::bigint FROM workspaces "
    "WHERE id = $1 AND user_id = $2 ON CONFLICT (workspace_id, slug) DO NOTHING";

static const char make_settings[] =
    "INSERT INTO agent_settings (agent_id) SELECT id FROM agents WHERE workspace_id = $1 "
    "ON CONFLICT DO NOTHING";

static const char make_swarm[] =
    "INSERT INTO conversations (id, workspace_id, type, title) "
    "SELECT $3, id, 'swarm', 'My Swarm' FROM workspaces WHERE id = $1 AND user_id = $2 "
    "AND NOT EXISTS (SELECT FROM conversations WHERE workspace_id = $1)";

static const char make_conversation[] =
    "INSERT INTO conversations (id, workspace_id, agent_id, type, title) "
    "SELECT $3, workspace_id, id, 'agent', name FROM agents WHERE workspace_id = $1 "
    "AND slug = $2 AND NOT EXISTS (SELECT FROM conversations WHERE workspace_id = $1 "
    "AND agent_id = agents.id)";

static const char make_quota[] =
    "INSERT INTO usage_quotas (id, user_id) SELECT $1, $2 "
    "WHERE NOT EXISTS (SELECT FROM usage_quotas WHERE user_id = $2) ON CONFLICT DO NOTHING";

/* Two first uses at once, one after the other. */
static const char lock_workspace[] =
    "SELECT pg_advisory_xact_lock(hashtextextended($1, 4261874))";

static struct postgres_value id_value(struct uuid *id) {
    *id = uuid_new();
    return postgres_text(uuid_str(id));
}

static void add_seeds(struct query *query, struct str workspace, struct str user) {
    struct uuid id;
    const struct postgres_value in = postgres_text(workspace), of = postgres_text(user);
    QUERY_STEP(query, lock_workspace, in);
    QUERY_STEP(query, make_workspace, in, of);
    for (size_t i = 0; i < ARRAY_LEN(seeds); i++)
        QUERY_STEP(query, make_agent, in, of, id_value(&id), postgres_text(seeds[i].name),
                   postgres_text(seeds[i].role), postgres_text(seeds[i].slug),
                   postgres_text(seeds[i].description), postgres_text(seeds[i].prompt),
                   postgres_int((int64_t)i));
    QUERY_STEP(query, make_settings, in);
    QUERY_STEP(query, make_swarm, in, of, id_value(&id));
    for (size_t i = 1; i < ARRAY_LEN(seeds); i++)
        QUERY_STEP(query, make_conversation, in, postgres_text(seeds[i].slug), id_value(&id));
    QUERY_STEP(query, make_quota, id_value(&id), of);
}

/* --- reading ------------------------------------------------------------------------------------ */

struct search {
    struct queries *database;
    struct text user, id, conversation;
    bool make, reads, proved;
    workspace_fn *done;
    void *ctx;
};

static void search_end(struct search *search, struct workspace *found,
                       const struct err *failed) {
    workspace_fn *done = search->done;
    void *ctx = search->ctx;
    text_done(&search->user);
    text_done(&search->id);
    text_done(&search->conversation);
    free(search);
    done(found, failed, ctx);
}

static void search_fail(struct search *search, const char *what) {
    struct err e;
    err_set(&e, ERR_NOT_FOUND, "%s not found", what);
    search_end(search, NULL, &e);
}

static struct str copy(struct workspace *workspace, struct str text) {
    struct str own;
    return arena_str(workspace->arena, text, &own) ? own : STR_EMPTY;
}

static struct str content(struct workspace *workspace, struct postgres_rows rows, size_t row,
                          size_t column) {
    return copy(workspace, postgres_content(rows, row, column));
}

static void workspace_read_agents(struct workspace *workspace, struct postgres_rows rows) {
    workspace->agents =
        arena_alloc(workspace->arena, (rows.count + 1) * sizeof(struct turn_agent));
    workspace->agent_count = workspace->agents ? rows.count : 0;
    for (size_t i = 0; i < workspace->agent_count; i++)
        workspace->agents[i] = (struct turn_agent){
            .id = content(workspace, rows, i, 0),
            .workspace = workspace->id,
            .name = content(workspace, rows, i, 1),
            .role = content(workspace, rows, i, 2),
            .slug = content(workspace, rows, i, 3),
            .avatar = content(workspace, rows, i, 4),
            .description = content(workspace, rows, i, 5),
            .created_us = postgres_number(rows, i, 6),
            .updated_us = postgres_number(rows, i, 7),
        };
}

static struct workspace *read_workspace(const struct search *search,
                                        const struct postgres_request *rows) {
    struct workspace *workspace = MEM_NEW(struct workspace);
    struct postgres_rows conversation = postgres_rows(rows, 1);
    workspace->refs = 1;
    workspace->arena = arena_new(ARENA_MAX_BYTES);
    workspace->id = copy(workspace, text_str(search->id));
    workspace->user = copy(workspace, text_str(search->user));
    workspace_read_agents(workspace, postgres_rows(rows, 2));
    if (conversation.count) {
        workspace->conversation = content(workspace, conversation, 0, 0);
        workspace->swarm = str_equal(postgres_content(conversation, 0, 1), STR("swarm"));
        workspace->agent = content(workspace, conversation, 0, 2);
        workspace->title = content(workspace, conversation, 0, 3);
    }
    return workspace;
}

static void find(struct search *search);

static void workspace_on_made(const struct postgres_request *rows, const struct err *failed,
                              void *ctx) {
    struct search *search = ctx;
    (void)rows;
    if (failed)
        search_end(search, NULL, failed);
    else
        find(search);
}

static void make(struct search *search) {
    struct query *query = query_new();
    search->make = false;
    add_seeds(query, text_str(search->id), text_str(search->user));
    query_ask(query, search->database, QUERY_REPEATABLE, workspace_on_made, search);
}

static void workspace_on_found(const struct postgres_request *rows, const struct err *failed,
                               void *ctx) {
    struct search *search = ctx;
    if (failed) {
        search_end(search, NULL, failed);
        return;
    }
    struct postgres_rows owner = postgres_rows(rows, 0);
    if (owner.count == 0 && search->make)
        make(search);
    else if (owner.count == 0 ||
             !str_equal(postgres_content(owner, 0, 0), text_str(search->user)))
        search_fail(search, "workspace");
    else if (search->conversation.len && postgres_rows(rows, 1).count == 0)
        search_fail(search, "conversation");
    else
        search_end(search, read_workspace(search, rows), NULL);
}

static void find(struct search *search) {
    struct query *query = query_new();
    const struct postgres_value id = postgres_text(text_str(search->id));
    QUERY_STEP(query, find_workspace, id);
    QUERY_STEP(query, find_conversation, postgres_text(text_str(search->conversation)), id);
    QUERY_STEP(query, find_agents, id);
    const struct read_owner owner = {search->proved ? text_str(search->id) : STR_EMPTY,
                                     text_str(search->user)};
    if (search->reads)
        readers_ask(search->database->readers, &owner, query, workspace_on_found, search);
    else
        query_ask(query, search->database, QUERY_REPEATABLE, workspace_on_found, search);
}

void workspace_find(struct queries *database, const struct workspace_question *question,
                    workspace_fn *done, void *ctx) {
    struct search *search = MEM_NEW(struct search);
    *search = (struct search){.database = database,
                              .user = text_copy(question->user),
                              .id = text_copy(question->id),
                              .conversation = text_copy(question->conversation),
                              .make = question->make,
                              .proved = question->make,
                              .reads = question->reads,
                              .done = done,
                              .ctx = ctx};
    find(search);
}

/* --- references ------------------------------------------------------------------------------- */

struct workspace *workspace_ref(struct workspace *workspace) {
    workspace->refs++;
    return workspace;
}

void workspace_unref(struct workspace *workspace) {
    if (!workspace || --workspace->refs) return;
    arena_free(workspace->arena);
    free(workspace);
}

size_t workspace_manager(const struct workspace *workspace) {
    for (size_t i = 0; i < workspace->agent_count; i++) {
        if (str_equal(workspace->agents[i].role, STR("manager"))) return i;
    }
    return workspace->agent_count;
}

size_t workspace_agent(const struct workspace *workspace, struct str id) {
    for (size_t i = 0; i < workspace->agent_count; i++) {
        if (str_equal(workspace->agents[i].id, id)) return i;
    }
    return workspace->agent_count;
}

size_t workspace_agent_named(const struct workspace *workspace, struct str slug) {
    for (size_t i = 0; i < workspace->agent_count; i++) {
        if (str_equal(workspace->agents[i].slug, slug)) return i;
    }
    return workspace->agent_count;
}
