/* weir status: is a daemon there, and can it work? */
#include "base/file.h"
#include "cli/ask_daemon.h"
#include "cli/cli.h"
#include "cli/daemon_process.h"
#include "cli/show.h"
#include "daemon/ports.h"

#include <string.h>

static const char usage[] =
    "weir status [--json] [--url URL] [--token TOKEN]\n\n"
    "Whether a daemon runs: its process (the one that has the data folder), version, "
    "listeners,\n"
    "health, and how many runs it has. For scripts the exit code says it: 0 it serves; 1 it "
    "is\n"
    "there, but does not serve (loading, stopping, or it does not answer); 2 wrong usage;\n"
    "3 there is none.\n";

#define ANSWER_MAX_BYTES (1 * MIB)
#define EXIT_NONE EXIT_UNREACHABLE

struct status {
    struct daemon_process process; /* pid 0: none here, or --url was given */
    struct daemon_target target;
    bool named;                       /* by --url or WEIR_URL */
    struct buf health, answer, ports; /* what it said, or empty */
    struct err unseen;                /* no daemon has the data folder, or it cannot be read */
    struct err why;                   /* it did not answer */
    struct err refused;               /* it does not say what it does */
};

/* --- asking ------------------------------------------------------------------------------- */

static void status_ports(const struct config *config, struct buf *out) {
    struct buf path;
    struct err e;
    buf_init(&path, config->data.len + 32);
    buf_printf(&path, STR_FMT "/" PORTS_NAME, STR_ARG(config->data));
    if (!file_read(buf_str(&path), out, &e)) buf_clear(out);
    buf_done(&path);
}

static void status_ask(const struct asked *asked, struct status *ret) {
    const struct config *config = asked->config;
    *ret = (struct status){.process = {.pidfd = -1}, .why = {.code = ERR_NONE}};
    buf_init(&ret->health, ANSWER_MAX_BYTES);
    buf_init(&ret->answer, ANSWER_MAX_BYTES);
    buf_init(&ret->ports, ANSWER_MAX_BYTES);
    ret->named = daemon_url(asked->url) != NULL;
    if (!ret->named && daemon_process_find(config->data, &ret->process, &ret->unseen))
        status_ports(config, &ret->ports);
    if (ret->process.pidfd < 0) ret->process.pid = 0;
    if (!daemon_target_find(config, asked->url, asked->token, &ret->target, &ret->why)) return;
    if (!ask_target_whole(&ret->target, STR("GET"), STR("/health"), STR_EMPTY, &ret->health,
                          &ret->why))
        return;
    ret->why.code = ERR_NONE;
    if (!ask_target_whole(&ret->target, STR("GET"), STR("/weir/v1/status"), STR_EMPTY,
                          &ret->answer, &ret->refused))
        buf_clear(&ret->answer);
}

static void status_done(struct status *status) {
    daemon_process_done(&status->process);
    daemon_target_done(&status->target);
    buf_done(&status->health);
    buf_done(&status->answer);
    buf_done(&status->ports);
}

static struct json read_or_none(const struct buf *text) {
    struct json value;
    struct err e;
    return text->len && json_read(buf_str(text), &value, &e) ? value : (struct json){0};
}

static int status_code(const struct status *status) {
    struct json health = read_or_none(&status->health), answer = read_or_none(&status->answer);
    bool healthy = json_is(json_find(health, STR("status")), STR("healthy"));
    bool stopping = json_is(json_find(answer, STR("state")), STR("stopping"));
    if (status->why.code != ERR_NONE && !status->process.pid) return EXIT_NONE;
    return status->why.code == ERR_NONE && healthy && !stopping ? EXIT_DONE : EXIT_FAILED;
}

/* --- for programs ------------------------------------------------------------------------- */

static void status_json(const struct config *config, const struct status *status, int code,
                        struct buf *out) {
    struct json health = read_or_none(&status->health), answer = read_or_none(&status->answer),
                ports = read_or_none(&status->ports);
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_bool(&json, "running", code != EXIT_NONE);
    json_member_bool(&json, "serving", code == EXIT_DONE);
    if (status->process.pid) json_member_i64(&json, "pid", status->process.pid);
    if (status->process.pid) json_member_str(&json, "data", config->data);
    json_member_str(&json, "url", daemon_target_where(&status->target));
    if (ports.kind == JSON_OBJECT) json_member_raw(&json, "ports", ports.raw);
    if (health.kind == JSON_OBJECT) json_member_raw(&json, "health", health.raw);
    if (answer.kind == JSON_OBJECT) json_member_raw(&json, "daemon", answer.raw);
    if (status->why.code != ERR_NONE) json_member_str(&json, "error", err_text(&status->why));
    json_close(&json);
}

