/* weir tool call: one call of one tool, in this process. */
#include "base/clock.h"
#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/looking.h"
#include "cli/show.h"
#include "cli/tool.h"
#include "tool/catalogue.h"

#include <stdio.h>

#define CALL_NAME_BYTES 32

struct calling {
    struct loop *loop;
    struct http_pool *pool;
    struct looking looking; /* set if the tool is the script's or a server's */
    bool looks;
    struct tool *tool;
    bool owns; /* `tool` must be freed */
    struct tool_call *call;
    struct timer late;
    uint64_t limit_ms;
    int code;
};

/* --- the call ----------------------------------------------------------------------------- */

static void tool_call_on_done(struct str result, const struct err *failed, void *ctx) {
    struct calling *calling = ctx;
    calling->call = NULL;
    if (failed) {
        calling->code = cli_fail(EXIT_FAILED, failed);
    } else {
        show_json(stdout, result);
    }
    loop_stop(calling->loop);
}

static void tool_call_on_late(void *ctx) {
    struct calling *calling = ctx;
    struct err e;
    err_set(&e, ERR_DEADLINE_EXCEEDED, "tool '" STR_FMT "' did not answer within %llu ms",
            STR_ARG(calling->tool->name), (unsigned long long)calling->limit_ms);
    calling->tool->kind->cancel(calling->call);
    calling->call = NULL;
    calling->code = cli_fail(EXIT_FAILED, &e);
    loop_stop(calling->loop);
}

static void make_call(struct calling *calling, struct str args, struct str agent) {
    char id[CALL_NAME_BYTES];
    snprintf(id, sizeof(id), "local-%lld", (long long)clock_unix_us());
    struct tool_request request = {.call_id = STR("call-1"),
                                   .id = str_from(id),
                                   .args = args,
                                   .agent = agent,
                                   .workspace = STR("local"),
                                   .user = STR("local"),
                                   .session = STR("run")};
    timer_init(&calling->late, calling->loop, tool_call_on_late, calling);
    if (calling->limit_ms) timer_start(&calling->late, calling->limit_ms);
    calling->call = calling->tool->kind->start(calling->tool, calling->loop, &request,
                                               tool_call_on_done, calling);
    loop_run(calling->loop);
    timer_stop(&calling->late);
}

/* --- the tool ----------------------------------------------------------------------------- */

static bool find_other(struct calling *calling, const struct config *config, struct err *e) {
    struct nearest nearest;
    struct str name = config->operands[0];
    size_t row_count;
    const struct catalogue_row *rows = catalogue_rows(&row_count);
    if (!looking_open(config, &calling->looking, e)) return false;
    calling->looks = true;
    nearest_init(&nearest, name);
    for (size_t i = 0; i < row_count; i++) nearest_offer(&nearest, rows[i].name);
    for (size_t i = 0; i < calling->looking.team.tool_count; i++) {
        struct tool *tool = calling->looking.team.tools[i];
        nearest_offer(&nearest, tool->name);
        if (str_equal(tool->name, name)) calling->tool = tool;
    }
    return calling->tool ||
           err_set(e, ERR_NOT_FOUND,
                   "no tool is called '" STR_FMT "'%s; weir tool list shows them",
                   STR_ARG(str_head(name, 80)), nearest_hint(&nearest));
}

static bool tool_call_find(struct calling *calling, const struct config *config,
                           struct err *e) {
    calling->owns =
        team_tool_new(config, config->operands[0], calling->pool, &calling->tool, e);
    return calling->owns || (e->code == ERR_NOT_FOUND && find_other(calling, config, e));
}

static uint64_t limit_of(const struct config *config, const struct tool *tool) {
    for (size_t i = 0; i < config->tools.policy_count; i++) {
        const struct config_agent_tool *said = &config->tools.policies[i];
        if (str_equal(said->name, tool->name) && said->timeout_ms) return said->timeout_ms;
    }
    return tool->timeout_ms ? tool->timeout_ms : config->limits.run.tool_max_ms;
}

static bool check_args(const struct tool *tool, struct str text, struct err *e) {
    struct json args;
    if (!json_read(text, &args, e)) return err_add(e, "the arguments");
    if (args.kind != JSON_OBJECT)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the arguments must be a JSON object, not %s; write '{\"text\": "
                       "\"hello\"}'",
                       json_kind_name(args.kind));
    return !tool->schema || schema_check(tool->schema, args, e) ||
           err_add(e, "tool '" STR_FMT "' was not called: its arguments do not fit",
                   STR_ARG(tool->name));
}

int tool_call(const struct config *config, struct str agent) {
    struct calling calling = {.loop = loop_new(), .pool = http_pool_new()};
    struct str args = config->operand_count > 1 ? config->operands[1] : STR("{}");
    struct err e;
    http_pool_add(calling.pool, calling.loop);
    if (!tool_call_find(&calling, config, &e)) {
        calling.code = cli_fail(EXIT_FAILED, &e);
    } else if (!check_args(calling.tool, args, &e)) {
        calling.code = cli_fail(EXIT_USAGE, &e);
    } else {
        calling.limit_ms = limit_of(config, calling.tool);
        make_call(&calling, args, agent);
    }
    if (calling.owns) tool_free(calling.tool);
    if (calling.looks) looking_done(&calling.looking);
    http_pool_leave(calling.pool, calling.loop);
    loop_free(calling.loop);
    http_pool_free(calling.pool);
    return calling.code;
}
