#include "loop/child.h"

#include "base/mem.h"
#include "loop/guard.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#define PIECE_BYTES (16 * KIB)
#define FD_FIRST 3 /* after standard input, output and error */

/* What the loop watches: the child's output, its errors, its input, and its end. */
enum { WATCH_OUTPUT, WATCH_COMPLAINT, WATCH_INPUT, WATCH_END, WATCH_COUNT };

#define GUARD_GRACE_TEXT "500"

struct watched {
    uv_poll_t poll;
    int fd;
};

struct child {
    struct child_sink sink;
    void *ctx;
    pid_t pid;
    struct watched watched[WATCH_COUNT];
    unsigned open;    /* handles that libuv has not closed yet */
    int complaint_fd; /* -1: its standard error is reported as it arrives */
    int lifeline_fd;  /* closing it makes the guard end the child; -1: no guard */
    struct buf unsent;
    size_t sent; /* of `unsent`, since it was last emptied */
    bool reaped, killed, stopped;
    int status; /* from waitpid(), once reaped */
};

/* --- its end ------------------------------------------------------------------------------ */

static void child_free(struct child *child) {
    if (child->complaint_fd >= 0) close(child->complaint_fd);
    if (child->lifeline_fd >= 0) close(child->lifeline_fd);
    buf_done(&child->unsent);
    free(child);
}

static void child_on_closed(uv_handle_t *handle) {
    struct child *child = handle->data;
    if (--child->open) return;
    child_free(child);
}

/* Take the descriptor out of the loop before closing it: another loop may get the same
 * number. */
static void unwatch(struct child *child, size_t which) {
    struct watched *watched = &child->watched[which];
    if (watched->fd < 0) return;
    uv_close((uv_handle_t *)&watched->poll, child_on_closed);
    close(watched->fd);
    watched->fd = -1;
}

static bool is_watched(const struct child *child, size_t which) {
    return child->watched[which].fd >= 0;
}

static void report_end(struct child *child) {
    char room[CHILD_COMPLAINT_BYTES]; /* the file has this size, with zeros after the text */
    ssize_t len =
        child->complaint_fd < 0 ? 0 : pread(child->complaint_fd, room, sizeof(room), 0);
    struct str complaint = str_of(room, len > 0 ? (size_t)len : 0);
    bool exited = WIFEXITED(child->status);
    struct child_end end = {.exit_code = exited ? WEXITSTATUS(child->status) : -1,
                            .signal = exited ? 0 : WTERMSIG(child->status),
                            .complaint = str_head(complaint, str_find_byte(complaint, '\0'))};
    child->killed = true; /* no more callbacks */
    child->sink.on_end(&end, child->ctx);
}

/* Report the end once the child is reaped and its output is read. It is freed later, when libuv
 * has closed all handles. */
static void child_settle(struct child *child) {
    bool over = !is_watched(child, WATCH_OUTPUT) && !is_watched(child, WATCH_COMPLAINT) &&
                child->reaped;
    if (over && !child->killed) report_end(child);
}

/* Kill the group first: the pid cannot be reused until the child is waited for. If SIGCHLD is
 * ignored in this process, the system reaps children itself; they are then treated as done. */
static void reap(struct child *child) {
    pid_t done;
    kill(-child->pid, SIGKILL);
    do {
        done = waitpid(child->pid, &child->status, 0);
    } while (done < 0 && errno == EINTR);
    if (done < 0) child->status = 0;
    child->reaped = true;
}

static void child_on_ended(uv_poll_t *poll, int status, int events) {
    struct child *child = poll->data;
    (void)status, (void)events;
    reap(child);
    unwatch(child, WATCH_INPUT);
    unwatch(child, WATCH_END);
    child_settle(child);
}

/* --- its output --------------------------------------------------------------------------- */

static void child_report(struct child *child, size_t which, struct str bytes) {
    void (*tell)(struct str bytes, void *ctx) =
        which == WATCH_OUTPUT ? child->sink.on_output : child->sink.on_complaint;
    if (tell) tell(bytes, child->ctx);
}