/* --- for people --------------------------------------------------------------------------- */

/* A member's name, without its quotes. */
static void append_name(struct json name, struct buf *out) {
    terminal_text_append(out, str_of(name.raw.at + 1, name.raw.len - 2), TERMINAL_ONE_LINE);
}

static void append_ports(const struct status *status, struct buf *out) {
    struct json_reader reader = json_enter(read_or_none(&status->ports));
    struct json name, port;
    while (json_next_member(&reader, &name, &port)) {
        buf_append(out, STR("  port     "));
        terminal_text_append(out, port.raw, TERMINAL_ONE_LINE);
        buf_append_byte(out, ' ');
        append_name(name, out);
        buf_append_byte(out, '\n');
    }
}

static void append_runs(struct json answer, struct buf *out) {
    struct json_reader reader = json_enter(json_find(answer, STR("runs")));
    struct json name, count;
    buf_append(out, STR("  runs     "));
    for (bool first = true; json_next_member(&reader, &name, &count); first = false) {
        if (!first) buf_append(out, STR(", "));
        terminal_text_append(out, count.raw, TERMINAL_ONE_LINE);
        buf_append_byte(out, ' ');
        append_name(name, out);
    }
    buf_append_byte(out, '\n');
}

static void status_text(const struct config *config, const struct status *status, int code,
                        struct buf *out) {
    struct json health = read_or_none(&status->health), answer = read_or_none(&status->answer);
    if (code == EXIT_NONE) {
        bool readable = status->unseen.code == ERR_NOT_FOUND;
        bool told = strcmp(status->unseen.text, status->why.text) == 0;
        if (!status->named && readable && status->why.code != ERR_ABORTED)
            buf_printf(out, "no daemon has the data folder " STR_FMT "\n",
                       STR_ARG(config->data));
        if (!status->named && !readable && !told)
            buf_printf(out, "whether a daemon has the data folder is not known: %s\n",
                       status->unseen.text);
        buf_printf(out, "no daemon: %s\n", status->why.text);
        return;
    }
    buf_append(out, STR("weir "));
    show_member(answer, "version", out);
    buf_append(out, code == EXIT_DONE ? STR(" serves") : STR(" does not serve"));
    if (status->process.pid)
        buf_printf(out, "\n  process  %ld, data " STR_FMT, (long)status->process.pid,
                   STR_ARG(config->data));
    buf_printf(out, "\n  http     " STR_FMT "\n",
               STR_ARG(daemon_target_where(&status->target)));
    append_ports(status, out);
    if (status->why.code != ERR_NONE) {
        buf_printf(out, "  health   none: %s\n", status->why.text);
        return;
    }
    buf_append(out, STR("  health   "));
    show_member(health, "status", out);
    buf_append_byte(out, '\n');
    if (answer.kind == JSON_OBJECT) append_runs(answer, out);
    if (answer.kind != JSON_OBJECT)
        buf_printf(out, "  runs     not known: %s\n", status->refused.text);
}

/* --- the command -------------------------------------------------------------------------- */

static int status_show(const struct asked *asked, void *ctx) {
    struct status status;
    struct buf out;
    (void)ctx;
    status_ask(asked, &status);
    buf_init(&out, 4 * ANSWER_MAX_BYTES);
    int code = status_code(&status);
    if (asked->json) {
        status_json(asked->config, &status, code, &out);
        show_json(stdout, buf_str(&out));
    } else {
        status_text(asked->config, &status, code, &out);
        show_text(stdout, buf_str(&out), TERMINAL_LINES);
    }
    buf_done(&out);
    status_done(&status);
    return code;
}

int command_status(int arg_count, const char *const *args) {
    static const struct command_form form = {
        .usage = usage, .takes = TAKES_JSON | TAKES_DAEMON, .act = status_show};
    return cli_command(arg_count, args, &form, NULL);
}
