#include "contract/crawbl/house.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "contract/crawbl/blueprint.h"
#include "contract/crawbl/crew.h"
#include "contract/crawbl/errand.h"

#include <assert.h>
#include <stdlib.h>

/* What is known of one workspace. */
struct known {
    struct list link; /* the last one asked for is the first */
    struct house *house;
    char *workspace;
    struct mcp_client *client;
    struct engine *engine;       /* a reference; NULL: nothing came yet, or it is too old */
    struct buf blueprint;        /* the last good one; empty: none */
    struct mcp_listing *tools;   /* likewise, or NULL */
    bool tried;                  /* an errand came back, with whatever */
    bool no_blueprint, no_tools; /* what was logged */
    uint64_t due_ms;             /* when to ask again */
    uint64_t good_ms;            /* when something came */
    struct errand *errand;       /* NULL: no fetch is running */
    struct list waiting;         /* asks */
};

struct house {
    struct loop *loop;
    struct http_pool *pool;
    struct engine *base; /* a reference; NULL: not in use yet */
    struct house_settings settings;
    struct map *by_workspace;
    struct list known;
};

/* --- whoever waits ------------------------------------------------------------------------ */

static void answer_all(struct list *waiting, struct engine *engine) {
    struct list asks, *link;
    list_init(&asks);
    list_move(waiting, &asks);
    engine_ref(engine);
    while ((link = list_pop(&asks))) {
        struct house_ask *ask = CONTAINER_OF(link, struct house_ask, link);
        ask->waits = false;
        ask->answer(engine, ask->ctx);
    }
    engine_unref(engine);
}

void house_leave(struct house_ask *ask) {
    if (!ask->waits) return;
    ask->waits = false;
    list_remove(&ask->link);
}

/* --- what is known ------------------------------------------------------------------------ */

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
    map_remove(known->house->by_workspace, str_from(known->workspace));
    errand_free(known->errand);
    forget_engine(known);
    buf_done(&known->blueprint);
    mcp_client_unref(known->client);
    free(known->workspace);
    free(known);
}

static bool authorize(const struct mcp_caller *caller, struct buf *out, void *ctx,
                      struct err *e) {
    return errand_authorize(ctx, caller, out, e);
}

static struct known *known_new(struct house *house, struct str workspace) {
    struct known *known = MEM_NEW(struct known);
    known->house = house;
    known->workspace = str_dup(workspace);
    known->client =
        mcp_client_new(&(struct mcp_options){.pool = house->pool,
                                             .loop = house->loop,
                                             .endpoint = house->settings.endpoint,
                                             .authorize = authorize,
                                             .ctx = (void *)(uintptr_t)house->settings.keys});
    buf_init(&known->blueprint, BLUEPRINT_MAX_BYTES);
    list_init(&known->waiting);
    list_prepend(&house->known, &known->link);
    map_put(house->by_workspace, workspace, known);
    return known;
}

/* The one that rested longest makes room. */
static void make_room(struct house *house) {
    if (map_count(house->by_workspace) < HOUSE_WORKSPACES_MAX) return;
    for (struct list *link = house->known.prev; link != &house->known; link = link->prev) {
        struct known *known = CONTAINER_OF(link, struct known, link);
        if (known->errand) continue;
        free_known(known);
        return;
    }
}

static struct known *known_get(struct house *house, struct str workspace) {
    struct known *known = map_find(house->by_workspace, workspace);
    if (!known) {
        make_room(house);
        return known_new(house, workspace);
    }
    list_remove(&known->link);
    list_prepend(&house->known, &known->link);
    return known;
}

/* --- what an errand brings ---------------------------------------------------------------- */

/* Once when it stops working, once when it works again. */
static void note(const struct known *known, bool *noted, const struct err *failed,
                 const char *what, const char *instead) {
    bool fails = failed->code != ERR_NONE;
    if (fails && !*noted)
        log_often(LOG_WARNING, "workspace %s: no %s: %s; %s", known->workspace, what,
                  failed->text, instead);
    if (!fails && *noted) log_often(LOG_INFO, "workspace %s: %s again", known->workspace, what);
    *noted = fails;
}

/* True: something is different from before. */
static bool take_blueprint(struct known *known, struct errand *errand) {
    bool wanted = known->house->settings.blueprint;
    if (!wanted) return false;
    note(known, &known->no_blueprint, &errand->blueprint_failed, "blueprint",
         known->blueprint.len ? "the last good one stays" : "the configured agents serve it");
    if (errand->blueprint_failed.code != ERR_NONE) return false;
    if (str_equal(buf_str(&errand->blueprint), buf_str(&known->blueprint))) return false;
    buf_clear(&known->blueprint);
    buf_append(&known->blueprint, buf_str(&errand->blueprint));
    return true;
}

