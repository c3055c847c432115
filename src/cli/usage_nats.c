#include "cli/usage_nats.h"

#include "cli/cli.h"
#include "cli/show.h"
#include "orchestrator/usage_writer.h"
#include "wire/json.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "weir usage --from nats [--by day,user,workspace,agent,model] [--since DAY] [--to DAY]\n"
    "           [--user ID] [--workspace ID] [--agent SLUG] [--model NAME] [--json]\n"
    "weir usage --from nats --follow\n\n"
    "Take what orchestrators have published to NATS (orchestrator.nats) into the tables "
    "llm_usage\n"
    "and llm_usage_daily of the orchestrator's database, each event once, and print the sums: "
    "this\n"
    "month by day, or the days named (UTC). With --follow it goes on taking and prints "
    "nothing. "
    "It\n"
    "may be ended at any time, and run more than once at a time. Exit code 0: printed; 1: NATS "
    "or\n"
    "the database cannot be reached; 2: wrong usage.\n";

#define ANSWER_MAX_BYTES (64 * MIB)

/* --- arguments -------------------------------------------------------------------------------- */

static const struct {
    const char *name, *member;
    unsigned bit;
} dimensions[] = {{"day", "day", USAGE_BY_DAY},
                  {"user", "user_id", USAGE_BY_USER},
                  {"workspace", "workspace_id", USAGE_BY_WORKSPACE},
                  {"agent", "agent_id", USAGE_BY_AGENT},
                  {"model", "model", USAGE_BY_MODEL}};

struct nats_arguments {
    const char *from, *by, *since, *until, *user, *workspace, *agent, *model;
    bool follow;
    unsigned bits;
};

bool usage_is_from_nats(int arg_count, const char *const *args) {
    for (int i = 0; i < arg_count; i++) {
        if (strcmp(args[i], "--from=nats") == 0) return true;
        if (i + 1 < arg_count && strcmp(args[i], "--from") == 0 &&
            strcmp(args[i + 1], "nats") == 0)
            return true;
    }
    return false;
}

static bool add_dimension(struct str name, unsigned *bits) {
    for (size_t i = 0; i < ARRAY_LEN(dimensions); i++) {
        if (!str_equal(name, str_from(dimensions[i].name))) continue;
        *bits |= dimensions[i].bit;
        return true;
    }
    fprintf(stderr,
            "weir: error: --by knows no '%.*s': it is day, user, workspace, agent or model, or "
            "some of them with commas\n",
            STR_ARG(name));
    return false;
}

static bool nats_fits(const struct asked *asked, void *ctx) {
    struct nats_arguments *arguments = ctx;
    struct str rest = str_from(arguments->by ? arguments->by : "day");
    while (rest.at) {
        struct str name = str_split(rest, ',', &rest);
        if (!add_dimension(name, &arguments->bits)) return false;
    }
    return cli_operands_fit(asked->config, 0, 0, NULL);
}

/* --- as a table --------------------------------------------------------------------------------- */

static void usage_nats_put_line(struct json line, unsigned bits, struct buf *out) {
    static const struct {
        const char *member;
        int width;
    } sums[] = {
        {"calls", 8}, {"prompt_tokens", 12}, {"completion_tokens", 12}, {"cost_usd", 12}};
    for (size_t i = 0; i < ARRAY_LEN(dimensions); i++) {
        if (!(bits & dimensions[i].bit)) continue;
        show_cell(line, dimensions[i].member, -20, out);
        buf_append_byte(out, ' ');
    }
    for (size_t i = 0; i < ARRAY_LEN(sums); i++) {
        if (i) buf_append_byte(out, ' ');
        show_cell(line, sums[i].member, sums[i].width, out);
    }
    buf_append_byte(out, '\n');
}

