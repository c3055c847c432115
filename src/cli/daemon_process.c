#include "cli/daemon_process.h"

#include "base/file.h"
#include "daemon/ports.h"
#include "wire/json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILE_MAX_BYTES (64 * KIB)

static void path_in(struct str folder, const char *name, struct buf *path) {
    buf_init(path, folder.len + 64);
    buf_printf(path, STR_FMT "/%s%c", STR_ARG(folder), name, '\0');
}

static bool refuse_none(struct str folder, struct err *e) {
    return err_set(e, ERR_NOT_FOUND,
                   "no daemon has the data folder " STR_FMT "; name another one with --data",
                   STR_ARG(folder));
}

/* --- which process ------------------------------------------------------------------------ */

/* The id in weir.lock, and the file's identity. */
static bool read_lock(struct str folder, struct stat *ret_file, pid_t *ret_pid, struct err *e) {
    char text[32];
    uint64_t pid = 0;
    struct buf path;
    path_in(folder, "weir.lock", &path);
    int file = open(path.at, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int why = errno;
    ssize_t len = file < 0 ? -1 : read(file, text, sizeof(text));
    bool known = len > 0 && fstat(file, ret_file) == 0 &&
                 str_to_u64(str_trim(str_of(text, (size_t)len)), &pid) && pid > 0 &&
                 pid <= INT32_MAX;
    if (file >= 0) close(file);
    *ret_pid = (pid_t)pid;
    if (!known && file < 0 && why != ENOENT)
        err_set(e, ERR_UNAVAILABLE, "%s cannot be read: %s", path.at, strerrordesc_np(why));
    else if (!known)
        refuse_none(folder, e);
    buf_done(&path);
    return known;
}

/* Whether a process has this file open. */
static bool has_open(pid_t pid, const struct stat *file, struct err *e) {
    char path[64];
    bool found = false;
    const struct dirent *entry;
    snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
    DIR *folder = opendir(path);
    if (!folder && errno == EACCES)
        return err_set(e, ERR_PERMISSION_DENIED,
                       "process %ld may be the daemon, and belongs to another user; run this "
                       "command as that user",
                       (long)pid);
    if (!folder) return err_set(e, ERR_NOT_FOUND, "process %ld has ended", (long)pid);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a folder of this function */
    while (!found && (entry = readdir(folder))) {
        struct stat other;
        found = fstatat(dirfd(folder), entry->d_name, &other, 0) == 0 &&
                other.st_dev == file->st_dev && other.st_ino == file->st_ino;
    }
    closedir(folder);
    return found || err_set(e, ERR_NOT_FOUND, "process %ld is no daemon", (long)pid);
}

bool daemon_process_find(struct str data_folder, struct daemon_process *ret, struct err *e) {
    struct stat file;
    *ret = (struct daemon_process){.pidfd = -1};
    if (!read_lock(data_folder, &file, &ret->pid, e)) return false;
    ret->pidfd = (int)syscall(SYS_pidfd_open, ret->pid, 0);
    if (ret->pidfd < 0 && errno == ESRCH) return refuse_none(data_folder, e);
    if (ret->pidfd < 0)
        return err_set(e, ERR_UNAVAILABLE, "process %ld cannot be taken hold of: %s",
                       (long)ret->pid, strerrordesc_np(errno));
    if (has_open(ret->pid, &file, e)) return true;
    daemon_process_done(ret);
    return e->code == ERR_NOT_FOUND ? refuse_none(data_folder, e) : false;
}

void daemon_process_done(struct daemon_process *process) {
    if (process->pidfd >= 0) close(process->pidfd);
    process->pidfd = -1;
}

/* --- what it is asked --------------------------------------------------------------------- */

bool daemon_process_port(struct str data_folder, struct str name, int64_t *ret) {
    struct buf path, text;
    struct json ports;
    struct err e;
    path_in(data_folder, PORTS_NAME, &path);
    buf_init(&text, FILE_MAX_BYTES);
    bool found = file_read(str_from(path.at), &text, &e) &&
                 json_read(buf_str(&text), &ports, &e) &&
                 json_i64(json_find(ports, name), ret) && *ret > 0 && *ret <= UINT16_MAX;
    buf_done(&text);
    buf_done(&path);
    return found;
}

bool daemon_process_signal(const struct daemon_process *process, struct err *e) {
    if (syscall(SYS_pidfd_send_signal, process->pidfd, SIGTERM, NULL, 0) == 0) return true;
    if (errno == ESRCH)
        return err_set(e, ERR_NOT_FOUND, "process %ld has ended", (long)process->pid);
    return err_set(e, ERR_PERMISSION_DENIED, "process %ld cannot be stopped: %s",
                   (long)process->pid, strerrordesc_np(errno));
}

bool daemon_process_ended(const struct daemon_process *process, int wait_ms) {
    struct pollfd ended = {.fd = process->pidfd, .events = POLLIN};
    return poll(&ended, 1, wait_ms) == 1;
}