static bool take_tools(struct known *known, struct errand *errand) {
    note(known, &known->no_tools, &errand->tools_failed, "list of MCP tools",
         known->tools ? "the last good one stays" : "it has the local tools");
    if (errand->tools_failed.code != ERR_NONE) return false;
    bool same = mcp_listing_same(known->tools, errand->tools);
    mcp_listing_free(known->tools);
    known->tools = errand->tools;
    errand->tools = NULL;
    return !same;
}

static void make_engine(struct known *known) {
    engine_unref(known->engine);
    known->engine = crew_new(&(struct crew_parts){.base = known->house->base,
                                                  .workspace = str_from(known->workspace),
                                                  .blueprint = buf_str(&known->blueprint),
                                                  .tools = known->tools,
                                                  .client = known->client});
}

static struct engine *engine_for(const struct known *known) {
    return known->engine ? known->engine : known->house->base;
}

static void on_back(struct errand *errand, void *ctx) {
    struct known *known = ctx;
    uint64_t now_ms = loop_now_ms(known->house->loop);
    bool blueprint_good = errand->blueprint_failed.code == ERR_NONE;
    bool tools_good = errand->tools_failed.code == ERR_NONE;
    bool agents_changed = take_blueprint(known, errand);
    bool tools_changed = take_tools(known, errand);
    if (agents_changed || tools_changed) make_engine(known);
    /* How old the agents are counts; without a blueprint, the tools. */
    if (known->blueprint.len ? blueprint_good : tools_good) known->good_ms = now_ms;
    known->due_ms = now_ms + (blueprint_good && tools_good ? HOUSE_FRESH_MS : HOUSE_RETRY_MS);
    known->tried = true;
    known->errand = NULL;
    errand_free(errand);
    answer_all(&known->waiting, engine_for(known));
}

static void send_errand(struct known *known, const struct mcp_caller *caller) {
    const struct house *house = known->house;
    known->errand = errand_new(&(struct errand_options){.pool = house->pool,
                                                        .loop = house->loop,
                                                        .endpoint = house->settings.endpoint,
                                                        .keys = house->settings.keys,
                                                        .blueprint = house->settings.blueprint,
                                                        .client = known->client,
                                                        .caller = *caller,
                                                        .total_ms = HOUSE_PATIENCE_MS,
                                                        .back = on_back,
                                                        .ctx = known});
}

/* --- the public story --------------------------------------------------------------------- */

struct house *house_new(struct loop *loop, struct http_pool *pool) {
    struct house *house = MEM_NEW(struct house);
    house->loop = loop;
    house->pool = pool;
    house->by_workspace = map_new();
    list_init(&house->known);
    return house;
}

/* Collect the waiting asks first, because an answer may ask again. */
static void forget_all(struct house *house, struct list *ret_waiting) {
    LIST_EACH(&house->known, link) {
        struct known *known = CONTAINER_OF(link, struct known, link);
        list_move(&known->waiting, ret_waiting);
        free_known(known);
    }
}

void house_use(struct house *house, struct engine *base,
               const struct house_settings *settings) {
    struct engine *before = house->base;
    struct list waiting;
    list_init(&waiting);
    forget_all(house, &waiting);
    house->base = engine_ref(base);
    house->settings = *settings;
    answer_all(&waiting, base);
    engine_unref(before);
}

void house_free(struct house *house) {
    struct list waiting;
    if (!house) return;
    list_init(&waiting);
    forget_all(house, &waiting);
    assert(list_empty(&waiting));
    engine_unref(house->base);
    map_free(house->by_workspace);
    free(house);
}

static void forget_if_too_old(struct known *known) {
    uint64_t now_ms = loop_now_ms(known->house->loop);
    if (!known->engine || now_ms - known->good_ms < HOUSE_STALE_MS) return;
    forget_engine(known);
}

struct engine *house_find(struct house *house, const struct mcp_caller *caller,
                          struct house_ask *ask, house_answer_fn *answer, void *ctx) {
    const struct house_settings *settings = &house->settings;
    if (!settings->endpoint.len || !settings->keys) return house->base;
    struct known *known = known_get(house, caller->workspace);
    forget_if_too_old(known);
    if (!known->errand && (!known->tried || loop_now_ms(house->loop) >= known->due_ms))
        send_errand(known, caller);
    if (known->tried) return engine_for(known);
    *ask = (struct house_ask){.waits = true, .answer = answer, .ctx = ctx};
    list_append(&known->waiting, &ask->link);
    return NULL;
}