static bool usage_nats_show(struct str body, unsigned bits, struct buf *out, struct err *e) {
    struct json answer, line;
    if (!json_read(body, &answer, e)) return err_add(e, "read the sums");
    struct json_reader reader = json_enter(json_find(answer, STR("usage")));
    for (size_t i = 0; i < ARRAY_LEN(dimensions); i++) {
        if (bits & dimensions[i].bit) buf_printf(out, "%-20s ", dimensions[i].name);
    }
    buf_printf(out, "%8s %12s %12s %12s\n", "calls", "in", "out", "cost");
    while (json_next_item(&reader, &line)) usage_nats_put_line(line, bits, out);
    struct json total = json_find(answer, STR("total"));
    if (json_count(json_find(answer, STR("usage"))) > 1) usage_nats_put_line(total, bits, out);
    return true;
}

/* --- the command -------------------------------------------------------------------------------- */

static struct str given(const char *value) {
    return value ? str_from(value) : STR_EMPTY;
}

static bool answer(const struct orchestrator_options *options,
                   const struct nats_arguments *arguments, bool as_json, struct buf *out,
                   struct err *e) {
    const struct usage_writer_question question = {.by = arguments->bits,
                                                   .user = given(arguments->user),
                                                   .workspace = given(arguments->workspace),
                                                   .agent = given(arguments->agent),
                                                   .model = given(arguments->model),
                                                   .since = given(arguments->since),
                                                   .until = given(arguments->until)};
    struct buf body;
    buf_init(&body, ANSWER_MAX_BYTES);
    bool good = usage_writer_ask(options, &question, &body, e);
    if (good && as_json)
        buf_printf(out, STR_FMT "\n", STR_ARG(buf_str(&body)));
    else if (good)
        good = usage_nats_show(buf_str(&body), arguments->bits, out, e);
    buf_done(&body);
    return good;
}

static int take_and_answer(const struct asked *asked, void *ctx) {
    const struct nats_arguments *arguments = ctx;
    const struct orchestrator_options *options = orchestrator_options(asked->config);
    struct usage_writer_result written;
    struct buf out;
    struct err e;
    sigset_t held;
    cli_held_signals(&held);
    pthread_sigmask(SIG_UNBLOCK, &held, NULL); /* they may end it anywhere */
    if (!orchestrator_nats_check(options, &e)) return cli_fail(EXIT_USAGE, &e);
    if (!options->database.len || !orchestrator_nats(options).len) {
        err_set(&e, ERR_INVALID_ARGUMENT,
                "which NATS, and which database? Set CRAWBL_NATS_URL=nats://host:4222 and "
                "WEIR_ORCHESTRATOR_DATABASE=postgres://user@host/name");
        return cli_fail(EXIT_USAGE, &e);
    }
    buf_init(&out, ANSWER_MAX_BYTES);
    bool good = usage_writer_run(options, arguments->follow, &written, &e) &&
                answer(options, arguments, asked->json, &out, &e);
    if (good) printf(STR_FMT, STR_ARG(buf_str(&out)));
    buf_done(&out);
    return good ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
}

int usage_from_nats(int arg_count, const char *const *args) {
    struct nats_arguments arguments = {.from = NULL};
    const struct argument_flag flags[] = {{.name = "from", .value = &arguments.from},
                                          {.name = "by", .value = &arguments.by},
                                          {.name = "since", .value = &arguments.since},
                                          {.name = "to", .value = &arguments.until},
                                          {.name = "user", .value = &arguments.user},
                                          {.name = "workspace", .value = &arguments.workspace},
                                          {.name = "agent", .value = &arguments.agent},
                                          {.name = "model", .value = &arguments.model},
                                          {.name = "follow", .given = &arguments.follow},
                                          {.name = NULL}};
    const struct command_form form = {.usage = usage,
                                      .flags = flags,
                                      .takes = TAKES_JSON,
                                      .fits = nats_fits,
                                      .act = take_and_answer};
    return cli_command(arg_count, args, &form, &arguments);
}
