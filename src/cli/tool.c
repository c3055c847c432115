#include "cli/tool.h"

#include "base/nearest.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/looking.h"
#include "cli/show.h"
#include "daemon/team_view.h"
#include "mcp/pins.h"
#include "tool/catalogue.h"
#include "wire/json.h"

#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "weir tool list [AGENT] [--json] [SETTINGS]\n"
    "weir tool call NAME '{\"text\": \"hello\"}' [--agent NAME] [SETTINGS]\n"
    "weir tool accept NAME [SETTINGS]\n\n"
    "list: what an agent really has: where each tool comes from and what becomes of a\n"
    "call. Without an agent: all tools that there are.\n"
    "call: try one, here and without an agent's policy. The result goes to stdout.\n"
    "accept: a tool of an MCP server that is not what it was asks before each\n"
    "call. Accept what it is now; the daemon sees it when it lists the tools\n"
    "again, at the latest at its next start.\n";

#define LIST_MAX_BYTES (16 * MIB)
#define SUMMARY_BYTES 80

static const char *const policies[] = {
    [TOOL_ALLOW] = "allow", [TOOL_ASK] = "ask", [TOOL_HIDDEN] = "hidden"};

/* --- list --------------------------------------------------------------------------------- */

/* Why the tool is not available on this machine, or NULL. Checked once. */
static const char *off(const struct team_tool_view *tool) {
    static struct err why;
    static bool looked, works;
    if (!str_equal(tool->name, STR("exec")) || strcmp(tool->from, "builtin") != 0) return NULL;
    if (!looked) works = exec_works(&why);
    looked = true;
    return works ? NULL : why.text;
}

void tool_put_json(struct json_writer *json, const struct team_tool_view *tool) {
    const struct catalogue_row *row = catalogue_find(tool->name);
    json_open_object(json);
    json_member_str(json, "name", tool->name);
    json_member_str(json, "from", str_from(tool->from));
    if (tool->server.len) json_member_str(json, "server", tool->server);
    if (row) json_member_str(json, "category", row->category);
    if (row) json_member_str(json, "summary", row->summary);
    json_member_str(json, "description", tool->description);
    json_member_str(json, "policy", str_from(policies[tool->policy]));
    json_member_bool(json, "idempotent", tool->idempotent);
    if (tool->timeout_ms) json_member_u64(json, "timeout_ms", tool->timeout_ms);
    if (tool->parameters.len) json_member_raw(json, "parameters", tool->parameters);
    if (tool->missing) json_member_bool(json, "missing", true);
    if (off(tool)) json_member_str(json, "off", str_from(off(tool)));
    json_close(json);
}

static void list_json(const struct team_tool_view *tools, size_t count, struct buf *out) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_member_array(&writer, "tools");
    for (size_t i = 0; i < count; i++) tool_put_json(&writer, &tools[i]);
    json_close(&writer);
    json_close(&writer);
}

/* The first line, cut to what fits. */
static struct str summary_of(const struct team_tool_view *tool) {
    const struct catalogue_row *row = catalogue_find(tool->name);
    struct str text = row ? row->summary : tool->description;
    text = str_head(text, str_find_byte(text, '\n'));
    return str_head(text, utf8_cut(text, SUMMARY_BYTES));
}

static size_t name_width(const struct team_tool_view *tools, size_t count) {
    size_t width = 4;
    for (size_t i = 0; i < count; i++)
        width = tools[i].name.len > width ? tools[i].name.len : width;
    return width;
}

static void tool_list_text(const struct team_tool_view *tools, size_t count, struct buf *out) {
    int width = (int)name_width(tools, count);
    buf_printf(out, "%-*s %-16s %-6s %-7s %s\n", width, "NAME", "FROM", "POLICY", "LIMIT",
               "WHAT IT DOES");
    for (size_t i = 0; i < count; i++) {
        const struct team_tool_view *tool = &tools[i];
        char from[64], room[32];
        struct buf limit = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
        if (tool->timeout_ms) units_append_duration(&limit, 1000 * tool->timeout_ms);
        snprintf(from, sizeof(from), "%s%s" STR_FMT, tool->from, tool->server.len ? " " : "",
                 STR_ARG(tool->server));
        const char *why = off(tool);
        buf_printf(out, "%-*.*s %-16s %-6s %-7.*s " STR_FMT "%s%s\n", width,
                   STR_ARG(tool->name), from, policies[tool->policy], STR_ARG(buf_str(&limit)),
                   STR_ARG(summary_of(tool)), why ? " Off: " : "", why ? why : "");
    }
}

