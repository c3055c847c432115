#include "cli/ask_daemon.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/usage_nats.h"
#include "wire/json.h"

#include <stdio.h>

static const char usage[] =
    "weir usage [--by day|agent|model|workspace] [--from DAY] [--to DAY] [--json]\n"
    "           [--workspace NAME] [--agent SLUG] [--model NAME] [--url URL] [--token TOKEN]\n"
    "weir usage --from nats ...: what an orchestrator has published (weir usage --from nats "
    "--help)\n\n"
    "What model calls came to: this month by day, or the days named, such as 2026-01-31 "
    "(UTC).\n"
    "The running daemon is asked, that of --url (WEIR_URL) or else the one of the data folder: "
    "it\n"
    "alone may read its store, and knows what is not in the tables yet. A cost that is not\n"
    "known is in no sum and listed beside it. Exit code 0: printed; 1: no daemon listens, or "
    "the\n"
    "daemon refuses; 2: wrong usage.\n";

#define ANSWER_MAX_BYTES (64 * MIB)
#define PATH_MAX_BYTES (16 * KIB)
#define NAME_MAX_BYTES (64 * KIB)

/* The flags that become parameters of the query. */
static const char *const parameters[] = {"by", "from", "to", "workspace", "agent", "model"};

struct usage_arguments {
    const char *values[ARRAY_LEN(parameters)]; /* NULL: not given */
};

static void usage_path(const struct usage_arguments *arguments, struct buf *path) {
    buf_append(path, STR("/weir/v1/usage"));
    for (size_t i = 0; i < ARRAY_LEN(parameters); i++) {
        if (arguments->values[i])
            daemon_path_add(path, parameters[i], str_from(arguments->values[i]));
    }
}

/* --- as a table --------------------------------------------------------------------------- */

static void add_sums(struct json sum, struct buf *out) {
    static const char *const counts[] = {"calls", "prompt_tokens", "completion_tokens"};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        buf_append_byte(out, ' ');
        show_cell(sum, counts[i], 10, out);
    }
    buf_append(out, STR("  "));
    show_cell(sum, "cost", 0, out);
    buf_append_byte(out, '\n');
}

static bool usage_show(struct str body, struct buf *out, struct err *e) {
    struct json answer, sum;
    struct buf by;
    if (!json_read(body, &answer, e)) return err_add(e, "read the daemon's answer");
    buf_init(&by, NAME_MAX_BYTES);
    bool whole = json_text(json_find(answer, STR("by")), &by) && by.len < NAME_MAX_BYTES;
    if (!whole) buf_clear(&by); /* there is none, or it is too long for a name */
    buf_append_byte(&by, '\0');
    struct json_reader reader = json_enter(json_find(answer, STR("usage")));
    buf_printf(out, "%-24s %10s %10s %10s  %s\n", by.at, "calls", "in", "out", "cost");
    while (json_next_item(&reader, &sum)) {
        show_cell(sum, by.at, -24, out);
        add_sums(sum, out);
    }
    buf_printf(out, "%-24s", "all");
    add_sums(json_find(answer, STR("total")), out);
    struct json unknown =
        json_find(json_find(answer, STR("total")), STR("calls_tokens_unknown"));
    int64_t calls;
    if (json_i64(unknown, &calls) && calls > 0)
        buf_printf(out, "(tokens of %lld call%s are not known)\n", (long long)calls,
                   calls == 1 ? "" : "s");
    buf_done(&by);
    return true;
}

/* --- the command -------------------------------------------------------------------------- */

static bool usage_ask(const struct asked *asked, struct buf *path, struct buf *body,
                      struct err *e) {
    if (!buf_ok(path)) return err_set(e, ERR_INVALID_ARGUMENT, "the arguments are too long");
    return asked_whole(asked, STR("GET"), buf_str(path), STR_EMPTY, body, e);
}

static int usage_act(const struct asked *asked, void *ctx) {
    struct buf path, body, out;
    struct err e;
    buf_init(&path, PATH_MAX_BYTES);
    buf_init(&body, ANSWER_MAX_BYTES);
    buf_init(&out, ANSWER_MAX_BYTES);
    usage_path(ctx, &path);
    bool ok = usage_ask(asked, &path, &body, &e) &&
              (asked->json || usage_show(buf_str(&body), &out, &e));
    if (ok && asked->json) show_json(stdout, buf_str(&body));
    if (ok && !asked->json) show_text(stdout, buf_str(&out), TERMINAL_LINES);
    buf_done(&out);
    buf_done(&body);
    buf_done(&path);
    return ok ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
}

int command_usage(int arg_count, const char *const *args) {
    struct usage_arguments arguments = {.values = {NULL}};
    struct argument_flag flags[ARRAY_LEN(parameters) + 1] = {{.name = NULL}};
    if (usage_is_from_nats(arg_count, args)) return usage_from_nats(arg_count, args);
    for (size_t i = 0; i < ARRAY_LEN(parameters); i++)
        flags[i] = (struct argument_flag){.name = parameters[i], .value = &arguments.values[i]};
    const struct command_form form = {
        .usage = usage, .takes = TAKES_JSON | TAKES_DAEMON, .flags = flags, .act = usage_act};
    return cli_command(arg_count, args, &form, &arguments);
}
