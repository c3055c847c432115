#include "contract/crawbl/workspace_agents.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "contract/crawbl/blueprint.h"
#include "contract/crawbl/workspace_engine.h"
#include "contract/crawbl/workspace_fetch.h"

#include <assert.h>
#include <stdlib.h>

/* What is known of one workspace. */
struct known {
    struct list link; /* most recently used first */
    struct workspace_agents *workspace_agents;
    char *workspace;
    struct mcp_client *client;
    struct engine *engine;         /* a reference; NULL: nothing fetched yet, or too old */
    struct buf blueprint;          /* the last valid one; empty: none */
    struct mcp_listing *tools;     /* the last valid list, or NULL */
    bool tried;                    /* a fetch has ended, well or not */
    bool no_blueprint, no_tools;   /* failures that were logged */
    uint64_t due_ms;               /* when to fetch again */
    uint64_t good_ms;              /* the last successful fetch */
    struct workspace_fetch *fetch; /* NULL: no fetch is running */
    struct list waiting;           /* requests that wait for a fetch */
};

struct workspace_agents {
    struct loop *loop;
    struct http_pool *pool;
    struct engine *base; /* a reference; NULL: not in use yet */
    struct workspace_agents_settings settings;
    struct map *by_workspace;
    struct list known;
};

/* --- waiting turns ------------------------------------------------------------------------ */

static void answer_all(struct list *waiting, struct engine *engine) {
    struct list asks, *link;
    list_init(&asks);
    list_move(waiting, &asks);
    engine_ref(engine);
    while ((link = list_pop(&asks))) {
        struct workspace_agents_ask *ask =
            CONTAINER_OF(link, struct workspace_agents_ask, link);
        ask->waits = false;
        ask->answer(engine, ask->ctx);
    }
    engine_unref(engine);
}

void workspace_agents_leave(struct workspace_agents_ask *ask) {
    if (!ask->waits) return;
    ask->waits = false;
    list_remove(&ask->link);
}

/* --- the known parts ---------------------------------------------------------------------- */

static void forget_engine(struct known *known) {
    engine_unref(known->engine);
    known->engine = NULL;
    buf_release(&known->blueprint);
    mcp_listing_free(known->tools);
    known->tools = NULL;
}

static void free_known(struct known *known) {
    assert(list_empty(&known->waiting));
    list_remove(&known->link);
    map_remove(known->workspace_agents->by_workspace, str_from(known->workspace));
    workspace_fetch_free(known->fetch);
    forget_engine(known);
    buf_done(&known->blueprint);
    mcp_client_unref(known->client);
    free(known->workspace);
    free(known);
}

static bool authorize(const struct mcp_caller *caller, struct buf *out, void *ctx,
                      struct err *e) {
    return workspace_fetch_authorize(ctx, caller, out, e);
}

static struct known *known_new(struct workspace_agents *workspace_agents,
                               struct str workspace) {
    struct known *known = MEM_NEW(struct known);
    known->workspace_agents = workspace_agents;
    known->workspace = str_dup(workspace);
    known->client = mcp_client_new(
        &(struct mcp_options){.pool = workspace_agents->pool,
                              .loop = workspace_agents->loop,
                              .endpoint = workspace_agents->settings.endpoint,
                              .conversation_header = STR("x-conversation-id"),
                              .authorize = authorize,
                              .ctx = (void *)(uintptr_t)workspace_agents->settings.keys});
    buf_init(&known->blueprint, BLUEPRINT_MAX_BYTES);
    list_init(&known->waiting);
    list_prepend(&workspace_agents->known, &known->link);
    map_put(workspace_agents->by_workspace, workspace, known);
    return known;
}

/* At the limit, forget the least recently used workspace without a running fetch. */
static void workspace_agents_make_room(struct workspace_agents *workspace_agents) {
    if (map_count(workspace_agents->by_workspace) < WORKSPACE_AGENTS_MAX) return;
    for (struct list *link = workspace_agents->known.prev; link != &workspace_agents->known;
         link = link->prev) {
        struct known *known = CONTAINER_OF(link, struct known, link);
        if (known->fetch) continue;
        free_known(known);
        return;
    }
}

static struct known *known_get(struct workspace_agents *workspace_agents,
                               struct str workspace) {
    struct known *known = map_find(workspace_agents->by_workspace, workspace);
    if (!known) {
        workspace_agents_make_room(workspace_agents);
        return known_new(workspace_agents, workspace);
    }
    list_remove(&known->link);
    list_prepend(&workspace_agents->known, &known->link);
    return known;
}

/* --- fetched parts ------------------------------------------------------------------------ */

/* Log once when it stops working and once when it works again. */
static void note(const struct known *known, bool *noted, const struct err *failed,
                 const char *what, const char *instead) {
    bool fails = failed->code != ERR_NONE;
    if (fails && !*noted)
        log_often(LOG_WARNING, "workspace %s: no %s: %s; %s", known->workspace, what,
                  failed->text, instead);
    if (!fails && *noted) log_often(LOG_INFO, "workspace %s: %s again", known->workspace, what);
    *noted = fails;
}

/* True: the blueprint has changed. */
static bool take_blueprint(struct known *known, struct workspace_fetch *fetch) {
    bool wanted = known->workspace_agents->settings.blueprint;
    if (!wanted) return false;
    note(known, &known->no_blueprint, &fetch->blueprint_failed, "blueprint",
         known->blueprint.len ? "the last good one stays" : "the configured agents serve it");
    if (fetch->blueprint_failed.code != ERR_NONE) return false;
    if (str_equal(buf_str(&fetch->blueprint), buf_str(&known->blueprint))) return false;
    buf_clear(&known->blueprint);
    buf_append(&known->blueprint, buf_str(&fetch->blueprint));
    return true;
}