static void take_from(struct child *child, size_t which) {
    char room[PIECE_BYTES];
    ssize_t len;
    do {
        len = read(child->watched[which].fd, room, sizeof(room));
    } while (len < 0 && errno == EINTR);
    if (len > 0) {
        child_report(child, which, str_of(room, (size_t)len));
        return;
    }
    if (len < 0 && errno == EAGAIN) return;
    unwatch(child, which);
    child_settle(child);
}

static void on_readable(uv_poll_t *poll, int status, int events) {
    (void)status, (void)events;
    take_from(poll->data, WATCH_OUTPUT);
}

static void on_complains(uv_poll_t *poll, int status, int events) {
    (void)status, (void)events;
    take_from(poll->data, WATCH_COMPLAINT);
}

/* --- its input ---------------------------------------------------------------------------- */

/* Number of bytes that the pipe accepted; -1: it has no reader any more. */
static ssize_t write_some(int fd, struct str bytes) {
    ssize_t len;
    do {
        len = write(fd, bytes.at, bytes.len);
    } while (len < 0 && errno == EINTR);
    return len < 0 && errno == EAGAIN ? 0 : len;
}

static void on_writable(uv_poll_t *poll, int status, int events) {
    struct child *child = poll->data;
    struct watched *watched = &child->watched[WATCH_INPUT];
    (void)status, (void)events;
    ssize_t len = write_some(watched->fd, str_skip(buf_str(&child->unsent), child->sent));
    if (len < 0) {
        unwatch(child, WATCH_INPUT);
        return;
    }
    child->sent += (size_t)len;
    if (child->sent < child->unsent.len) return;
    child->sent = 0;
    buf_release(&child->unsent);
    uv_poll_stop(&watched->poll);
}

/* The pipe takes 64 KiB at a time: what was sent is dropped only when it is the greater part, so
 * that a long message is not moved for each piece of it. */
static void drop_sent(struct child *child) {
    if (child->sent < child->unsent.len / 2) return;
    buf_drop(&child->unsent, child->sent);
    child->sent = 0;
}

bool child_write(struct child *child, struct str bytes) {
    struct watched *watched = &child->watched[WATCH_INPUT];
    if (watched->fd < 0 || child->killed) return false;
    size_t waits = child->unsent.len - child->sent;
    if (waits && waits + bytes.len > CHILD_UNSENT_MAX_BYTES) return false;
    ssize_t len = waits ? 0 : write_some(watched->fd, bytes);
    if (len < 0) return false;
    if ((size_t)len == bytes.len) return true;
    drop_sent(child);
    buf_append(&child->unsent, str_skip(bytes, (size_t)len));
    return uv_poll_start(&watched->poll, UV_WRITABLE, on_writable) == 0;
}

void child_hold(struct child *child, bool hold) {
    uv_poll_t *poll = &child->watched[WATCH_OUTPUT].poll;
    if (!is_watched(child, WATCH_OUTPUT) || child->killed) return;
    if (hold == !uv_is_active((uv_handle_t *)poll)) return;
    if (hold) {
        uv_poll_stop(poll);
    } else {
        uv_poll_start(poll, UV_READABLE, on_readable);
    }
}

/* --- its start ---------------------------------------------------------------------------- */

/* The descriptors created by a start; -1: none, or no longer ours. */
enum {
    INPUT,
    OUTPUT,
    COMPLAINT,
    LIFELINE,
    OUTPUT_HERE,
    INPUT_HERE,
    COMPLAINT_HERE,
    LIFELINE_HERE,
    PROCESS,
    FD_COUNT
};

static void close_all(int fds[FD_COUNT]) {
    for (size_t i = 0; i < FD_COUNT; i++) {
        if (fds[i] >= 0) close(fds[i]);
    }
}

/* Without standard input or output in this process, new descriptors could get their numbers,
 * and the child's standard descriptors would overwrite each other. */
static bool lift(int *fd) {
    if (*fd >= FD_FIRST) return true;
    int lifted = *fd < 0 ? -1 : fcntl(*fd, F_DUPFD_CLOEXEC, FD_FIRST);
    if (*fd >= 0) close(*fd);
    *fd = lifted;
    return lifted >= 0;
}

