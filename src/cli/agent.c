/* weir agent list: the agents and what each one has. */
#include "agent/kind.h"
#include "cli/cli.h"
#include "cli/looking.h"
#include "cli/show.h"
#include "cli/tool.h"

#include <stdlib.h>

static const char usage[] =
    "weir agent list [--json] [SETTINGS]\n\n"
    "The agents, as they are configured here: model, tools with where each comes from,\n"
    "and to whom an agent hands over. weir tool list AGENT says more about its tools.\n";

#define LIST_MAX_BYTES (64 * MIB)

static const char *agent_kind_of(const struct config *config, const struct agent *agent) {
    for (size_t i = 0; i < config->agent_count; i++) {
        const struct config_agent *from = &config->agents[i];
        if (str_equal(from->slug, agent->slug) && from->kind) return from->kind->name;
    }
    return "model";
}

/* The model such as "openai/gpt-5-mini", or the provider's name. */
static void put_model(const struct agent *agent, struct buf *out) {
    buf_append(out, agent->provider->name);
    if (agent->model.len) buf_printf(out, "/" STR_FMT, STR_ARG(agent->model));
}

static const char *mark_of(const struct team_tool_view *tool) {
    if (tool->missing) return ", missing";
    return tool->policy == TOOL_ASK ? ", asks" : "";
}

static void agent_put_tools(const struct team *team, const struct config *config,
                            const struct agent *agent, struct buf *out) {
    struct team_tool_view *tools;
    size_t count = team_view(team, config, agent, &tools);
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s" STR_FMT " (%s%s" STR_FMT "%s)", i ? ", " : "",
                   STR_ARG(tools[i].name), tools[i].from, tools[i].server.len ? " " : "",
                   STR_ARG(tools[i].server), mark_of(&tools[i]));
    if (!count) buf_append(out, STR("none"));
    free(tools);
}

static void agent_put_text(const struct looking *looking, const struct config *config,
                           struct buf *out) {
    for (size_t i = 0; i < looking->team.agent_count; i++) {
        const struct agent *agent = &looking->team.agents[i];
        const char *kind = agent_kind_of(config, agent);
        buf_printf(out, STR_FMT "\n  %-9s  ", STR_ARG(agent->slug), kind);
        put_model(agent, out);
        buf_append(out, STR("\n  tools      "));
        agent_put_tools(&looking->team, config, agent, out);
        for (size_t d = 0; d < agent->delegate_count; d++)
            buf_printf(out, "%s" STR_FMT, d ? ", " : "\n  delegates  ",
                       STR_ARG(agent->delegates[d]));
        if (agent->description.len)
            buf_printf(out, "\n  does       " STR_FMT, STR_ARG(agent->description));
        buf_append_byte(out, '\n');
    }
}

static void put_agent_json(const struct looking *looking, const struct config *config,
                           const struct agent *agent, struct json_writer *json) {
    struct team_tool_view *tools;
    size_t count = team_view(&looking->team, config, agent, &tools);
    json_open_object(json);
    json_member_str(json, "name", agent->slug);
    json_member_str(json, "description", agent->description);
    json_member_str(json, "kind", str_from(agent_kind_of(config, agent)));
    json_member_str(json, "provider", agent->provider->name);
    json_member_str(json, "model", agent->model);
    json_member_array(json, "delegates");
    for (size_t i = 0; i < agent->delegate_count; i++)
        json_write_str(json, agent->delegates[i]);
    json_close(json);
    json_member_array(json, "tools");
    for (size_t i = 0; i < count; i++) tool_put_json(json, &tools[i]);
    json_close(json);
    json_close(json);
    free(tools);
}

static void put_json(const struct looking *looking, const struct config *config,
                     struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_array(&json, "agents");
    for (size_t i = 0; i < looking->team.agent_count; i++)
        put_agent_json(looking, config, &looking->team.agents[i], &json);
    json_close(&json);
    json_close(&json);
}

static int list_agents(const struct asked *asked, void *ctx) {
    const struct config *config = asked->config;
    struct looking looking;
    struct err e;
    struct buf out;
    (void)ctx;
    cli_log_file(config);
    if (!looking_open(config, &looking, &e)) return cli_fail(EXIT_USAGE, &e);
    buf_init(&out, LIST_MAX_BYTES);
    (asked->json ? put_json : agent_put_text)(&looking, config, &out);
    show_listing(buf_str(&out), asked->json);
    tool_note_workspaces(config);
    buf_done(&out);
    looking_done(&looking);
    return EXIT_DONE;
}

enum act { ACT_NONE, ACT_LIST };

int command_agent(int arg_count, const char *const *args) {
    static const char *const acts[] = {[ACT_NONE] = "", [ACT_LIST] = "list", NULL};
    static const struct command_form form = {
        .usage = usage, .acts = acts, .takes = TAKES_JSON, .act = list_agents};
    return cli_command(arg_count, args, &form, NULL);
}
