#include "cli/own_daemon.h"

#include "base/file.h"
#include "base/mem.h"
#include "daemon/client_lock.h"
#include "store/store_folder.h"
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
#define PORTS_PATH_BYTES 96

void own_daemon_init(struct own_daemon *own) {
    *own = (struct own_daemon){.lock = -1};
}

/* --- starting ----------------------------------------------------------------------------- */

/* Only asynchronous-signal-safe functions may be called here. stdout is the command's. */
static void become_daemon(char *const *arguments, char *const *environment, pid_t parent,
                          bool shared) {
    if (!shared) prctl(PR_SET_PDEATHSIG, SIGTERM);
    setsid(); /* Ctrl-C, and the end of the terminal, are for the command */
    if (getppid() != parent) _exit(1);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    execve("/proc/self/exe", arguments, environment);
    _exit(127);
}

/* What the command prefers, its settings, then what this daemon needs: the last flag counts.
 * ports  the name of its ports file, or "" */
static const char **arguments_of(const struct own_daemon_options *options, const char *ports) {
    const char *const flags[] = {"--http",      "127.0.0.1:0", "--grpc",       "off",
                                 "--nimi-grpc", "off",         "--nimi-http",  "off",
                                 "--admin",     "off",         "--ports-file", ports};
    size_t count = 0, flag_count = ARRAY_LEN(flags) - (ports[0] ? 0 : 2);
    const char **all = mem_zero(
        (size_t)options->arg_count + ARRAY_LEN(flags) + 3 + OWN_MORE_MAX, sizeof(*all));
    all[count++] = "weir";
    all[count++] = "serve";
    for (size_t i = 0; i < OWN_MORE_MAX && options->more[i]; i++)
        all[count++] = options->more[i];
    for (int i = 0; i < options->arg_count; i++) all[count++] = options->args[i];
    for (size_t i = 0; i < flag_count; i++) all[count++] = flags[i];
    return all;
}

static bool start_process(struct own_daemon *own, const char **arguments, struct err *e) {
    extern char **environ;
    char id[TOOLSERVER_SESSION_BYTES];
    bool shared = own->lock >= 0;
    if (!toolserver_random_id(id, e)) return false;
    snprintf(own->token, sizeof(own->token), "%s", id);
    /* NOLINTBEGIN(concurrency-mt-unsafe): a command has one thread so far */
    setenv("AGENT_AUTH_TOKEN", own->token, 1);
    setenv(OWN_DAEMON_VARIABLE, shared ? OWN_DAEMON_SHARED : OWN_DAEMON_UNSHARED, 1);
    /* NOLINTEND(concurrency-mt-unsafe) */
    pid_t self = getpid();
    pid_t process = fork();
    /* execve() does not change the texts. */
    if (process == 0)
        become_daemon((char *const *)(uintptr_t)arguments, (char *const *)environ, self,
                      shared);
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

static bool own_daemon_has_ended(struct own_daemon *own) {
    int status;
    if (waitpid(own->process, &status, WNOHANG) != own->process) return false;
    own->process = 0;
    return true;
}

/* {"http":40123} */
static bool read_ports_file(const char *path, struct buf *url) {
    struct buf text;
    struct json ports;
    struct err e;
    int64_t port;
    buf_init(&text, PORTS_MAX_BYTES);
    bool found = file_read(str_from(path), &text, &e) &&
                 json_read(buf_str(&text), &ports, &e) &&
                 json_i64(json_find(ports, STR("http")), &port);
    buf_done(&text);
    if (found) buf_printf(url, "http://127.0.0.1:%lld", (long long)port);
    return found;
}

/* Another daemon may have the data folder, and then the token in it is not ours. */
static bool read_left(const struct own_daemon *own, struct str folder, struct buf *url) {
    struct buf token;
    buf_init(&token, KIB);
    bool ours = shared_daemon_read(folder, url, &token) &&
                str_equal(buf_str(&token), str_from(own->token));
    if (!ours) buf_clear(url);
    buf_done(&token);
    return ours;
}

/* ports  its ports file; "": it is shared */
static bool wait_for_url(struct own_daemon *own, const struct config *config, const char *ports,
                         struct buf *url, struct err *e) {
    for (int i = 0; i < READY_TRIES; i++) {
        if (ports[0] ? read_ports_file(ports, url) : read_left(own, config->data, url))
            return true;
        if (own_daemon_has_ended(own))
            return err_set(
                e, ERR_UNAVAILABLE,
                "the daemon for this client did not start; see above. If another one "
                "has the data folder, name its endpoint with --url");
        wait_a_moment();
    }
    return err_set(e, ERR_UNAVAILABLE, "the daemon for this client is not ready yet");
}

/* --- a daemon of one command -------------------------------------------------------------- */

static bool own_daemon_make_folder(struct own_daemon *own, struct err *e) {
    const char *parent = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe) */
    if (!parent || !parent[0] || strlen(parent) > 40) parent = "/tmp";
    snprintf(own->folder, sizeof(own->folder), "%s/weir-own-XXXXXX", parent);
    if (mkdtemp(own->folder)) return true;
    own->folder[0] = '\0';
    return err_set(e, ERR_UNAVAILABLE, "no folder can be made in %s (errno %d)", parent, errno);
}

