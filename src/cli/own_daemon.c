#include "cli/own_daemon.h"

#include "base/file.h"
#include "base/mem.h"
#include "toolserver/sessions.h"
#include "wire/json.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READY_TRIES 3000 /* of LOOK_MS each */
#define LOOK_MS 20
#define PORTS_MAX_BYTES (64 * KIB)

void own_daemon_init(struct own_daemon *own) {
    *own = (struct own_daemon){.process = 0};
}

struct str own_daemon_token(const struct own_daemon *own) {
    return str_from(own->token);
}

/* --- starting ----------------------------------------------------------------------------- */

/* Only asynchronous-signal-safe functions may be called here. stdout is the command's. */
static void become_daemon(char *const *arguments, char *const *environment, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setpgid(0, 0); /* Ctrl-C is for the command */
    if (getppid() != parent) _exit(1);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    execve("/proc/self/exe", arguments, environment);
    _exit(127);
}

static bool make_folder(struct own_daemon *own, struct err *e) {
    const char *parent = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe) */
    if (!parent || !parent[0] || strlen(parent) > 40) parent = "/tmp";
    snprintf(own->folder, sizeof(own->folder), "%s/weir-own-XXXXXX", parent);
    if (mkdtemp(own->folder)) return true;
    own->folder[0] = '\0';
    return err_set(e, ERR_UNAVAILABLE, "no folder can be made in %s (errno %d)", parent, errno);
}

/* What the command prefers, its settings, then what this daemon needs: the last flag counts. */
static const char **arguments_of(const struct own_daemon_options *options, const char *ports) {
    const char *const flags[] = {"--http",      "127.0.0.1:0", "--grpc",       "off",
                                 "--nimi-grpc", "off",         "--nimi-http",  "off",
                                 "--admin",     "off",         "--ports-file", ports};
    size_t count = 0;
    const char **all = mem_zero(
        (size_t)options->arg_count + ARRAY_LEN(flags) + 3 + OWN_MORE_MAX, sizeof(*all));
    all[count++] = "weir";
    all[count++] = "serve";
    for (size_t i = 0; i < OWN_MORE_MAX && options->more[i]; i++)
        all[count++] = options->more[i];
    for (int i = 0; i < options->arg_count; i++) all[count++] = options->args[i];
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) all[count++] = flags[i];
    return all;
}

static bool start_process(struct own_daemon *own, const char **arguments, struct err *e) {
    extern char **environ;
    char id[TOOLSERVER_SESSION_BYTES];
    if (!toolserver_random_id(id, e)) return false;
    snprintf(own->token, sizeof(own->token), "%s", id);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a command has one thread so far */
    setenv("AGENT_AUTH_TOKEN", own->token, 1);
    pid_t self = getpid();
    pid_t process = fork();
    /* execve() does not change the texts. */
    if (process == 0)
        become_daemon((char *const *)(uintptr_t)arguments, (char *const *)environ, self);
    if (process < 0)
        return err_set(e, ERR_UNAVAILABLE, "no process can be started (errno %d)", errno);
    own->process = process;
    return true;
}

/* --- until it is ready -------------------------------------------------------------------- */

static void wait_a_moment(void) {
    const struct timespec moment = {.tv_nsec = LOOK_MS * 1000000L};
    nanosleep(&moment, NULL);
}

static bool has_ended(struct own_daemon *own) {
    int status;
    if (waitpid(own->process, &status, WNOHANG) != own->process) return false;
    own->process = 0;
    return true;
}

/* {"http":40123} */
static bool read_port(const char *path, int64_t *ret) {
    struct buf text;
    struct json ports;
    struct err e;
    buf_init(&text, PORTS_MAX_BYTES);
    bool found = file_read(str_from(path), &text, &e) &&
                 json_read(buf_str(&text), &ports, &e) &&
                 json_i64(json_find(ports, STR("http")), ret);
    buf_done(&text);
    return found;
}

static bool wait_for_port(struct own_daemon *own, const char *path, int64_t *ret,
                          struct err *e) {
    for (int i = 0; i < READY_TRIES; i++) {
        if (read_port(path, ret)) return true;
        if (has_ended(own))
            return err_set(
                e, ERR_UNAVAILABLE,
                "the daemon for this client did not start; see above. If another one "
                "has the data folder, name its endpoint with --url");
        wait_a_moment();
    }
    return err_set(e, ERR_UNAVAILABLE, "the daemon for this client is not ready yet");
}

bool own_daemon_start(struct own_daemon *own, const struct own_daemon_options *options,
                      struct buf *url, struct err *e) {
    char ports[96];
    int64_t port;
    if (!make_folder(own, e)) return false;
    snprintf(ports, sizeof(ports), "%s/ports.json", own->folder);
    const char **arguments = arguments_of(options, ports);
    bool ready = start_process(own, arguments, e) && wait_for_port(own, ports, &port, e);
    free(arguments);
    if (!ready) return false;
    buf_printf(url, "http://127.0.0.1:%lld", (long long)port);
    return buf_ok(url) || err_set(e, ERR_INTERNAL, "the URL is too long");
}

void own_daemon_stop(struct own_daemon *own) {
    char ports[96];
    if (own->process > 0) {
        kill(own->process, SIGTERM);
        while (waitpid(own->process, NULL, 0) < 0 && errno == EINTR) {
        }
        own->process = 0;
    }
    if (!own->folder[0]) return;
    snprintf(ports, sizeof(ports), "%s/ports.json", own->folder);
    unlink(ports);
    rmdir(own->folder);
    own->folder[0] = '\0';
}
