#include "daemon/team_view.h"

#include "base/mem.h"
#include "daemon/team_own_tools.h"
#include "daemon/team_tools.h"
#include "tool/catalogue.h"

/* --- where it comes from ------------------------------------------------------------------ */

static void name_source(const struct team *team, struct team_tool_view *view) {
    const struct config_own_tool *own = team_own_tool(team, view->name);
    const struct team_mcp_tool *mcp = team_mcp_tool_find(team, view->name);
    view->from = catalogue_find(view->name) ? "builtin" : "script";
    if (own) view->from = own->url.len ? "http" : "command";
    if (!mcp) return;
    view->from = "mcp";
    view->server = mcp->from->name;
}

/* --- what there is ------------------------------------------------------------------------ */

/* Of the agents that may have it. */
static enum tool_policy said_policy(const struct team *team, struct str name) {
    const struct team_mcp_tool *mcp = team_mcp_tool_find(team, name);
    const struct catalogue_row *row = catalogue_find(name);
    enum tool_policy policy = mcp ? mcp->policy : row && row->guarded ? TOOL_ASK : TOOL_ALLOW;
    for (size_t i = 0; i < team->policy_count; i++) {
        if (str_equal(team->policies[i].name, name)) policy = team->policies[i].policy;
    }
    return policy == TOOL_ALLOW && mcp && mcp->changed ? TOOL_ASK : policy;
}

static void view_tool(const struct team *team, const struct engine *engine,
                      const struct agent *agent, const struct tool *tool,
                      struct team_tool_view *ret) {
    bool own;
    *ret = (struct team_tool_view){.name = tool->name,
                                   .description = tool->description,
                                   .parameters = tool->parameters,
                                   .timeout_ms = engine_tool_timeout(engine, tool, &own),
                                   .idempotent = tool->idempotent};
    ret->policy = agent ? agent_tool_policy(agent, tool->name) : said_policy(team, tool->name);
    name_source(team, ret);
}

static bool is_seen(const struct team_tool_view *seen, size_t count, struct str name) {
    for (size_t i = 0; i < count; i++) {
        if (str_equal(seen[i].name, name)) return true;
    }
    return false;
}

/* A row of the catalogue of which no tool was made. */
static void view_row(const struct team *team, const struct catalogue_row *row,
                     struct team_tool_view *ret) {
    *ret = (struct team_tool_view){.name = row->name,
                                   .description = row->summary,
                                   .parameters = STR_EMPTY,
                                   .from = "builtin",
                                   .policy = said_policy(team, row->name),
                                   .idempotent = row->idempotent};
}

static void view_missing(const struct agent_tool *wanted, struct team_tool_view *ret) {
    *ret = (struct team_tool_view){.name = wanted->name,
                                   .description = STR("there is no such tool now"),
                                   .parameters = STR_EMPTY,
                                   .from = "nowhere",
                                   .policy = wanted->policy,
                                   .missing = true};
}

size_t team_view(const struct team *team, const struct config *config,
                 const struct agent *agent, struct team_tool_view **ret) {
    struct engine engine = {.limits = config->limits.run};
    size_t row_count, count = 0;
    const struct catalogue_row *rows = catalogue_rows(&row_count);
    size_t more = agent ? agent->tool_count : row_count;
    struct team_tool_view *views = mem_zero(team->tool_count + more + 1, sizeof(*views));
    team_fill(team, &engine);
    for (size_t i = 0; i < team->tool_count; i++) {
        view_tool(team, &engine, agent, team->tools[i], &views[count]);
        if (!agent || views[count].policy != TOOL_HIDDEN) count++;
    }
    for (size_t i = 0; agent && agent->picks_tools && i < agent->tool_count; i++) {
        const struct agent_tool *wanted = &agent->tools[i];
        if (wanted->policy != TOOL_HIDDEN && !is_seen(views, count, wanted->name))
            view_missing(wanted, &views[count++]);
    }
    for (size_t i = 0; !agent && i < row_count; i++) {
        if (!is_seen(views, count, rows[i].name)) view_row(team, &rows[i], &views[count++]);
    }
    *ret = views;
    return count;
}

/* --- one by itself ------------------------------------------------------------------------ */

bool team_tool_new(const struct config *config, struct str name, struct http_pool *pool,
                   struct tool **ret, struct err *e) {
    const struct catalogue_row *row = catalogue_find(name);
    for (size_t i = 0; i < config->tools.own_count; i++) {
        const struct config_own_tool *own = &config->tools.own[i];
        if (!str_equal(own->name, name)) continue;
        return (!own->url.len || http_pool_need(pool, e)) &&
               team_own_tool_new(own, pool, ret, e);
    }
    if (!row) return err_set(e, ERR_NOT_FOUND, "no tool '" STR_FMT "'", STR_ARG(name));
    struct catalogue_options options =
        team_catalogue_options(config, &(struct team_resources){.pool = pool});
    return (!row->asks || http_pool_need(pool, e)) && catalogue_make(name, &options, ret, e);
}