static void own_daemon_remove_folder(struct own_daemon *own) {
    char ports[PORTS_PATH_BYTES];
    if (!own->folder[0]) return;
    snprintf(ports, sizeof(ports), "%s/ports.json", own->folder);
    unlink(ports);
    rmdir(own->folder);
    own->folder[0] = '\0';
}

static bool own_daemon_run(struct own_daemon *own, const struct own_daemon_options *options,
                           const char *ports, struct daemon_target *target, struct err *e) {
    const char **arguments = arguments_of(options, ports);
    bool ready = start_process(own, arguments, e) &&
                 wait_for_url(own, options->config, ports, &target->base, e);
    free(arguments);
    if (ready) daemon_target_authorize(target, str_from(own->token));
    return ready && (buf_ok(&target->base) || err_set(e, ERR_INTERNAL, "the URL is too long"));
}

static bool start_unshared(struct own_daemon *own, const struct own_daemon_options *options,
                           struct daemon_target *target, struct err *e) {
    char ports[PORTS_PATH_BYTES];
    if (!own_daemon_make_folder(own, e)) return false;
    snprintf(ports, sizeof(ports), "%s/ports.json", own->folder);
    bool ready = own_daemon_run(own, options, ports, target, e);
    own_daemon_remove_folder(own);
    return ready;
}

/* --- a shared one ------------------------------------------------------------------------- */

/* False: it cannot be shared. */
static bool take_lock(struct own_daemon *own, const struct config *config) {
    struct err none;
    char *folder = str_dup(config->data);
    bool may = shared_daemon_may_be(config) && store_folder_make(folder, &none);
    free(folder);
    if (may) own->lock = client_lock_open(config->data, true);
    return own->lock >= 0 && client_lock_wait(own->lock) && client_lock_begin(own->lock);
}

static void drop_lock(struct own_daemon *own) {
    if (own->lock >= 0) close(own->lock);
    own->lock = -1;
}

static void own_daemon_end(struct own_daemon *own) {
    if (own->process <= 0) return;
    kill(own->process, SIGTERM);
    while (waitpid(own->process, NULL, 0) < 0 && errno == EINTR) {
    }
    own->process = 0;
}

/* Of commands that come at once, one starts a daemon and the others wait for it here. */
static bool start_shared(struct own_daemon *own, const struct own_daemon_options *options,
                         struct daemon_target *target, struct err *e) {
    bool joined = !options->alone && daemon_target_join(target, options->config);
    bool ready = joined || own_daemon_run(own, options, "", target, e);
    if (!ready) own_daemon_end(own); /* before the next one tries */
    client_lock_begun(own->lock);
    if (joined) drop_lock(own); /* the target has a share of its own */
    return ready;
}

bool own_daemon_start(struct own_daemon *own, const struct own_daemon_options *options,
                      struct daemon_target *target, struct err *e) {
    shared_daemon_leave(&target->shared); /* one that does not answer */
    buf_clear(&target->base);
    if (take_lock(own, options->config)) return start_shared(own, options, target, e);
    drop_lock(own);
    return start_unshared(own, options, target, e);
}

/* --- the end ------------------------------------------------------------------------------ */

void own_daemon_stop(struct own_daemon *own) {
    if (own->lock < 0 || client_lock_alone(own->lock)) own_daemon_end(own);
    own->process = 0;
    drop_lock(own);
    own_daemon_remove_folder(own);
}
