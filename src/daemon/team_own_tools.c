#include "daemon/team_own_tools.h"

#include "base/mem.h"
#include "daemon/team_agent.h"
#include "loop/child.h"
#include "tool/command.h"
#include "wire/yaml.h"

#include <stdlib.h>

#define COMMAND_MS (60 * 1000)
#define REQUEST_MS (30 * 1000)

/* --- one tool ----------------------------------------------------------------------------- */

static struct str team_own_tools_path_of(const struct config_own_tool *from) {
    for (size_t i = 0; i < from->environment_count; i++) {
        if (str_starts(from->environment[i], STR("PATH=")))
            return str_skip(from->environment[i], 5);
    }
    return STR_EMPTY;
}

static bool make_command(const struct config_own_tool *from, struct tool **ret, struct err *e) {
    struct buf path;
    buf_init(&path, 64 * KIB);
    if (!child_find(from->command[0], team_own_tools_path_of(from), &path)) {
        buf_done(&path);
        return yaml_err(e, yaml_find(from->at, STR("command")),
                        "there is no program '" STR_FMT "'",
                        STR_ARG(str_head(from->command[0], 200)));
    }
    const char **args = team_texts(from->command, from->command_count);
    const char **environment = team_texts(from->environment, from->environment_count);
    struct command_options options = {.name = from->name,
                                      .description = from->description,
                                      .parameters = from->parameters,
                                      .path = path.at,
                                      .args = args,
                                      .environment = environment,
                                      .output_max_bytes = from->output_bytes,
                                      .at_once = from->at_once,
                                      .timeout_ms = COMMAND_MS,
                                      .idempotent = from->idempotent == CONFIG_REPEAT_HARMLESS,
                                      .form = from->answer,
                                      .pick = from->pick};
    bool made = command_tool_new(&options, ret, e);
    free(args);
    free(environment);
    buf_done(&path);
    return made;
}

static bool is_harmless(const struct config_own_tool *from) {
    bool reads = str_equal(from->method, STR("GET")) || str_equal(from->method, STR("HEAD"));
    return from->idempotent == CONFIG_REPEAT_AUTO ? reads
                                                  : from->idempotent == CONFIG_REPEAT_HARMLESS;
}

static bool make_request(const struct config_own_tool *from, struct http_pool *pool,
                         struct tool **ret, struct err *e) {
    struct request_options options = {.name = from->name,
                                      .description = from->description,
                                      .parameters = from->parameters,
                                      .method = from->method,
                                      .url = from->url,
                                      .query = from->query,
                                      .query_count = from->query_count,
                                      .has_query = from->has_query,
                                      .headers = from->headers,
                                      .header_count = from->header_count,
                                      .body = from->body,
                                      .key = from->key,
                                      .secrets = from->secrets,
                                      .secret_count = from->secret_count,
                                      .output_max_bytes = from->output_bytes,
                                      .at_once = from->at_once,
                                      .timeout_ms = REQUEST_MS,
                                      .idempotent = is_harmless(from),
                                      .public_only = from->public_only,
                                      .form = from->answer,
                                      .pick = from->pick,
                                      .pool = pool};
    return request_tool_new(&options, ret, e);
}

bool team_own_tool_new(const struct config_own_tool *from, struct http_pool *pool,
                       struct tool **ret, struct err *e) {
    return from->url.len ? make_request(from, pool, ret, e) : make_command(from, ret, e);
}

/* --- all of them -------------------------------------------------------------------------- */

static bool team_own_tools_is_there(const struct team *team, struct str name) {
    for (size_t i = 0; i < team->tool_count; i++) {
        if (str_equal(team->tools[i]->name, name)) return true;
    }
    return false;
}

static bool make_one(struct team *team, const struct config_own_tool *from,
                     struct http_pool *pool, struct err *e) {
    if (team_own_tools_is_there(team, from->name))
        return yaml_err_key(e, from->at, "the script has a tool of that name");
    if (from->url.len && !team->own_pool && !http_pool_need(pool, e)) return false;
    if (!team_own_tool_new(from, pool, &team->tools[team->tool_count], e)) return false;
    team->tool_count++;
    team->own_tools[team->own_tool_count++] = from;
    return true;
}

bool team_make_own_tools(struct team *team, const struct config *config,
                         const struct team_resources *resources, struct err *e) {
    team->own_tools =
        mem_zero(config->tools.own_count + 1, sizeof(const struct config_own_tool *));
    for (size_t i = 0; i < config->tools.own_count; i++) {
        if (!make_one(team, &config->tools.own[i], resources->pool, e) &&
            !(resources->noting && config_goes_on(resources->noting, e)))
            return false;
    }
    return true;
}

const struct config_own_tool *team_own_tool(const struct team *team, struct str name) {
    for (size_t i = 0; i < team->own_tool_count; i++) {
        if (str_equal(team->own_tools[i]->name, name)) return team->own_tools[i];
    }
    return NULL;
}

bool team_may_have_own(const struct config_own_tool *tool, struct str agent) {
    for (size_t i = 0; i < tool->agent_count; i++) {
        if (str_equal(tool->agents[i], agent)) return true;
    }
    return tool->agent_count == 0;
}
