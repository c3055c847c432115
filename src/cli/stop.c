/* weir stop: end the daemon that has the data folder. */
#include "cli/arguments.h"
#include "cli/ask_daemon.h"
#include "cli/cli.h"
#include "cli/daemon_process.h"
#include "cli/show.h"

static const char usage[] =
    "weir stop [--now] [--wait SECONDS]\n\n"
    "Stops the daemon that has the data folder (--data), as Ctrl-C would: its turns have the\n"
    "time of limits.shutdown to end, and turns that wait for a human go on at the next start.\n"
    "While it waits, it says for what. --now cuts the turns at once; --wait gives up waiting,\n"
    "not stopping, after so many seconds. Only that very process is signalled: an id that\n"
    "belongs to another process by now never is. Exit code 0: it has ended, or none ran; 1: "
    "it\n"
    "cannot be stopped, or has not ended in that time; 2: wrong usage.\n";

#define LOOK_MS 500
#define ANSWER_MAX_BYTES (64 * KIB)

struct stop_arguments {
    struct arguments all;
    const char *wait;
    bool now;
};

/* The runs that are under way, for a message; 0: none, or it does not say. */
static int64_t runs_under_way(const struct config *config) {
    static const char *const names[] = {"queued", "asking", "working"};
    struct daemon_target target;
    struct buf body;
    struct json answer;
    struct err e;
    int64_t count, sum = 0;
    buf_init(&body, ANSWER_MAX_BYTES);
    bool ok =
        daemon_target_find(config, NULL, NULL, &target, &e) &&
        ask_target_whole(&target, STR("GET"), STR("/weir/v1/status"), STR_EMPTY, &body, &e) &&
        json_read(buf_str(&body), &answer, &e);
    for (size_t i = 0; ok && i < ARRAY_LEN(names); i++) {
        if (json_i64(json_find(json_find(answer, STR("runs")), str_from(names[i])), &count))
            sum += count;
    }
    buf_done(&body);
    daemon_target_done(&target);
    return sum;
}

/* Each number is said once. The daemon answers until its last connection is gone. */
static bool wait_for_end(const struct config *config, const struct daemon_process *process,
                         uint64_t wait_s) {
    int64_t said = 0;
    for (uint64_t ms = 0; wait_s == 0 || ms < wait_s * 1000; ms += LOOK_MS) {
        if (daemon_process_ended(process, LOOK_MS)) return true;
        int64_t runs = runs_under_way(config);
        if (runs != said && runs > 0)
            fprintf(stderr, "waiting for %lld run%s to end\n", (long long)runs,
                    runs == 1 ? "" : "s");
        said = runs;
    }
    return daemon_process_ended(process, 0);
}

/* A daemon that gets a second signal does not wait; within a moment both count as one. */
static bool stop_signal(const struct daemon_process *process, bool now, struct err *e) {
    if (!daemon_process_signal(process, e)) return false;
    if (!now || daemon_process_ended(process, 2 * LOOK_MS)) return true;
    return daemon_process_signal(process, e) || e->code == ERR_NOT_FOUND;
}

static int stop_process(const struct config *config, const struct daemon_process *process,
                        bool now, uint64_t wait_s) {
    struct err e;
    int64_t runs = now ? 0 : runs_under_way(config);
    if (!stop_signal(process, now, &e))
        return e.code == ERR_NOT_FOUND ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
    fprintf(stderr, "stopping process %ld", (long)process->pid);
    if (runs > 0)
        fprintf(stderr, ", with %lld run%s under way", (long long)runs, runs == 1 ? "" : "s");
    fputc('\n', stderr);
    if (!wait_for_end(config, process, wait_s)) {
        err_set(&e, ERR_DEADLINE_EXCEEDED,
                "process %ld still stops; weir stop --now cuts its turns", (long)process->pid);
        return cli_fail(EXIT_FAILED, &e);
    }
    printf("stopped\n");
    return EXIT_DONE;
}

static int stop_daemon(const struct config *config, const struct stop_arguments *arguments,
                       uint64_t wait_s) {
    struct daemon_process process;
    struct err e;
    if (!daemon_process_find(config->data, &process, &e)) {
        if (e.code != ERR_NOT_FOUND) return cli_fail(EXIT_FAILED, &e);
        fprintf(stderr, "weir: %s\n", e.text);
        return EXIT_DONE;
    }
    int code = stop_process(config, &process, arguments->now, wait_s);
    daemon_process_done(&process);
    return code;
}

int command_stop(int arg_count, const char *const *args) {
    struct stop_arguments arguments = {.now = false};
    const struct argument_flag flags[] = {{.name = "now", .given = &arguments.now},
                                          {.name = "wait", .value = &arguments.wait},
                                          {.name = NULL}};
    struct config *config;
    uint64_t wait_s = 0;
    int code;
    if (!arguments_read(arg_count, args, NULL, flags, usage, &arguments.all)) return EXIT_USAGE;
    if (cli_config(arguments.all.rest_count, arguments.all.rest, true, usage,
                   arguments.all.names, &config, &code)) {
        bool timed = !arguments.wait || (str_to_u64(str_from(arguments.wait), &wait_s) &&
                                         wait_s > 0 && wait_s < 1000000);
        code = EXIT_USAGE;
        if (config->operand_count == 0 && timed) {
            code = stop_daemon(config, &arguments, wait_s);
        } else {
            fprintf(stderr, "%s", usage);
        }
        config_free(config);
    }
    arguments_done(&arguments.all);
    return code;
}
