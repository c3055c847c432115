#include "cli/arguments.h"
#include "cli/ask_daemon.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "wire/json.h"

#include <stdio.h>

static const char usage[] =
    "weir approvals [list] [--json]\n"
    "weir approvals approve ID [--args JSON] [--json]\n"
    "weir approvals refuse ID [--reason TEXT] [--json]\n\n"
    "What waits for a human in the running daemon, and the decision. With --args the tool is\n"
    "called with these arguments instead. The daemon is asked over its HTTP listener\n"
    "(listen.http) with AGENT_AUTH_TOKEN. Exit code 0: done; 1: it was tried and refused\n"
    "(unknown, answered already, arguments that do not fit), or no daemon listens; 2: wrong "
    "usage.\n";

#define ANSWER_MAX_BYTES (64 * MIB)
#define TEXT_MAX_BYTES (8 * MIB)

struct approvals_arguments {
    struct arguments all;
    bool json;
    const char *args, *reason; /* NULL: not given */
};

/* --- list --------------------------------------------------------------------------------- */

static void list_text(struct json answer, struct buf *out) {
    struct json_reader reader = json_enter(json_find(answer, STR("approvals")));
    struct json approval;
    size_t count = 0;
    for (; json_next_item(&reader, &approval); count++) {
        show_member(approval, "id", out);
        buf_append(out, STR("  "));
        show_member(approval, "agent", out);
        buf_append(out, STR("  session "));
        show_member(approval, "session_id", out);
        buf_append(out, STR("\n    "));
        show_member(approval, "question", out);
        buf_append_byte(out, '\n');
    }
    if (count == 0) buf_append(out, STR("nothing waits for a human\n"));
    if (json_find(answer, STR("more")).kind == JSON_TRUE)
        buf_append(out, STR("... and more\n"));
}

static bool show_list(struct str body, struct buf *out, struct err *e) {
    struct json answer;
    if (!json_read(body, &answer, e)) return err_add(e, "read the daemon's answer");
    list_text(answer, out);
    return true;
}

static int cli_approvals_list(const struct config *config, bool json) {
    struct buf body, out;
    struct err e;
    buf_init(&body, ANSWER_MAX_BYTES);
    buf_init(&out, ANSWER_MAX_BYTES);
    bool ok = ask_daemon_whole(config, STR("GET"), STR("/weir/v1/approvals?limit=1000"),
                               STR_EMPTY, &body, &e) &&
              (json || show_list(buf_str(&body), &out, &e));
    if (ok && json) buf_append_byte(&body, '\n');
    if (ok) printf(STR_FMT, STR_ARG(buf_str(json ? &body : &out)));
    buf_done(&out);
    buf_done(&body);
    return ok ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
}

/* --- decide ------------------------------------------------------------------------------- */

static bool write_decision(const struct approvals_arguments *arguments, bool approves,
                           struct buf *out, struct err *e) {
    struct json args;
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    if (arguments->args) {
        if (!json_read(str_from(arguments->args), &args, e))
            return err_add(e, "--args is no JSON");
        if (args.kind != JSON_OBJECT)
            return err_set(e, ERR_INVALID_ARGUMENT, "--args must be a JSON object, not %s",
                           json_kind_name(args.kind));
        json_member_str(&json, "decision", STR("edit"));
        json_member_raw(&json, "args", args.raw);
    } else {
        json_member_str(&json, "decision", approves ? STR("approve") : STR("refuse"));
    }
    if (arguments->reason) json_member_str(&json, "reason", str_from(arguments->reason));
    json_close(&json);
    return buf_ok(out) || err_set(e, ERR_INVALID_ARGUMENT, "that is too long");
}

static bool cli_approvals_send(const struct config *config, struct str id, struct str decision,
                               struct buf *body, struct err *e) {
    struct buf path;
    buf_init(&path, 16 * KIB);
    buf_append(&path, STR("/weir/v1/approvals/"));
    buf_append_percent(&path, id, "-._~");
    bool ok = buf_ok(&path)
                  ? ask_daemon_whole(config, STR("POST"), buf_str(&path), decision, body, e)
                  : err_set(e, ERR_INVALID_ARGUMENT, "the approval's id is too long");
    buf_done(&path);
    return ok;
}

static int decide(const struct config *config, const struct approvals_arguments *arguments,
                  bool approves) {
    struct buf decision, body;
    struct err e;
    buf_init(&decision, TEXT_MAX_BYTES);
    buf_init(&body, ANSWER_MAX_BYTES);
    int code = EXIT_DONE;
    if (!write_decision(arguments, approves, &decision, &e)) {
        code = cli_fail(EXIT_USAGE, &e);
    } else if (!cli_approvals_send(config, config->operands[0], buf_str(&decision), &body,
                                   &e)) {
        code = cli_fail(EXIT_FAILED, &e);
    } else if (arguments->json) {
        printf(STR_FMT "\n", STR_ARG(buf_str(&body)));
    } else {
        printf("%s\n", approves ? "approved" : "refused");
    }
    buf_done(&body);
    buf_done(&decision);
    return code;
}

/* --- the command -------------------------------------------------------------------------- */

enum act { ACT_LIST, ACT_APPROVE, ACT_REFUSE };

static int cli_approvals_run(enum act act, const struct approvals_arguments *arguments) {
    struct config *config;
    int code;
    if (!cli_config(arguments->all.rest_count, arguments->all.rest, true, usage,
                    arguments->all.names, &config, &code))
        return code;
    bool fits = config->operand_count == (act == ACT_LIST ? 0 : 1) &&
                (!arguments->args || act == ACT_APPROVE) &&
                (!arguments->reason || act == ACT_REFUSE);
    if (!fits) {
        fprintf(stderr, "%s", usage);
        code = EXIT_USAGE;
    } else if (act == ACT_LIST) {
        code = cli_approvals_list(config, arguments->json);
    } else {
        code = decide(config, arguments, act == ACT_APPROVE);
    }
    config_free(config);
    return code;
}

int command_approvals(int arg_count, const char *const *args) {
    static const char *const acts[] = {
        [ACT_LIST] = "list", [ACT_APPROVE] = "approve", [ACT_REFUSE] = "refuse", NULL};
    struct approvals_arguments arguments = {.json = false};
    const struct argument_flag flags[] = {{.name = "json", .given = &arguments.json},
                                          {.name = "args", .value = &arguments.args},
                                          {.name = "reason", .value = &arguments.reason},
                                          {.name = NULL}};
    if (!arguments_read(arg_count, args, acts, flags, usage, &arguments.all)) return EXIT_USAGE;
    int code = cli_approvals_run((enum act)arguments.all.act, &arguments);
    arguments_done(&arguments.all);
    return code;
}