static const struct agent *find_agent(const struct team *team, struct str slug, struct err *e) {
    struct nearest nearest;
    nearest_init(&nearest, slug);
    for (size_t i = 0; i < team->agent_count; i++) {
        if (str_equal(team->agents[i].slug, slug)) return &team->agents[i];
        nearest_offer(&nearest, team->agents[i].slug);
    }
    err_set(e, ERR_NOT_FOUND, "no agent is called '" STR_FMT "'%s; weir agent list shows them",
            STR_ARG(str_head(slug, 80)), nearest_hint(&nearest));
    return NULL;
}

/* These tools are requested in the turns of a workspace, with its tokens. */
void tool_note_workspaces(const struct config *config) {
    if (config->remote.tools)
        fprintf(stderr,
                "weir: the tools of converse.mcp_endpoint are those of a workspace, and "
                "are not listed\n");
}

static int tool_list_tools(const struct config *config, bool as_json) {
    struct looking looking;
    struct team_tool_view *tools;
    struct err e;
    struct buf out;
    const struct agent *agent = NULL;
    if (!looking_open(config, &looking, &e)) return cli_fail(EXIT_USAGE, &e);
    if (config->operand_count) agent = find_agent(&looking.team, config->operands[0], &e);
    if (config->operand_count && !agent) {
        looking_done(&looking);
        return cli_fail(EXIT_FAILED, &e);
    }
    size_t count = team_view(&looking.team, config, agent, &tools);
    buf_init(&out, LIST_MAX_BYTES);
    (as_json ? list_json : tool_list_text)(tools, count, &out);
    show_listing(buf_str(&out), as_json);
    tool_note_workspaces(config);
    buf_done(&out);
    free(tools);
    looking_done(&looking);
    return EXIT_DONE;
}

/* --- accept ------------------------------------------------------------------------------- */

static int accept_tool(const struct config *config) {
    struct err e;
    struct buf path;
    buf_init(&path, 8 * KIB);
    pins_path(config->data, &path);
    bool accepted = pins_accept(buf_str(&path), STR_EMPTY, config->operands[0], &e);
    buf_done(&path);
    return accepted ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
}

/* --- the command -------------------------------------------------------------------------- */

enum act { ACT_NONE, ACT_LIST, ACT_CALL, ACT_ACCEPT };

static bool tool_fits(const struct asked *asked, void *ctx) {
    static const size_t least[] = {[ACT_LIST] = 0, [ACT_CALL] = 1, [ACT_ACCEPT] = 1};
    static const size_t most[] = {[ACT_LIST] = 1, [ACT_CALL] = 2, [ACT_ACCEPT] = 1};
    const char *const *agent = ctx;
    return cli_operands_fit(asked->config, least[asked->act], most[asked->act],
                            "the name of a tool") &&
           cli_flag_fits(**agent, asked->act == ACT_CALL, "--agent",
                         "weir tool list AGENT lists those of an agent") &&
           cli_flag_fits(asked->json, asked->act == ACT_LIST, "--json",
                         "only weir tool list has it");
}

static int tool_act(const struct asked *asked, void *ctx) {
    const char *const *agent = ctx;
    cli_log_file(asked->config);
    if (asked->act == ACT_LIST) return tool_list_tools(asked->config, asked->json);
    if (asked->act == ACT_CALL) return tool_call(asked->config, str_from(*agent));
    return accept_tool(asked->config);
}

int command_tool(int arg_count, const char *const *args) {
    static const char *const acts[] = {[ACT_NONE] = "",
                                       [ACT_LIST] = "list",
                                       [ACT_CALL] = "call",
                                       [ACT_ACCEPT] = "accept",
                                       NULL};
    const char *agent = "";
    const struct argument_flag flags[] = {{.name = "agent", .value = &agent}, {.name = NULL}};
    const struct command_form form = {.usage = usage,
                                      .acts = acts,
                                      .flags = flags,
                                      .takes = TAKES_JSON,
                                      .fits = tool_fits,
                                      .act = tool_act};
    return cli_command(arg_count, args, &form, &agent);
}