static bool child_write_all(int fd, struct str bytes) {
    while (bytes.len) {
        ssize_t len = write(fd, bytes.at, bytes.len);
        if (len < 0 && errno == EINTR) continue;
        if (len <= 0) return false;
        bytes = str_skip(bytes, (size_t)len);
    }
    return lseek(fd, 0, SEEK_SET) == 0;
}

/* The file has a fixed size, so a child that writes endless errors gets ENOSPC. */
static int complaint_new(void) {
    int fd = memfd_create("complaint", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return fd;
    if (ftruncate(fd, CHILD_COMPLAINT_BYTES) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Our own end does not block. */
static bool open_pipe(int *ret_read, int *ret_write, int *ours) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    *ret_read = ends[0];
    *ret_write = ends[1];
    return lift(ret_read) && lift(ret_write) && fcntl(*ours, F_SETFL, O_NONBLOCK) == 0;
}

static bool open_input(const struct child_options *options, int fds[FD_COUNT]) {
    if (options->talks) return open_pipe(&fds[INPUT], &fds[INPUT_HERE], &fds[INPUT_HERE]);
    fds[INPUT] = memfd_create("input", MFD_CLOEXEC);
    return lift(&fds[INPUT]) && child_write_all(fds[INPUT], options->input);
}

static bool reports(const struct child_options *options) {
    return options->talks || options->reports;
}

static bool open_complaint(const struct child_options *options, int fds[FD_COUNT]) {
    if (reports(options))
        return open_pipe(&fds[COMPLAINT_HERE], &fds[COMPLAINT], &fds[COMPLAINT_HERE]);
    fds[COMPLAINT] = complaint_new();
    return lift(&fds[COMPLAINT]);
}

static bool open_all(int fds[FD_COUNT], const struct child_options *options) {
    return open_input(options, fds) && open_complaint(options, fds) &&
           open_pipe(&fds[OUTPUT_HERE], &fds[OUTPUT], &fds[OUTPUT_HERE]) &&
           (!options->guard ||
            open_pipe(&fds[LIFELINE], &fds[LIFELINE_HERE], &fds[LIFELINE_HERE]));
}

/* Returns 0, or the errno of the failure. */
static int spawn(const struct child_options *options, const char *path, const char *const *args,
                 const int fds[FD_COUNT], pid_t *ret) {
    static const int usual[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGCHLD};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    for (size_t i = 0; i < ARRAY_LEN(usual); i++) sigaddset(&defaults, usual[i]);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, fds[INPUT], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, fds[OUTPUT], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, fds[COMPLAINT], STDERR_FILENO);
    if (fds[LIFELINE] >= 0)
        posix_spawn_file_actions_adddup2(&files, fds[LIFELINE], GUARD_LIFELINE_FD);
    posix_spawnattr_init(&how);
    posix_spawnattr_setpgroup(&how, 0);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &defaults);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                       POSIX_SPAWN_SETSIGDEF);
    int failed = posix_spawn(ret, path, &files, &how, (char *const *)(uintptr_t)args,
                             (char *const *)(uintptr_t)options->environment);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

/* The guard is this same program; it starts the other one. */
static int spawn_guard(const struct child_options *options, const int fds[FD_COUNT],
                       pid_t *ret) {
    size_t count = 0;
    while (options->args[count]) count++;
    const char **args = mem_zero(count + 4, sizeof(char *));
    args[0] = GUARD_NAME;
    args[1] = reports(options) ? GUARD_GRACE_TEXT : "0";
    args[2] = options->path;
    for (size_t i = 0; i < count; i++) args[3 + i] = options->args[i];
    int failed = spawn(options, options->guard, args, fds, ret);
    free(args);
    return failed;
}

static int spawn_any(const struct child_options *options, const int fds[FD_COUNT], pid_t *ret) {
    if (!options->guard) return spawn(options, options->path, options->args, fds, ret);
    if (access(options->path, X_OK) != 0) return errno;
    return spawn_guard(options, fds, ret);
}

/* Takes *fd, and sets it to -1, once libuv has a handle for it. */
static bool child_watch(struct child *child, size_t which, struct loop *loop, int *fd,
                        uv_poll_cb on_ready) {
    struct watched *watched = &child->watched[which];
    if (*fd < 0 || uv_poll_init(loop_uv(loop), &watched->poll, *fd) != 0) return false;
    watched->fd = *fd;
    *fd = -1;
    watched->poll.data = child;
    child->open++;
    return !on_ready || uv_poll_start(&watched->poll, UV_READABLE, on_ready) == 0;
}

