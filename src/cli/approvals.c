#include "cli/ask_daemon.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "wire/json.h"

#include <stdio.h>

static const char usage[] =
    "weir approvals [list] [--json] [--url URL] [--token TOKEN]\n"
    "weir approvals approve ID [--args JSON] [--json]\n"
    "weir approvals refuse ID [--reason TEXT] [--json]\n\n"
    "What waits for a human in the running daemon, and the decision. With --args the tool is\n"
    "called with these arguments instead. The daemon is that of --url (WEIR_URL), else the "
    "one\n"
    "of the data folder; the token is --token, else AGENT_AUTH_TOKEN. Exit code 0: done; 1: it "
    "was\n"
    "tried and refused (unknown, answered already, arguments that do not fit), or no daemon\n"
    "listens; 2: wrong usage.\n";

#define ANSWER_MAX_BYTES (64 * MIB)
#define TEXT_MAX_BYTES (8 * MIB)

struct approvals_arguments {
    const char *args, *reason; /* NULL: not given */
};

/* --- list --------------------------------------------------------------------------------- */

static void approvals_list_text(struct json answer, struct buf *out) {
    struct json_reader reader = json_enter(json_find(answer, STR("approvals")));
    struct json approval;
    size_t count = 0;
    for (; json_next_item(&reader, &approval); count++)
        show_form(approval, "{id}  {agent}  session {session_id}\n    {question}\n", out);
    if (count == 0) buf_append(out, STR("nothing waits for a human\n"));
    if (json_find(answer, STR("more")).kind == JSON_TRUE)
        buf_append(out, STR("... and more\n"));
}

static bool show_list(struct str body, struct buf *out, struct err *e) {
    struct json answer;
    if (!json_read(body, &answer, e)) return err_add(e, "read the daemon's answer");
    approvals_list_text(answer, out);
    return true;
}

static int cli_approvals_list(const struct asked *asked) {
    struct buf body, out;
    struct err e;
    buf_init(&body, ANSWER_MAX_BYTES);
    buf_init(&out, ANSWER_MAX_BYTES);
    bool ok = asked_whole(asked, STR("GET"), STR("/weir/v1/approvals?limit=1000"), STR_EMPTY,
                          &body, &e) &&
              (asked->json || show_list(buf_str(&body), &out, &e));
    if (ok && asked->json) show_json(stdout, buf_str(&body));
    if (ok && !asked->json) printf(STR_FMT, STR_ARG(buf_str(&out)));
    buf_done(&out);
    buf_done(&body);
    return ok ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
}

/* --- decide ------------------------------------------------------------------------------- */

static bool approvals_write_decision(const struct approvals_arguments *arguments, bool approves,
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

static bool cli_approvals_send(const struct asked *asked, struct str id, struct str decision,
                               struct buf *body, struct err *e) {
    struct buf path;
    buf_init(&path, 16 * KIB);
    buf_append(&path, STR("/weir/v1/approvals/"));
    buf_append_percent(&path, id, "-._~");
    bool ok = buf_ok(&path) ? asked_whole(asked, STR("POST"), buf_str(&path), decision, body, e)
                            : err_set(e, ERR_INVALID_ARGUMENT, "the approval's id is too long");
    buf_done(&path);
    return ok;
}

static int decide(const struct asked *asked, const struct approvals_arguments *arguments,
                  bool approves) {
    struct buf decision, body;
    struct err e;
    buf_init(&decision, TEXT_MAX_BYTES);
    buf_init(&body, ANSWER_MAX_BYTES);
    int code = EXIT_DONE;
    if (!approvals_write_decision(arguments, approves, &decision, &e)) {
        code = cli_fail(EXIT_USAGE, &e);
    } else if (!cli_approvals_send(asked, asked->config->operands[0], buf_str(&decision), &body,
                                   &e)) {
        code = cli_fail(EXIT_FAILED, &e);
    } else if (asked->json) {
        show_json(stdout, buf_str(&body));
    } else {
        printf("%s\n", approves ? "approved" : "refused");
    }
    buf_done(&body);
    buf_done(&decision);
    return code;
}

/* --- the command -------------------------------------------------------------------------- */

enum act { ACT_LIST, ACT_APPROVE, ACT_REFUSE };

static bool approvals_fit(const struct asked *asked, void *ctx) {
    const struct approvals_arguments *arguments = ctx;
    size_t wanted = asked->act != ACT_LIST;
    return cli_operands_fit(asked->config, wanted, wanted,
                            "the id of an approval (weir approvals lists them)") &&
           cli_flag_fits(arguments->args, asked->act == ACT_APPROVE, "--args",
                         "only weir approvals approve takes arguments") &&
           cli_flag_fits(arguments->reason, asked->act == ACT_REFUSE, "--reason",
                         "only weir approvals refuse gives one");
}

static int approvals_act(const struct asked *asked, void *ctx) {
    return asked->act == ACT_LIST ? cli_approvals_list(asked)
                                  : decide(asked, ctx, asked->act == ACT_APPROVE);
}

int command_approvals(int arg_count, const char *const *args) {
    static const char *const acts[] = {
        [ACT_LIST] = "list", [ACT_APPROVE] = "approve", [ACT_REFUSE] = "refuse", NULL};
    struct approvals_arguments arguments = {.args = NULL};
    const struct argument_flag flags[] = {{.name = "args", .value = &arguments.args},
                                          {.name = "reason", .value = &arguments.reason},
                                          {.name = NULL}};
    const struct command_form form = {.usage = usage,
                                      .takes = TAKES_JSON | TAKES_DAEMON,
                                      .acts = acts,
                                      .flags = flags,
                                      .fits = approvals_fit,
                                      .act = approvals_act};
    return cli_command(arg_count, args, &form, &arguments);
}
