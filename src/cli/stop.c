/* weir stop: end the daemon that has the data folder. */
#include "base/clock.h"
#include "cli/ask_daemon.h"
#include "cli/cli.h"
#include "cli/daemon_process.h"
#include "cli/show.h"
#include "server/address.h"

#include <netinet/in.h>
#include <unistd.h>

static const char usage[] =
    "weir stop [--now] [--wait SECONDS] [--json] [--url URL] [--token TOKEN]\n\n"
    "Stops the daemon that has the data folder (--data), as Ctrl-C would: its turns have the\n"
    "time of limits.shutdown to end, and turns that wait for a human go on at the next start.\n"
    "With --url (WEIR_URL), and with a store in PostgreSQL, the daemon is asked for its "
    "process,\n"
    "which must be on this machine. While it waits, it says for what. --now cuts the turns at\n"
    "once; --wait gives up waiting, not stopping, after so many seconds. Only that very "
    "process\n"
    "is signalled: an id that belongs to another process by now never is. Exit code 0: it has\n"
    "ended, or none has the folder; 1: it cannot be found or stopped, or has not ended in "
    "that\n"
    "time; 2: wrong usage.\n";

#define LOOK_MS 500
#define STATUS_MS 2000 /* a daemon that hangs is stopped too */
#define ANSWER_MAX_BYTES (64 * KIB)

struct stop_arguments {
    const char *wait;
    uint64_t wait_s; /* 0: for ever */
    bool now;
};

/* --- what it says of itself --------------------------------------------------------------- */

/* {"pid":4121,"runs":{"asking":1}} */
static bool stop_ask(const struct asked *asked, struct buf *body, struct json *ret,
                     struct err *e) {
    const struct daemon_question question = {.method = STR("GET"),
                                             .path = STR("/weir/v1/status"),
                                             .on_body = ask_daemon_keep,
                                             .ctx = body,
                                             .answer_ms = STATUS_MS};
    return asked_answer(asked, &question, e) && json_read(buf_str(body), ret, e);
}

/* The runs that are under way, for a message; 0: none, or it does not say. */
static int64_t runs_under_way(const struct asked *asked) {
    static const char *const names[] = {"queued", "asking", "working"};
    struct buf body;
    struct json answer = {.kind = JSON_NONE};
    struct err e;
    int64_t count, sum = 0;
    buf_init(&body, ANSWER_MAX_BYTES);
    bool ok = stop_ask(asked, &body, &answer, &e);
    struct json runs = json_find(answer, STR("runs"));
    for (size_t i = 0; ok && i < ARRAY_LEN(names); i++) {
        struct json member = json_find(runs, str_from(names[i]));
        if (json_i64(member, &count)) sum += count;
    }
    buf_done(&body);
    return sum;
}

/* --- which process ------------------------------------------------------------------------ */

