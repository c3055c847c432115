#include "loop/child.h"

#include "base/mem.h"

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
#define FD_FIRST 3 /* behind the three of standard input and output */

/* What the loop watches of a child: that it writes, and that it ends. */
enum { WATCH_OUTPUT, WATCH_END, WATCH_COUNT };

struct watched {
    uv_poll_t poll;
    int fd;
};

struct child {
    struct child_sink sink;
    void *ctx;
    pid_t pid;
    struct watched watched[WATCH_COUNT];
    unsigned open; /* handles that libuv still has */
    int complaint_fd;
    bool reaped, killed;
    int status; /* of waitpid(), once reaped */
};

/* --- its end ------------------------------------------------------------------------------ */

static void on_closed(uv_handle_t *handle) {
    struct child *child = handle->data;
    if (--child->open) return;
    close(child->complaint_fd);
    free(child);
}

/* Out of the loop first: once it is closed, its number may be another loop's. */
static void unwatch(struct child *child, size_t which) {
    struct watched *watched = &child->watched[which];
    if (watched->fd < 0) return;
    uv_close((uv_handle_t *)&watched->poll, on_closed);
    close(watched->fd);
    watched->fd = -1;
}

static bool is_watched(const struct child *child, size_t which) {
    return child->watched[which].fd >= 0;
}

static void tell_end(struct child *child) {
    char room[CHILD_COMPLAINT_BYTES]; /* the file is as long, zeros behind what was said */
    ssize_t len = pread(child->complaint_fd, room, sizeof(room), 0);
    struct str complaint = str_of(room, len > 0 ? (size_t)len : 0);
    bool exited = WIFEXITED(child->status);
    struct child_end end = {.exit_code = exited ? WEXITSTATUS(child->status) : -1,
                            .signal = exited ? 0 : WTERMSIG(child->status),
                            .complaint = str_head(complaint, str_find_byte(complaint, '\0'))};
    child->killed = true; /* nothing is told any more */
    child->sink.on_end(&end, child->ctx);
}

