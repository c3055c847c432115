/* weir logs: the journal of a run. */
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/event_show.h"
#include "cli/follow.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "weir logs RUN [-f] [--after ID] [--json] [--url URL] [--token TOKEN]\n\n"
    "What happened in a run, from its first event: what was said goes to stdout, thinking,\n"
    "tools and their results to stderr; --json writes each event as a line of JSON to stdout\n"
    "instead. With -f (--follow) it goes on until the run has ended, also when the daemon is\n"
    "restarted meanwhile; without, it ends with what has happened so far. --after ID begins\n"
    "after an event (\"7-42\", as the stream of /weir/v1/runs/RUN/events names them). weir "
    "runs\n"
    "lists the runs. Exit code 0: the events came; 1: the run failed, is unknown, or no "
    "daemon\n"
    "answers; 2: wrong usage.\n";

#define TRIES 5 /* without -f */
#define BODY_MAX_BYTES (64 * MIB)

struct logs_arguments {
    const char *after;
    bool follow;
};

struct logs {
    const struct logs_arguments *arguments;
    bool json;
    struct loop *loop;
    struct run_follow *follow;
    struct event_show show;
    int64_t last_seq; /* without -f: where to end */
    bool failed;      /* the run did */
    struct err why;   /* it could not be read */
};

/* --- events ------------------------------------------------------------------------------- */

static void logs_event(struct str text, void *ctx) {
    struct logs *logs = ctx;
    struct json event;
    struct err e;
    int64_t seq = 0;
    if (!json_read(text, &event, &e)) return;
    if (logs->json) {
        show_json(stdout, event.raw);
        fflush(stdout);
    } else {
        event_show(&logs->show, event);
    }
    logs->failed |= json_is(json_find(event, STR("type")), STR("failed"));
    if (!logs->arguments->follow && json_i64(json_find(event, STR("seq")), &seq) &&
        seq >= logs->last_seq)
        run_follow_stop(logs->follow);
}

static void logs_broken(const struct err *why, void *ctx) {
    struct logs *logs = ctx;
    event_show_end_line(&logs->show);
    fprintf(stderr, "weir: %s; trying again\n", why->text);
}

static void logs_end(const struct err *failed, void *ctx) {
    struct logs *logs = ctx;
    if (failed) logs->why = *failed;
    loop_stop(logs->loop);
}

/* --- one run ------------------------------------------------------------------------------ */

/* How far the run is now. */
static bool logs_look(struct logs *logs, const struct daemon_target *target, struct str run,
                      struct err *e) {
    struct buf path, body;
    struct json answer;
    buf_init(&path, KIB);
    buf_init(&body, BODY_MAX_BYTES);
    buf_append(&path, STR("/weir/v1/runs/"));
    buf_append_percent(&path, run, "-._~");
    bool ok = ask_target_whole(target, STR("GET"), buf_str(&path), STR_EMPTY, &body, e) &&
              json_read(buf_str(&body), &answer, e);
    if (ok && !json_i64(json_find(answer, STR("last_seq")), &logs->last_seq))
        ok = err_set(e, ERR_INTERNAL, "the daemon does not say how far the run is");
    buf_done(&body);
    buf_done(&path);
    return ok;
}

/* Whether --after names the end already, where a run that goes on would be waited for. */
static bool logs_is_at_end(const struct logs *logs) {
    uint64_t seq;
    struct str after;
    if (logs->arguments->follow || !logs->arguments->after) return false;
    str_split(str_from(logs->arguments->after), '-', &after);
    return after.at && str_to_u64(after, &seq) && seq >= (uint64_t)logs->last_seq;
}

static bool logs_read(struct logs *logs, const struct daemon_target *target, struct str run,
                      struct err *e) {
    struct http_pool *pool = daemon_target_pool(target);
    const char *after = logs->arguments->after;
    logs->loop = loop_new();
    http_pool_add(pool, logs->loop);
    bool ok = http_pool_need(pool, e);
    if (ok) {
        logs->follow = run_follow_start(
            &(struct run_follow_options){.pool = pool,
                                         .loop = logs->loop,
                                         .target = target,
                                         .run = run,
                                         .after = after ? str_from(after) : STR_EMPTY,
                                         .tries = logs->arguments->follow ? 0 : TRIES,
                                         .on_event = logs_event,
                                         .on_broken = logs_broken,
                                         .on_end = logs_end,
                                         .ctx = logs});
        loop_run(logs->loop);
        run_follow_free(logs->follow);
        event_show_end_line(&logs->show);
    }
    http_pool_leave(pool, logs->loop);
    loop_free(logs->loop);
    http_pool_free(pool);
    if (ok && logs->why.code != ERR_NONE) *e = logs->why;
    return ok && logs->why.code == ERR_NONE;
}

static int logs_act(const struct asked *asked, void *ctx) {
    struct logs logs = {.arguments = ctx, .json = asked->json, .why = {.code = ERR_NONE}};
    struct daemon_target target;
    struct err e;
    event_show_init(&logs.show, stdout, stderr, show_colors(stderr, NULL), THINKING_SHOWN);
    logs.show.tells_more = true;
    struct str run = asked->config->operands[0];
    bool ok = daemon_target_find(asked->config, asked->url, asked->token, &target, &e) &&
              logs_look(&logs, &target, run, &e) &&
              (logs_is_at_end(&logs) || logs_read(&logs, &target, run, &e));
    daemon_target_done(&target);
    event_show_done(&logs.show);
    if (!ok) return cli_fail(EXIT_FAILED, &e);
    return logs.failed ? EXIT_FAILED : EXIT_DONE;
}

/* --- the command -------------------------------------------------------------------------- */

/* "7-42". */
static bool after_fits(const char *after) {
    uint64_t number;
    if (!after) return true;
    struct str seq, run = str_split(str_from(after), '-', &seq);
    if (str_to_u64(run, &number) && seq.at && str_to_u64(seq, &number)) return true;
    fprintf(stderr, "weir: error: --after: '%s' is no id of an event; it looks like 7-42\n",
            after);
    return false;
}

static bool logs_fit(const struct asked *asked, void *ctx) {
    const struct logs_arguments *arguments = ctx;
    return after_fits(arguments->after) &&
           cli_operands_fit(asked->config, 1, 1, "the id of a run (weir runs lists them)");
}

/* -f is what other programs call it. */
static const char **spell_follow(int arg_count, const char *const *args) {
    const char **spelled = mem_zero((size_t)arg_count + 1, sizeof(*spelled));
    for (int i = 0; i < arg_count; i++)
        spelled[i] = strcmp(args[i], "-f") == 0 ? "--follow" : args[i];
    return spelled;
}

int command_logs(int arg_count, const char *const *args) {
    struct logs_arguments arguments = {.follow = false};
    const struct argument_flag flags[] = {{.name = "follow", .given = &arguments.follow},
                                          {.name = "after", .value = &arguments.after},
                                          {.name = NULL}};
    const struct command_form form = {.usage = usage,
                                      .takes = TAKES_JSON | TAKES_DAEMON,
                                      .flags = flags,
                                      .fits = logs_fit,
                                      .act = logs_act};
    const char **spelled = spell_follow(arg_count, args);
    int code = cli_command(arg_count, spelled, &form, &arguments);
    free(spelled);
    return code;
}