/* Whether an interface of this machine has the address. */
static bool is_of_machine(struct address address) {
    int fd = socket(address.as.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (address.as.any.sa_family == AF_INET)
        ((struct sockaddr_in *)&address.as.inet)->sin_port = 0;
    else if (address.as.any.sa_family == AF_INET6)
        ((struct sockaddr_in6 *)&address.as.inet)->sin6_port = 0;
    bool can = fd >= 0 && bind(fd, &address.as.any, address.len) == 0;
    if (fd >= 0) close(fd);
    return can;
}

/* The port of a URL whose host is this machine. */
static bool port_here(struct str base, int *ret, struct err *e) {
    struct address address;
    struct err none;
    struct str host = str_skip(base, str_find(base, STR("://")) + 3);
    bool here = address_parse(host, &address, &none);
    *ret = here ? address_port(&address) : 0;
    if (here && !address_is_loopback(&address)) here = is_of_machine(address);
    return here ||
           err_set(e, ERR_FAILED_PRECONDITION,
                   STR_FMT " is no port of this machine; stop that daemon where it runs",
                   STR_ARG(base));
}

/* Who listens on a Unix socket is not looked for. */
static bool has_port(const struct daemon_target *target, struct err *e) {
    return !target->socket.len ||
           err_set(e, ERR_FAILED_PRECONDITION,
                   "at " STR_FMT
                   " a daemon can be asked, but not stopped; name its data folder "
                   "with --data, or end its process",
                   STR_ARG(target->socket));
}

static bool find_asked(const struct asked *asked, struct daemon_process *ret, struct err *e) {
    struct daemon_target target;
    struct buf body;
    struct json answer = {.kind = JSON_NONE};
    int64_t pid = 0;
    int port = 0;
    buf_init(&body, ANSWER_MAX_BYTES);
    bool ok = daemon_target_find(asked->config, asked->url, asked->token, &target, e) &&
              has_port(&target, e) && port_here(buf_str(&target.base), &port, e) &&
              stop_ask(asked, &body, &answer, e);
    struct json member = json_find(answer, STR("pid"));
    if (ok && !json_i64(member, &pid))
        ok = err_set(e, ERR_FAILED_PRECONDITION, "what answers there is no weir");
    ok = ok && daemon_process_find_listening(pid, port, ret, e);
    if (!ok && e->code == ERR_NOT_FOUND)
        err_set(e, ERR_FAILED_PRECONDITION,
                "the daemon at " STR_FMT " runs elsewhere: no process %lld listens on port %d "
                "of this machine; stop it where it runs",
                STR_ARG(buf_str(&target.base)), (long long)pid, port);
    daemon_target_done(&target);
    buf_done(&body);
    return ok;
}

/* errors  ERR_NOT_FOUND no daemon has the folder */
static bool stop_find(const struct asked *asked, struct daemon_process *ret, struct err *e) {
    bool elsewhere = asked->config->store.url.len > 0;
    if (!elsewhere && !daemon_url(asked->url))
        return daemon_process_find(asked->config->data, ret, e);
    if (find_asked(asked, ret, e)) return true;
    if (!elsewhere || daemon_url(asked->url)) return false;
    return err_add(e, "with a store in PostgreSQL the data folder does not say which daemon is "
                      "meant, so it is asked (name another with --url)");
}

/* --- stopping ----------------------------------------------------------------------------- */

/* Each number is said once. The daemon answers until its last connection is gone. */
static bool wait_for_end(const struct asked *asked, const struct daemon_process *process,
                         uint64_t wait_s) {
    int64_t said = 0;
    uint64_t began_ms = clock_mono_ms();
    while (wait_s == 0 || clock_mono_ms() - began_ms < wait_s * 1000) {
        if (daemon_process_ended(process, LOOK_MS)) return true;
        int64_t runs = runs_under_way(asked);
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

static int stop_process(const struct asked *asked, const struct daemon_process *process,
                        bool now, uint64_t wait_s) {
    struct err e;
    int64_t runs = now ? 0 : runs_under_way(asked);
    if (!stop_signal(process, now, &e))
        return e.code == ERR_NOT_FOUND ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
    fprintf(stderr, "stopping process %ld", (long)process->pid);
    if (runs > 0)
        fprintf(stderr, ", with %lld run%s under way", (long long)runs, runs == 1 ? "" : "s");
    fputc('\n', stderr);
    if (!wait_for_end(asked, process, wait_s)) {
        err_set(&e, ERR_DEADLINE_EXCEEDED,
                "process %ld still stops; weir stop --now cuts its turns", (long)process->pid);
        return cli_fail(EXIT_FAILED, &e);
    }
    if (asked->json)
        printf("{\"stopped\":true,\"pid\":%ld}\n", (long)process->pid);
    else
        printf("stopped\n");
    return EXIT_DONE;
}

static int stop_act(const struct asked *asked, void *ctx) {
    const struct stop_arguments *arguments = ctx;
    struct daemon_process process;
    struct err e;
    if (!stop_find(asked, &process, &e)) {
        if (e.code != ERR_NOT_FOUND) return cli_fail(EXIT_FAILED, &e);
        fprintf(stderr, "weir: %s\n", e.text);
        if (asked->json) printf("{\"stopped\":false}\n");
        return EXIT_DONE;
    }
    int code = stop_process(asked, &process, arguments->now, arguments->wait_s);
    daemon_process_done(&process);
    return code;
}

static bool stop_fits(const struct asked *asked, void *ctx) {
    struct stop_arguments *arguments = ctx;
    const char *wait = arguments->wait;
    bool timed = !wait || (str_to_u64(str_from(wait), &arguments->wait_s) &&
                           arguments->wait_s > 0 && arguments->wait_s < 1000000);
    if (!timed) fprintf(stderr, "weir: error: --wait must be a number of seconds above 0\n");
    return timed && cli_operands_fit(asked->config, 0, 0, NULL);
}

int command_stop(int arg_count, const char *const *args) {
    struct stop_arguments arguments = {.now = false};
    const struct argument_flag flags[] = {{.name = "now", .given = &arguments.now},
                                          {.name = "wait", .value = &arguments.wait},
                                          {.name = NULL}};
    const struct command_form form = {.usage = usage,
                                      .takes = TAKES_JSON | TAKES_DAEMON,
                                      .flags = flags,
                                      .fits = stop_fits,
                                      .act = stop_act};
    return cli_command(arg_count, args, &form, &arguments);
}