static bool take_tools(struct known *known, struct workspace_fetch *fetch) {
    note(known, &known->no_tools, &fetch->tools_failed, "list of MCP tools",
         known->tools ? "the last good one stays" : "it has the local tools");
    if (fetch->tools_failed.code != ERR_NONE) return false;
    bool same = mcp_listing_same(known->tools, fetch->tools);
    mcp_listing_free(known->tools);
    known->tools = fetch->tools;
    fetch->tools = NULL;
    return !same;
}

static void make_engine(struct known *known) {
    engine_unref(known->engine);
    known->engine = workspace_engine_new(
        &(struct workspace_engine_parts){.base = known->workspace_agents->base,
                                         .workspace = str_from(known->workspace),
                                         .blueprint = buf_str(&known->blueprint),
                                         .tools = known->tools,
                                         .client = known->client});
}

static struct engine *engine_for(const struct known *known) {
    return known->engine ? known->engine : known->workspace_agents->base;
}

static void on_back(struct workspace_fetch *fetch, void *ctx) {
    struct known *known = ctx;
    uint64_t now_ms = loop_now_ms(known->workspace_agents->loop);
    bool blueprint_good = fetch->blueprint_failed.code == ERR_NONE;
    bool tools_good = fetch->tools_failed.code == ERR_NONE;
    bool agents_changed = take_blueprint(known, fetch);
    bool tools_changed = take_tools(known, fetch);
    if (agents_changed || tools_changed) make_engine(known);
    /* The age is that of the blueprint, or of the tools if there is no blueprint. */
    if (known->blueprint.len ? blueprint_good : tools_good) known->good_ms = now_ms;
    known->due_ms = now_ms + (blueprint_good && tools_good ? WORKSPACE_AGENTS_FRESH_MS
                                                           : WORKSPACE_AGENTS_RETRY_MS);
    known->tried = true;
    known->fetch = NULL;
    workspace_fetch_free(fetch);
    answer_all(&known->waiting, engine_for(known));
}

static void send_fetch(struct known *known, const struct mcp_caller *caller) {
    const struct workspace_agents *workspace_agents = known->workspace_agents;
    known->fetch = workspace_fetch_new(
        &(struct workspace_fetch_options){.pool = workspace_agents->pool,
                                          .loop = workspace_agents->loop,
                                          .endpoint = workspace_agents->settings.endpoint,
                                          .keys = workspace_agents->settings.keys,
                                          .blueprint = workspace_agents->settings.blueprint,
                                          .client = known->client,
                                          .caller = *caller,
                                          .total_ms = WORKSPACE_AGENTS_PATIENCE_MS,
                                          .back = on_back,
                                          .ctx = known});
}

/* --- public functions --------------------------------------------------------------------- */

struct workspace_agents *workspace_agents_new(struct loop *loop, struct http_pool *pool) {
    struct workspace_agents *workspace_agents = MEM_NEW(struct workspace_agents);
    workspace_agents->loop = loop;
    workspace_agents->pool = pool;
    workspace_agents->by_workspace = map_new();
    list_init(&workspace_agents->known);
    return workspace_agents;
}

/* Collect the waiting requests first, because an answer may start another one. */
static void forget_all(struct workspace_agents *workspace_agents, struct list *ret_waiting) {
    LIST_EACH(&workspace_agents->known, link) {
        struct known *known = CONTAINER_OF(link, struct known, link);
        list_move(&known->waiting, ret_waiting);
        free_known(known);
    }
}

void workspace_agents_use(struct workspace_agents *workspace_agents, struct engine *base,
                          const struct workspace_agents_settings *settings) {
    struct engine *before = workspace_agents->base;
    struct list waiting;
    list_init(&waiting);
    forget_all(workspace_agents, &waiting);
    workspace_agents->base = engine_ref(base);
    workspace_agents->settings = *settings;
    answer_all(&waiting, base);
    engine_unref(before);
}

void workspace_agents_free(struct workspace_agents *workspace_agents) {
    struct list waiting;
    if (!workspace_agents) return;
    list_init(&waiting);
    forget_all(workspace_agents, &waiting);
    assert(list_empty(&waiting));
    engine_unref(workspace_agents->base);
    map_free(workspace_agents->by_workspace);
    free(workspace_agents);
}

static void forget_if_too_old(struct known *known) {
    uint64_t now_ms = loop_now_ms(known->workspace_agents->loop);
    if (!known->engine || now_ms - known->good_ms < WORKSPACE_AGENTS_STALE_MS) return;
    forget_engine(known);
}

struct engine *workspace_agents_find(struct workspace_agents *workspace_agents,
                                     const struct mcp_caller *caller,
                                     struct workspace_agents_ask *ask,
                                     workspace_agents_fn *answer, void *ctx) {
    const struct workspace_agents_settings *settings = &workspace_agents->settings;
    if (!settings->endpoint.len || !settings->keys) return workspace_agents->base;
    struct known *known = known_get(workspace_agents, caller->workspace);
    forget_if_too_old(known);
    if (!known->fetch &&
        (!known->tried || loop_now_ms(workspace_agents->loop) >= known->due_ms))
        send_fetch(known, caller);
    if (known->tried) return engine_for(known);
    *ask = (struct workspace_agents_ask){.waits = true, .answer = answer, .ctx = ctx};
    list_append(&known->waiting, &ask->link);
    return NULL;
}
