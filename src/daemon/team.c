#include "daemon/team.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "provider/scripted.h"
#include "tool/scripted.h"

#include <stdlib.h>

#define SCRIPT_MAX_BYTES (16 * MIB)

bool team_is_demo(const struct config *config) {
    return config->script.len == 0;
}

static bool load_script(const struct config *config, struct script **ret, struct err *e) {
    if (team_is_demo(config)) return script_parse(STR("demo.yaml"), demo_script, ret, e);
    struct buf text;
    buf_init(&text, SCRIPT_MAX_BYTES);
    bool parsed = file_read(config->script, &text, e) &&
                  script_parse(config->script, buf_str(&text), ret, e);
    buf_done(&text);
    return parsed;
}

static void make_tools(struct team *team) {
    const struct script *script = team->script;
    team->tools = mem_zero(script->tool_count, sizeof(struct tool *));
    for (size_t i = 0; i < script->tool_count; i++) {
        team->tools[team->tool_count++] = scripted_tool_new(&script->tools[i]);
    }
}

static void make_script_agents(struct team *team) {
    const struct script *script = team->script;
    team->agents = mem_zero(script->agent_count, sizeof(struct agent));
    for (size_t i = 0; i < script->agent_count; i++) {
        const struct script_agent *from = &script->agents[i];
        team->agents[team->agent_count++] =
            (struct agent){.slug = from->slug,
                           .description = from->description,
                           .provider = team->provider,
                           .delegates = from->delegates,
                           .delegate_count = from->delegate_count,
                           .picks_tools = !from->all_tools,
                           .tools = from->tools,
                           .tool_count = from->tool_count};
    }
}

static void make_config_agents(struct team *team, const struct config *config) {
    team->agents = mem_zero(config->agent_count, sizeof(struct agent));
    for (size_t i = 0; i < config->agent_count; i++) {
        const struct config_agent *from = &config->agents[i];
        team->agents[team->agent_count++] =
            (struct agent){.slug = from->slug,
                           .description = from->description,
                           .system = from->system,
                           .model = from->model,
                           .provider = team->provider,
                           .delegates = from->delegates,
                           .delegate_count = from->delegate_count,
                           .shows_thinking = from->thinking,
                           .picks_tools = !from->all_tools,
                           .tools = from->tools,
                           .tool_count = from->tool_count};
    }
}

static bool has_tool(const struct team *team, struct str name) {
    for (size_t i = 0; i < team->tool_count; i++) {
        if (str_equal(team->tools[i]->name, name)) return true;
    }
    return false;
}

/* The settings file names tools that only the script knows. */
static bool check_tools(const struct team *team, struct err *e) {
    for (size_t i = 0; i < team->agent_count; i++) {
        const struct agent *agent = &team->agents[i];
        for (size_t t = 0; t < agent->tool_count; t++) {
            if (has_tool(team, agent->tools[t])) continue;
            struct nearest nearest;
            char hint[NEAREST_HINT_BYTES];
            nearest_init(&nearest, agent->tools[t]);
            for (size_t k = 0; k < team->tool_count; k++)
                nearest_offer(&nearest, team->tools[k]->name);
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "agent '" STR_FMT "': the script has no tool '" STR_FMT "'%s",
                           STR_ARG(agent->slug), STR_ARG(agent->tools[t]),
                           nearest_hint(&nearest, hint));
        }
    }
    return true;
}

bool team_assemble(const struct config *config, struct team *ret, struct err *e) {
    struct team team = {0};
    if (!load_script(config, &team.script, e)) return false;
    team.provider = scripted_provider_new(STR("scripted"), team.script);
    make_tools(&team);
    if (config->agent_count) {
        make_config_agents(&team, config);
    } else {
        make_script_agents(&team);
    }
    if (!check_tools(&team, e)) {
        team_done(&team);
        return false;
    }
    *ret = team;
    return true;
}

void team_done(struct team *team) {
    for (size_t i = 0; i < team->tool_count; i++) tool_free(team->tools[i]);
    free(team->tools);
    free(team->agents);
    provider_free(team->provider);
    script_free(team->script);
    *team = (struct team){0};
}

void team_fill(const struct team *team, struct engine *engine) {
    engine->agents = team->agents;
    engine->agent_count = team->agent_count;
    engine->tools = team->tools;
    engine->tool_count = team->tool_count;
}
