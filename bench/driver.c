/* driver: the client that measures.
 *
 *   driver turns  --port P --pid PID --key K --connections 8 --streams 32 --seconds 3
 *   driver paced  --port P --pid PID --key K --connections 1 --streams 1000 --chunks 1500 [--at-once]
 *   driver memory --port P --pid PID --key K --connections 1 --streams 1000 --chunks 200 [--brief]
 *   driver tokens --port P --pid PID --path /stream --streams 500 --chunks 800 --seconds 5
 *   driver tokens ... --http2 4        the turns share four HTTP/2 connections
 *   driver connections --port P --pid PID --connections 1000 [--calls --key K]
 *   driver start  --probe health|settings --runs 20 -- program args... {port}
 *   driver disk   --folder F
 *
 * One JSON line on stdout, or a sentence on stderr and status 1. It pins itself to --core
 * (1 unless said) and gives up by itself after --limit seconds.
 */
#include "connections.h"
#include "launch.h"
#include "load.h"
#include "tokens.h"

#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct settings {
    struct load_options load;
    enum launch_probe probe;
    unsigned runs, limit_seconds;
    unsigned http2; /* connections of `tokens`; 0: HTTP/1.1 */
    bool calls;     /* on the connections of `connections` */
    unsigned core, server_core;
    const char *folder, *path;
    char **command;
};

static bool do_turns(const struct settings *settings, struct err *e) {
    return load_turns(&settings->load, e);
}

static bool do_paced(const struct settings *settings, struct err *e) {
    return load_paced(&settings->load, e);
}

static bool do_memory(const struct settings *settings, struct err *e) {
    return load_memory(&settings->load, e);
}

static bool do_tokens(const struct settings *settings, struct err *e) {
    const struct load_options *load = &settings->load;
    return tokens_measure(&(struct tokens_options){.port = load->fleet.port,
                                                   .server = load->server,
                                                   .path = settings->path,
                                                   .turns = load->fleet.streams,
                                                   .connections = settings->http2,
                                                   .tokens = load->chunks,
                                                   .seconds = load->seconds},
                          e);
}

static bool do_connections(const struct settings *settings, struct err *e) {
    const struct load_options *load = &settings->load;
    return connections_measure(&(struct connections_options){.port = load->fleet.port,
                                                             .server = load->server,
                                                             .count = load->fleet.connections,
                                                             .calls = settings->calls,
                                                             .key = load->fleet.key},
                               e);
}

static bool do_start(const struct settings *settings, struct err *e) {
    return launch_times(settings->command, settings->probe, settings->runs,
                        settings->server_core, e);
}

static bool do_disk(const struct settings *settings, struct err *e) {
    return launch_disk(settings->folder, e);
}

static const struct mode {
    const char *name;
    bool (*run)(const struct settings *settings, struct err *e);
} modes[] = {
    {"turns", do_turns},
    {"paced", do_paced},
    {"memory", do_memory},
    {"start", do_start},
    {"disk", do_disk},
    {"tokens", do_tokens},
    {"connections", do_connections},
};

static const struct option options[] = {
    {"port", required_argument, NULL, 'p'},
    {"pid", required_argument, NULL, 'i'},
    {"key", required_argument, NULL, 'k'},
    {"connections", required_argument, NULL, 'c'},
    {"streams", required_argument, NULL, 's'},
    {"seconds", required_argument, NULL, 't'},
    {"chunks", required_argument, NULL, 'n'},
    {"probe", required_argument, NULL, 'b'},
    {"runs", required_argument, NULL, 'r'},
    {"folder", required_argument, NULL, 'f'},
    {"core", required_argument, NULL, 'o'},
    {"server-core", required_argument, NULL, 'v'},
    {"limit", required_argument, NULL, 'l'},
    {"path", required_argument, NULL, 'a'},
    {"http2", required_argument, NULL, 'h'},
    {"brief", no_argument, NULL, 'q'},
    {"calls", no_argument, NULL, 'y'},
    {"at-once", no_argument, NULL, 'u'},
    {0},
};

NORETURN static void complain(const char *what) {
    fprintf(stderr, "driver: %s; the usage stands at the top of bench/driver.c\n", what);
    exit(2);
}

static unsigned number(const char *text) {
    uint64_t value;
    if (!str_to_u64(str_from(text), &value) || value > 10000000) complain(text);
    return (unsigned)value;
}

static void settings_read(int argc, char **argv, struct settings *ret) {
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'p': ret->load.fleet.port = (int)number(optarg); break;
        case 'i': ret->load.server = (pid_t)number(optarg); break;
        case 'k': ret->load.fleet.key = str_from(optarg); break;
        case 'c': ret->load.fleet.connections = number(optarg); break;
        case 's': ret->load.fleet.streams = number(optarg); break;
        case 't': ret->load.seconds = number(optarg); break;
        case 'n': ret->load.chunks = number(optarg); break;
        case 'b':
            ret->probe =
                str_equal(str_from(optarg), STR("health")) ? LAUNCH_HEALTH : LAUNCH_SETTINGS;
            break;
        case 'q': ret->load.brief = true; break;
        case 'y': ret->calls = true; break;
        case 'u': ret->load.at_once = true; break;
        case 'r': ret->runs = number(optarg); break;
        case 'f': ret->folder = optarg; break;
        case 'h': ret->http2 = number(optarg); break;
        case 'a': ret->path = optarg; break;
        case 'o': ret->core = number(optarg); break;
        case 'v': ret->server_core = number(optarg); break;
        case 'l': ret->limit_seconds = number(optarg); break;
        default: complain("that option is not known");
        }
    }
    ret->command = argv + optind;
}

static void pin(unsigned core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    if (sched_setaffinity(0, sizeof(cores), &cores) < 0) perror("driver: sched_setaffinity");
}

int main(int argc, char **argv) {
    struct settings settings = {
        .load = {.fleet = {.connections = 8, .streams = 32, .key = STR("bench-key")},
                 .seconds = 3,
                 .chunks = 150},
        .runs = 20,
        .limit_seconds = 120,
        .core = 1,
        .folder = ".",
        .path = "/stream",
    };
    if (argc < 2) complain("name a mode");
    settings_read(argc - 1, argv + 1, &settings);
    pin(settings.core);
    signal(SIGPIPE, SIG_IGN);
    alarm(settings.limit_seconds);
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (!str_equal(str_from(modes[i].name), str_from(argv[1]))) continue;
        struct err e;
        if (modes[i].run(&settings, &e)) return 0;
        fprintf(stderr, "driver: %s: %s\n", argv[1], e.text);
        return 1;
    }
    complain("that mode is not known");
}