/* The memory stays until libuv has let go of both handles, which is after this turn. */
static void child_settle(struct child *child) {
    bool over = !is_watched(child, WATCH_OUTPUT) && child->reaped;
    if (over && !child->killed) tell_end(child);
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

static void on_ended(uv_poll_t *poll, int status, int events) {
    struct child *child = poll->data;
    (void)status, (void)events;
    reap(child);
    unwatch(child, WATCH_END);
    child_settle(child);
}

/* --- what it writes ----------------------------------------------------------------------- */

static void on_readable(uv_poll_t *poll, int status, int events) {
    struct child *child = poll->data;
    char room[PIECE_BYTES];
    ssize_t len;
    (void)status, (void)events;
    do {
        len = read(child->watched[WATCH_OUTPUT].fd, room, sizeof(room));
    } while (len < 0 && errno == EINTR);
    if (len > 0) {
        child->sink.on_output(str_of(room, (size_t)len), child->ctx);
        return;
    }
    if (len < 0 && errno == EAGAIN) return;
    unwatch(child, WATCH_OUTPUT);
    child_settle(child);
}

/* --- its start ---------------------------------------------------------------------------- */

/* The descriptors that a start makes; -1: not (any more) ours. */
enum { INPUT, OUTPUT, COMPLAINT, OUTPUT_HERE, PROCESS, FD_COUNT };

static void close_all(int fds[FD_COUNT]) {
    for (size_t i = 0; i < FD_COUNT; i++) {
        if (fds[i] >= 0) close(fds[i]);
    }
}

/* A program that was started without standard input or output would get those numbers, and the
 * child's own would overwrite each other. */
static bool lift(int *fd) {
    if (*fd >= FD_FIRST) return true;
    int lifted = *fd < 0 ? -1 : fcntl(*fd, F_DUPFD_CLOEXEC, FD_FIRST);
    if (*fd >= 0) close(*fd);
    *fd = lifted;
    return lifted >= 0;
}

static bool write_all(int fd, struct str bytes) {
    while (bytes.len) {
        ssize_t len = write(fd, bytes.at, bytes.len);
        if (len < 0 && errno == EINTR) continue;
        if (len <= 0) return false;
        bytes = str_skip(bytes, (size_t)len);
    }
    return lseek(fd, 0, SEEK_SET) == 0;
}

/* Of a fixed size: a child that complains without end is told that there is no more room. */
static int complaint_new(void) {
    int fd = memfd_create("complaint", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return fd;
    if (ftruncate(fd, CHILD_COMPLAINT_BYTES) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool open_all(int fds[FD_COUNT], struct str input) {
    int ends[2];
    fds[INPUT] = memfd_create("input", MFD_CLOEXEC);
    if (!lift(&fds[INPUT]) || !write_all(fds[INPUT], input)) return false;
    fds[COMPLAINT] = complaint_new();
    if (!lift(&fds[COMPLAINT]) || pipe2(ends, O_CLOEXEC) != 0) return false;
    fds[OUTPUT_HERE] = ends[0];
    fds[OUTPUT] = ends[1];
    return lift(&fds[OUTPUT_HERE]) && lift(&fds[OUTPUT]);
}

/* 0, or why it could not be started. */
static int spawn(const struct child_options *options, const int fds[FD_COUNT], pid_t *ret) {
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
    posix_spawnattr_init(&how);
    posix_spawnattr_setpgroup(&how, 0);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &defaults);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                       POSIX_SPAWN_SETSIGDEF);
    int failed =
        posix_spawn(ret, options->path, &files, &how, (char *const *)(uintptr_t)options->args,
                    (char *const *)(uintptr_t)options->environment);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

/* Takes the descriptor, also when it fails. */
static bool watch(struct child *child, size_t which, struct loop *loop, int *fd,
                  uv_poll_cb on_ready) {
    struct watched *watched = &child->watched[which];
    if (*fd < 0 || uv_poll_init(loop_uv(loop), &watched->poll, *fd) != 0) return false;
    watched->fd = *fd;
    *fd = -1;
    watched->poll.data = child;
    child->open++;
    return uv_poll_start(&watched->poll, UV_READABLE, on_ready) == 0;
}

static bool cannot_start(const char *path, int reason, struct err *e) {
    bool absent = reason == ENOENT || reason == EACCES || reason == ENOEXEC;
    return err_set(e, absent ? ERR_NOT_FOUND : ERR_RESOURCE_EXHAUSTED, "cannot run '%s': %s",
                   path, strerrordesc_np(reason));
}

/* It runs, but cannot be watched. */
static void give_up(struct child *child) {
    child->killed = true;
    reap(child);
    bool watched = child->open;
    for (size_t i = 0; i < WATCH_COUNT; i++) unwatch(child, i);
    if (watched) return;
    close(child->complaint_fd);
    free(child);
}

bool child_start(struct loop *loop, const struct child_options *options,
                 const struct child_sink *sink, void *ctx, struct child **ret, struct err *e) {
    int fds[FD_COUNT] = {-1, -1, -1, -1, -1};
    pid_t pid = 0;
    assert(loop_uv(loop));
    int failed = open_all(fds, options->input) ? spawn(options, fds, &pid) : errno;
    if (failed) {
        close_all(fds);
        return cannot_start(options->path, failed, e);
    }
    struct child *child = MEM_NEW(struct child);
    child->sink = *sink;
    child->ctx = ctx;
    child->pid = pid;
    child->complaint_fd = fds[COMPLAINT];
    fds[COMPLAINT] = -1;
    child->watched[WATCH_OUTPUT].fd = child->watched[WATCH_END].fd = -1;
    fds[PROCESS] = (int)syscall(SYS_pidfd_open, pid, 0);
    bool done = watch(child, WATCH_OUTPUT, loop, &fds[OUTPUT_HERE], on_readable) &&
                watch(child, WATCH_END, loop, &fds[PROCESS], on_ended);
    failed = errno;
    close_all(fds);
    if (!done) {
        give_up(child);
        return cannot_start(options->path, failed, e);
    }
    *ret = child;
    return true;
}

void child_kill(struct child *child) {
    assert(!child->killed);
    child->killed = true;
    if (!child->reaped) kill(-child->pid, SIGKILL);
    unwatch(child, WATCH_OUTPUT);
}

/* --- where programs stand ----------------------------------------------------------------- */

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
        if (folder.len == 0) continue; /* the folder that we happen to stand in */
        buf_clear(ret);
        buf_append(ret, folder);
        buf_append_byte(ret, '/');
        buf_append(ret, program);
        if (is_program(ret)) return true;
    }
    buf_clear(ret);
    return false;
}
