#include "launch.h"

#include "samples.h"

#include "base/buf.h"
#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READY_US 10000000u
#define STOP_US 10000000u
#define ARGS_MAX 64
#define ARG_BYTES 512
#define DISK_WRITES 500

static void nap(long us) {
    struct timespec span = {.tv_nsec = us * 1000};
    nanosleep(&span, NULL);
}

static struct sockaddr_in loopback(int port) {
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static bool free_port(int *ret, struct err *e) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in where = loopback(0);
    socklen_t len = sizeof(where);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&where, len) == 0 &&
              getsockname(fd, (struct sockaddr *)&where, &len) == 0;
    int why = errno;
    if (fd >= 0) close(fd);
    if (!ok) return err_set(e, ERR_INTERNAL, "no free port: %s", strerror(why));
    *ret = ntohs(where.sin_port);
    return true;
}

/* ---- one process ---- */

static void fill_in(const char *arg, int port, char ret[ARG_BYTES]) {
    const char *hole = strstr(arg, "{port}");
    if (!hole)
        snprintf(ret, ARG_BYTES, "%s", arg);
    else
        snprintf(ret, ARG_BYTES, "%.*s%d%s", (int)(hole - arg), arg, port, hole + 6);
}

NORETURN static void become(char **argv, int port, unsigned cpu) {
    static char texts[ARGS_MAX][ARG_BYTES];
    static char *args[ARGS_MAX + 1];
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(cpu, &cores);
    (void)sched_setaffinity(0, sizeof(cores), &cores);
    for (int i = 0; argv[i] && i < ARGS_MAX; i++) {
        fill_in(argv[i], port, texts[i]);
        args[i] = texts[i];
    }
    int quiet = open("/dev/null", O_WRONLY);
    if (quiet >= 0) {
        dup2(quiet, STDOUT_FILENO);
        dup2(quiet, STDERR_FILENO);
    }
    execv(args[0], args);
    _exit(127);
}

static void stop(pid_t pid) {
    uint64_t deadline_us = clock_mono_us() + STOP_US;
    kill(pid, SIGTERM);
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (clock_mono_us() > deadline_us) kill(pid, SIGKILL);
        nap(200);
    }
}

/* ---- the first answer ---- */

static bool ask(int fd, enum launch_probe probe) {
    static const struct str questions[] = {
        [LAUNCH_HEALTH] = STR_INIT("GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
        [LAUNCH_SETTINGS] = STR_INIT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"),
    };
    struct str question = questions[probe];
    return write(fd, question.at, question.len) == (ssize_t)question.len;
}

static bool answered(int fd, enum launch_probe probe) {
    char answer[64];
    ssize_t got = recv(fd, answer, sizeof(answer), 0);
    if (got < 12) return false;
    return probe == LAUNCH_HEALTH ? memcmp(answer, "HTTP/1.1 200", 12) == 0 : answer[3] == 4;
}

/* Connect, again and again, until somebody listens and answers. */
static bool wait_for_answer(int port, enum launch_probe probe, uint64_t deadline_us) {
    struct sockaddr_in where = loopback(port);
    struct timeval patience = {.tv_sec = 5};
    while (clock_mono_us() < deadline_us) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) return false;
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        bool here = connect(fd, (struct sockaddr *)&where, sizeof(where)) == 0;
        bool done = here && ask(fd, probe) && answered(fd, probe);
        close(fd);
        if (done) return true;
        nap(20);
    }
    return false;
}

static bool one_start(char **argv, enum launch_probe probe, unsigned cpu, uint32_t *ret_us,
                      struct err *e) {
    int port = 0;
    if (!free_port(&port, e)) return false;
    uint64_t start_us = clock_mono_us();
    pid_t pid = fork();
    if (pid < 0) return err_set(e, ERR_INTERNAL, "fork: %s", strerror(errno));
    if (pid == 0) become(argv, port, cpu);
    bool ready = wait_for_answer(port, probe, start_us + READY_US);
    *ret_us = (uint32_t)(clock_mono_us() - start_us);
    stop(pid);
    if (ready) return true;
    return err_set(e, ERR_DEADLINE_EXCEEDED, "%s did not answer within 10 s", argv[0]);
}

bool launch_times(char **argv, enum launch_probe probe, unsigned runs, unsigned cpu,
                  struct err *e) {
    struct samples times = {0};
    for (unsigned i = 0; i < runs; i++) {
        uint32_t us = 0;
        if (!one_start(argv, probe, cpu, &us, e)) return false;
        samples_add(&times, us);
    }
    samples_sort(&times);
    printf("{\"mode\": \"start\", \"probe\": \"%s\", \"runs\": %u, \"start_us\": {\"min\": %u, "
           "\"p50\": %u, \"max\": %u}}\n",
           probe == LAUNCH_HEALTH ? "health" : "settings", runs, samples_at(&times, 0),
           samples_at(&times, 500), samples_at(&times, 1000));
    samples_done(&times);
    return true;
}

/* ---- the disk ---- */

static bool sync_many(int fd, struct samples *times, struct err *e) {
    static const char block[4096] = "weir";
    for (unsigned i = 0; i < DISK_WRITES; i++) {
        uint64_t start_us = clock_mono_us();
        if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block) || fdatasync(fd) < 0)
            return err_set(e, ERR_UNAVAILABLE, "write and fdatasync: %s", strerror(errno));
        samples_add(times, (uint32_t)(clock_mono_us() - start_us));
    }
    return true;
}

bool launch_disk(const char *folder, struct err *e) {
    struct buf path;
    struct samples times = {0};
    buf_init(&path, 4 * KIB);
    buf_printf(&path, "%s/disk-probe-XXXXXX", folder);
    buf_append_byte(&path, '\0');
    int fd = mkstemp(path.at);
    if (fd < 0) return err_set(e, ERR_UNAVAILABLE, "%s: %s", path.at, strerror(errno));
    unlink(path.at);
    buf_done(&path);
    bool ok = sync_many(fd, &times, e);
    close(fd);
    if (!ok) return false;
    samples_sort(&times);
    printf("{\"mode\": \"disk\", \"writes\": %u, \"fdatasync_us\": {\"p50\": %u, \"p99\": %u, "
           "\"max\": %u}}\n",
           DISK_WRITES, samples_at(&times, 500), samples_at(&times, 990),
           samples_at(&times, 1000));
    samples_done(&times);
    return true;
}
