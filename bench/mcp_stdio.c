/* mcp_stdio: what a warm call of a tool costs beside a raw pipe to the same server.
 *
 *     mcp_stdio [CALLS [ROUNDS]]      100,000 calls a round, 3 rounds
 *
 * The server is this program once more (`mcp_stdio serve`): a loop of read and write that answers
 * with the text it was sent. In each round it is asked so often by
 *
 *     raw       write() and read() in this thread, one call after the other
 *     weir      a turn's loop, through the hub's thread, one call after the other
 *     weir 64   the same with 64 calls at once
 *
 * and at last cold: from the settings' first word of a server to the answer of its first call.
 * Prints the time of a call (mean, p50, p99) and the CPU time of this process and of the server
 * for one. Threads go where the kernel puts them; `taskset -c 0` keeps all on one core. */
#include "samples.h"

#include "base/mem.h"
#include "loop/guard.h"
#include "mcp/hub.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES (64 * 1024)
#define ARGUMENTS "{\"text\":\"a few words that a tool may be asked with\"}"

static _Noreturn void give_up(const char *what) {
    fprintf(stderr, "mcp_stdio: %s\n", what);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

/* --- the server --------------------------------------------------------------------------- */

static void answer_line(const char *line) {
    static char out[LINE_MAX_BYTES];
    const char *id = strstr(line, "\"id\":");
    const char *text = strstr(line, "\"text\":");
    int len;
    if (!id) return; /* a notification */
    unsigned long long number = strtoull(id + 5, NULL, 10);
    if (strstr(line, "\"tools/call\"") && text) {
        len = snprintf(out, sizeof(out),
                       "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":{\"content\":[{\"type\":"
                       "\"text\",%.*s}]}}\n",
                       number, (int)strcspn(text, "}"), text);
    } else if (strstr(line, "\"tools/list\"")) {
        len = snprintf(out, sizeof(out),
                       "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":{\"tools\":[{\"name\":"
                       "\"echo\",\"inputSchema\":{\"type\":\"object\"}}]}}\n",
                       number);
    } else if (strstr(line, "\"initialize\"")) {
        len = snprintf(out, sizeof(out),
                       "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":{\"protocolVersion\":"
                       "\"2025-11-25\",\"capabilities\":{},\"serverInfo\":{\"name\":\"e\","
                       "\"version\":\"1\"}}}\n",
                       number);
    } else {
        len = snprintf(out, sizeof(out),
                       "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"error\":{\"code\":-32601,"
                       "\"message\":\"no\"}}\n",
                       number);
    }
    if (write(1, out, (size_t)len) != len) exit(0);
}

static int serve(void) {
    static char in[LINE_MAX_BYTES];
    size_t have = 0;
    ssize_t got;
    while ((got = read(0, in + have, sizeof(in) - 1 - have)) > 0) {
        char *line = in, *end;
        have += (size_t)got;
        in[have] = '\0';
        for (; (end = memchr(line, '\n', have - (size_t)(line - in))); line = end + 1) {
            *end = '\0';
            answer_line(line);
        }
        have -= (size_t)(line - in);
        memmove(in, line, have);
    }
    return 0;
}

/* --- figures ------------------------------------------------------------------------------ */

struct round {
    struct samples ns;
    uint64_t began_ns, cpu_us;
};

static uint64_t cpu_us(int who) {
    struct rusage used;
    getrusage(who, &used);
    return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000u +
           (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static void begin_round(struct round *round) {
    *round = (struct round){.began_ns = now_ns(), .cpu_us = cpu_us(RUSAGE_SELF)};
}

static void end_round(struct round *round, const char *name) {
    double calls = (double)round->ns.count;
    double cpu = (double)(cpu_us(RUSAGE_SELF) - round->cpu_us);
    double all_us = (double)(now_ns() - round->began_ns) / 1000;
    samples_sort(&round->ns);
    printf("%-8s %8.0f calls/s   %6.2f us a call   p50 %6.2f   p99 %7.2f   CPU %5.2f us\n",
           name, calls * 1e6 / all_us, all_us / calls, samples_at(&round->ns, 500) / 1000.0,
           samples_at(&round->ns, 990) / 1000.0, cpu / calls);
    fflush(stdout);
    samples_done(&round->ns);
}

/* --- raw ---------------------------------------------------------------------------------- */

static void read_line(int fd) {
    static char in[LINE_MAX_BYTES];
    for (;;) {
        ssize_t got = read(fd, in, sizeof(in));
        if (got <= 0) give_up("the raw server is gone");
        if (in[got - 1] == '\n') return;
    }
}

static void ask_raw(int in, int out, unsigned calls, struct samples *ns) {
    char line[1024];
    for (unsigned i = 0; i < calls; i++) {
        uint64_t began_ns = now_ns();
        int len =
            snprintf(line, sizeof(line),
                     "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"tools/call\",\"params\":{"
                     "\"name\":\"echo\",\"arguments\":" ARGUMENTS "}}\n",
                     i + 1);
        if (write(in, line, (size_t)len) != len) give_up("the raw server is gone");
        read_line(out);
        samples_add(ns, (uint32_t)(now_ns() - began_ns));
    }
}

static void measure_raw(const char *program, unsigned calls) {
    int to[2], from[2];
    struct round round;
    if (pipe(to) || pipe(from)) give_up("no pipe");
    pid_t server = fork();
    if (server == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[1]);
        close(from[0]);
        execl(program, program, "serve", (char *)NULL);
        _exit(1);
    }
    struct samples warm = {0};
    ask_raw(to[1], from[0], 1000, &warm);
    samples_done(&warm);
    begin_round(&round);
    ask_raw(to[1], from[0], calls, &round.ns);
    end_round(&round, "raw");
    close(to[1]);
    close(to[0]);
    close(from[0]);
    close(from[1]);
    waitpid(server, NULL, 0);
}

/* --- weir --------------------------------------------------------------------------------- */

struct bench {
    struct loop *loop;
    struct mcp_server *server;
    unsigned left, out;
    struct samples *ns;
};

struct asked {
    struct bench *bench;
    uint64_t began_ns;
    struct task again;
};

static void on_answer(struct json result, const struct err *failed, void *ctx) {
    struct asked *asked = ctx;
    struct bench *bench = asked->bench;
    (void)result;
    if (failed) give_up(failed->text);
    samples_add(bench->ns, (uint32_t)(now_ns() - asked->began_ns));
    loop_defer(bench->loop, &asked->again);
}

static void ask_once(void *ctx) {
    static const struct mcp_request request = {
        .caller = {STR_INIT("u"), STR_INIT("w"), STR_INIT("s")},
        .method = "tools/call",
        .name = STR_INIT("echo"),
        .params = STR_INIT("{\"name\":\"echo\",\"arguments\":" ARGUMENTS "}"),
        .schema = STR_INIT("")};
    struct asked *asked = ctx;
    struct bench *bench = asked->bench;
    if (bench->left == 0) {
        if (--bench->out == 0) loop_stop(bench->loop);
        return;
    }
    bench->left--;
    asked->began_ns = now_ns();
    mcp_remote_start(bench->server, bench->loop, &request, on_answer, asked);
}

static void ask_weir(struct bench *bench, unsigned at_once, unsigned calls,
                     struct samples *ns) {
    struct asked all[64];
    bench->left = calls;
    bench->out = at_once;
    bench->ns = ns;
    for (unsigned i = 0; i < at_once; i++) {
        all[i] = (struct asked){.bench = bench};
        task_init(&all[i].again, ask_once, &all[i]);
        loop_defer(bench->loop, &all[i].again);
    }
    loop_run(bench->loop);
}

static void measure_weir(const char *program, unsigned calls) {
    const char *const args[] = {program, "serve", NULL};
    const char *const environment[] = {NULL};
    struct http_pool *pool = http_pool_new();
    struct bench bench = {.loop = loop_new()};
    struct round round;
    struct samples first = {0}, warm = {0};
    uint64_t began_ns = now_ns();
    struct mcp_hub *hub = mcp_hub_new(pool, STR_EMPTY);
    bench.server = mcp_server_get(
        hub, &(struct mcp_server_options){
                 .name = STR("echo"), .program = args, .environment = environment});
    ask_weir(&bench, 1, 1, &first);
    printf("cold     %8.2f ms until the first answer\n", (double)(now_ns() - began_ns) / 1e6);
    ask_weir(&bench, 64, 1000, &warm);
    begin_round(&round);
    ask_weir(&bench, 1, calls, &round.ns);
    end_round(&round, "weir");
    begin_round(&round);
    ask_weir(&bench, 64, calls, &round.ns);
    end_round(&round, "weir 64");
    samples_done(&first);
    samples_done(&warm);
    mcp_hub_stop(hub);
    mcp_server_unref(bench.server);
    mcp_hub_free(hub);
    http_pool_free(pool);
    loop_free(bench.loop);
}

int main(int arg_count, char **args) {
    if (guard_asked(arg_count, (const char *const *)args))
        return guard_main((const char *const *)args);
    if (arg_count == 2 && strcmp(args[1], "serve") == 0) return serve();
    unsigned calls = arg_count > 1 ? (unsigned)strtoul(args[1], NULL, 10) : 100000;
    unsigned rounds = arg_count > 2 ? (unsigned)strtoul(args[2], NULL, 10) : 3;
    char program[4096];
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (len < 0 || !calls) give_up("usage: mcp_stdio [CALLS [ROUNDS]]");
    program[len] = '\0';
    signal(SIGPIPE, SIG_IGN);
    for (unsigned i = 0; i < rounds; i++) {
        measure_raw(program, calls);
        measure_weir(program, calls);
    }
    return 0;
}
