#include "daemon/team_tools.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "tool/catalogue.h"
#include "tool/scripted.h"
#include "wire/yaml.h"

static struct tool *find_tool(const struct team *team, struct str name) {
    for (size_t i = 0; i < team->tool_count; i++) {
        if (str_equal(team->tools[i]->name, name)) return team->tools[i];
    }
    return NULL;
}

/* --- names -------------------------------------------------------------------------------- */

static bool refuse_name(const struct team *team, const struct config_agent_tool *wanted,
                        struct err *e) {
    struct nearest nearest;
    char hint[NEAREST_HINT_BYTES];
    size_t row_count;
    const struct catalogue_row *rows = catalogue_rows(&row_count);
    nearest_init(&nearest, wanted->name);
    for (size_t i = 0; i < team->tool_count; i++) nearest_offer(&nearest, team->tools[i]->name);
    for (size_t i = 0; i < row_count; i++) nearest_offer(&nearest, rows[i].name);
    nearest_hint(&nearest, hint);
    return yaml_err(e, wanted->at, "no tool is called '" STR_FMT "'%s", STR_ARG(wanted->name),
                    nearest.found.len ? hint : "; weir tool list shows them");
}

static bool is_off(const struct config *config, struct str name) {
    for (size_t i = 0; i < config->tools.off_count; i++) {
        if (str_equal(config->tools.off[i].name, name)) return true;
    }
    return false;
}

static bool check_off(const struct team *team, const struct config *config, struct err *e) {
    for (size_t i = 0; i < config->tools.off_count; i++) {
        const struct config_agent_tool *off = &config->tools.off[i];
        if (!find_tool(team, off->name) && !catalogue_find(off->name))
            return refuse_name(team, off, e);
    }
    return true;
}

/* --- making ------------------------------------------------------------------------------- */

static void make_script_tools(struct team *team) {
    const struct script *script = team->script;
    for (size_t i = 0; script && i < script->tool_count; i++)
        team->tools[team->tool_count++] = scripted_tool_new(&script->tools[i]);
}

/* A tool that an agent could go without is told of once, where it is missing. */
static bool make_named(struct team *team, const struct catalogue_options *options,
                       const struct config_agent_tool *wanted, struct err *e) {
    struct err why;
    if (find_tool(team, wanted->name)) return true;
    const struct catalogue_row *row = catalogue_find(wanted->name);
    if (!row) {
        if (!wanted->optional) return refuse_name(team, wanted, e);
        log_warning("the agent goes without the tool '" STR_FMT "': there is none here",
                    STR_ARG(wanted->name));
        return true;
    }
    if (row->asks && !team->own_pool && !http_pool_need(options->pool, e)) return false;
    if (catalogue_make(wanted->name, options, &team->tools[team->tool_count], &why)) {
        team->tool_count++;
        return true;
    }
    if (!wanted->optional) return yaml_err(e, wanted->at, "%s", why.text);
    log_warning("the agent goes without the tool '" STR_FMT "': %s", STR_ARG(wanted->name),
                why.text);
    return true;
}

static size_t count_named(const struct config *config) {
    size_t count = 0;
    for (size_t i = 0; i < config->agent_count; i++) count += config->agents[i].tool_count;
    return count;
}

bool team_make_tools(struct team *team, const struct config *config,
                     const struct team_means *means, struct err *e) {
    size_t script_count = team->script ? team->script->tool_count : 0;
    const struct catalogue_options options = {
        .pool = means->pool,
        .store = means->store,
        .only_looked_at = team->own_pool != NULL,
        .search = {.pool = means->pool,
                   .backend = config->tools.web_search.backend,
                   .base_url = config->tools.web_search.url,
                   .key = config->tools.web_search.key},
        .file_root = config->tools.files.root};
    team->tools = mem_zero(script_count + count_named(config) + 1, sizeof(struct tool *));
    make_script_tools(team);
    if (!check_off(team, config, e)) return false;
    for (size_t i = 0; i < config->agent_count; i++) {
        const struct config_agent *agent = &config->agents[i];
        for (size_t t = 0; t < agent->tool_count; t++) {
            if (is_off(config, agent->tools[t].name)) continue;
            if (!make_named(team, &options, &agent->tools[t], e)) return false;
        }
    }
    return true;
}

/* --- picking ------------------------------------------------------------------------------ */

static const enum tool_policy policies[] = {[CONFIG_TOOL_ALLOW] = TOOL_ALLOW,
                                            [CONFIG_TOOL_ASK] = TOOL_ASK,
                                            [CONFIG_TOOL_HIDDEN] = TOOL_HIDDEN};

void team_pick_tools(const struct team *team, const struct config *config,
                     const struct config_agent *from, struct agent *ret) {
    size_t script_count = team->script ? team->script->tool_count : 0;
    size_t count = from->all_tools ? script_count : from->tool_count;
    struct agent_tool *tools = mem_zero(count, sizeof(struct agent_tool));
    ret->tools = tools;
    ret->picks_tools = true;
    for (size_t i = 0; i < count; i++) {
        struct agent_tool tool =
            from->all_tools
                ? (struct agent_tool){team->tools[i]->name, TOOL_ALLOW}
                : (struct agent_tool){from->tools[i].name, policies[from->tools[i].policy]};
        bool there = find_tool(team, tool.name) && !is_off(config, tool.name);
        if (there) tools[ret->tool_count++] = tool;
    }
}
