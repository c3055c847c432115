#include "loop/guard.h"

#include "base/str.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SWEEPS_MAX 5000
#define SWEEP_NS 1000000
#define CANNOT_RUN 127
#define SIGNALLED 128

extern char **environ;

bool guard_asked(int arg_count, const char *const *args) {
    return arg_count > 3 && strcmp(args[0], GUARD_NAME) == 0;
}

/* --- the program -------------------------------------------------------------------------- */

static const int passed[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/* If the guard itself is killed, the program dies with it. */
static _Noreturn void run_program(const char *const *args, pid_t guard) {
    for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) signal(passed[i], SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    if (getppid() != guard) _exit(CANNOT_RUN);
    execve(args[2], (char *const *)(uintptr_t)(args + 3), environ);
    dprintf(STDERR_FILENO, "cannot run '%s': %s\n", args[2], strerror(errno));
    _exit(CANNOT_RUN);
}

static int guard_code_of(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : SIGNALLED + WTERMSIG(status);
}

/* --- remaining descendants ---------------------------------------------------------------- */

/* The text is "PID (NAME) STATE PPID ..."; NAME may contain anything. */
static bool is_child_of(const char *pid, pid_t parent) {
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t len = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[len > 0 ? len : 0] = '\0';
    const char *after = strrchr(text, ')');
    return after && strlen(after) > 4 && strtol(after + 4, NULL, 10) == parent;
}

static void kill_children(void) {
    DIR *all = opendir("/proc");
    struct dirent *entry;
    while (all && (entry = readdir(all))) { /* NOLINT(concurrency-mt-unsafe): one thread */
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        if (is_child_of(entry->d_name, getpid()))
            kill((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL);
    }
    if (all) closedir(all);
}

/* Kill and reap all descendants. As their parents die they become children of the guard. */
static void guard_sweep(void) {
    const struct timespec pause = {.tv_nsec = SWEEP_NS};
    for (unsigned i = 0; i < SWEEPS_MAX; i++) {
        pid_t done;
        do {
            done = waitpid(-1, NULL, WNOHANG);
        } while (done > 0);
        if (done < 0) return; /* no child is left */
        kill_children();
        nanosleep(&pause, NULL);
    }
}

/* --- watching ----------------------------------------------------------------------------- */

/* Wait until the program ends (true), the lifeline closes, or `ms` is over; below 0: no
 * limit. */
static bool program_ended(int process, bool watches_lifeline, int ms) {
    struct pollfd watched[] = {{.fd = process, .events = POLLIN},
                               {.fd = watches_lifeline ? GUARD_LIFELINE_FD : -1}};
    while (poll(watched, 2, ms) < 0 && errno == EINTR) {
    }
    return watched[0].revents != 0;
}

static int guard_watch(pid_t program, int grace_ms) {
    int status = 0;
    int process = (int)syscall(SYS_pidfd_open, program, 0);
    if (process < 0 || !program_ended(process, true, -1)) {
        kill(-program, grace_ms ? SIGTERM : SIGKILL);
        if (process >= 0 && grace_ms) program_ended(process, false, grace_ms);
    }
    kill(-program, SIGKILL);
    while (waitpid(program, &status, 0) < 0 && errno == EINTR) {
    }
    guard_sweep();
    return guard_code_of(status);
}

int guard_main(const char *const *args) {
    pid_t guard = getpid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    fcntl(GUARD_LIFELINE_FD, F_SETFD, FD_CLOEXEC);
    for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) signal(passed[i], SIG_IGN);
    pid_t program = fork();
    if (program == 0) run_program(args, guard);
    for (int fd = 0; fd < GUARD_LIFELINE_FD; fd++) close(fd);
    return program < 0 ? CANNOT_RUN : guard_watch(program, (int)strtol(args[1], NULL, 10));
}