static bool cannot_start(const char *path, int reason, struct err *e) {
    bool absent = reason == ENOENT || reason == EACCES || reason == ENOEXEC;
    return err_set(e, absent ? ERR_NOT_FOUND : ERR_RESOURCE_EXHAUSTED, "cannot run '%s': %s",
                   path, strerrordesc_np(reason));
}

/* Kill the child's group. A guard learns of it through the lifeline; it ends the program, then
 * itself. */
static void end_child(struct child *child) {
    if (child->lifeline_fd < 0) {
        kill(-child->pid, SIGKILL);
        return;
    }
    close(child->lifeline_fd);
    child->lifeline_fd = -1;
}

/* The child runs but cannot be watched: end it. */
static void child_give_up(struct child *child) {
    child->killed = true;
    if (child->lifeline_fd >= 0) end_child(child);
    reap(child);
    bool watched = child->open;
    for (size_t i = 0; i < WATCH_COUNT; i++) unwatch(child, i);
    if (!watched) child_free(child);
}

bool child_start(struct loop *loop, const struct child_options *options,
                 const struct child_sink *sink, void *ctx, struct child **ret, struct err *e) {
    int fds[FD_COUNT] = {-1, -1, -1, -1, -1, -1, -1, -1, -1};
    pid_t pid = 0;
    assert(loop_uv(loop));
    int failed = open_all(fds, options) ? spawn_any(options, fds, &pid) : errno;
    if (failed) {
        close_all(fds);
        return cannot_start(options->path, failed, e);
    }
    struct child *child = MEM_NEW(struct child);
    child->sink = *sink;
    child->ctx = ctx;
    child->pid = pid;
    buf_init(&child->unsent, SIZE_MAX);
    child->complaint_fd = reports(options) ? -1 : fds[COMPLAINT];
    if (!reports(options)) fds[COMPLAINT] = -1;
    child->lifeline_fd = fds[LIFELINE_HERE];
    fds[LIFELINE_HERE] = -1;
    for (size_t i = 0; i < WATCH_COUNT; i++) child->watched[i].fd = -1;
    fds[PROCESS] = (int)syscall(SYS_pidfd_open, pid, 0);
    bool done = child_watch(child, WATCH_OUTPUT, loop, &fds[OUTPUT_HERE], on_readable) &&
                child_watch(child, WATCH_END, loop, &fds[PROCESS], child_on_ended);
    if (done && reports(options))
        done = child_watch(child, WATCH_COMPLAINT, loop, &fds[COMPLAINT_HERE], on_complains);
    if (done && options->talks)
        done = child_watch(child, WATCH_INPUT, loop, &fds[INPUT_HERE], NULL);
    failed = errno;
    close_all(fds);
    if (!done) {
        child_give_up(child);
        return cannot_start(options->path, failed, e);
    }
    *ret = child;
    return true;
}

void child_kill(struct child *child) {
    assert(!child->killed);
    child->killed = true;
    if (!child->reaped) end_child(child);
    unwatch(child, WATCH_INPUT);
    unwatch(child, WATCH_OUTPUT);
    unwatch(child, WATCH_COMPLAINT);
}

void child_stop(struct child *child) {
    assert(!child->killed);
    if (!child->reaped && !child->stopped) end_child(child);
    child->stopped = true;
}

/* --- finding a program -------------------------------------------------------------------- */

static bool is_program(struct buf *path) {
    return buf_append_byte(path, '\0') && access(path->at, X_OK) == 0;
}

bool child_find(struct str program, struct str path, struct buf *ret) {
    if (str_find_byte(program, '/') < program.len) {
        buf_append(ret, program);
        return is_program(ret);
    }
    while (path.len && program.len) {
        struct str folder = str_split(path, ':', &path);
        if (folder.len == 0) continue; /* never the current directory */
        buf_clear(ret);
        buf_append(ret, folder);
        buf_append_byte(ret, '/');
        buf_append(ret, program);
        if (is_program(ret)) return true;
    }
    buf_clear(ret);
    return false;
}
