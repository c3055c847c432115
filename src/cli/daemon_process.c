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
        err_set(e, ERR_UNAVAILABLE, "%s cannot be read: %s%s", path.at, strerrordesc_np(why),
                why == EACCES ? "; run this command as the user of the daemon" : "");
    else if (!known)
        refuse_none(folder, e);
    buf_done(&path);
    return known;
}

/* Of an open file: is it the one that is looked for? */
typedef bool is_wanted_fn(const struct stat *file, const void *wanted);

/* Whether a process has what is wanted open. */
static bool has_open(pid_t pid, is_wanted_fn *is_wanted, const void *wanted, struct err *e) {
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
        found =
            fstatat(dirfd(folder), entry->d_name, &other, 0) == 0 && is_wanted(&other, wanted);
    }
    closedir(folder);
    return found || err_set(e, ERR_NOT_FOUND, "process %ld is no daemon", (long)pid);
}

/* Take hold of the process, and then make sure that it is the daemon. */
static bool process_hold(pid_t pid, is_wanted_fn *is_wanted, const void *wanted,
                         struct daemon_process *ret, struct err *e) {
    *ret = (struct daemon_process){.pid = pid, .pidfd = (int)syscall(SYS_pidfd_open, pid, 0)};
    if (ret->pidfd < 0 && errno == ESRCH)
        return err_set(e, ERR_NOT_FOUND, "process %ld has ended", (long)pid);
    if (ret->pidfd < 0)
        return err_set(e, ERR_UNAVAILABLE, "process %ld cannot be taken hold of: %s", (long)pid,
                       strerrordesc_np(errno));
    if (has_open(pid, is_wanted, wanted, e)) return true;
    daemon_process_done(ret);
    return false;
}

/* --- by its data folder ------------------------------------------------------------------- */

static bool is_same_file(const struct stat *file, const void *wanted) {
    const struct stat *lock = wanted;
    return file->st_dev == lock->st_dev && file->st_ino == lock->st_ino;
}

bool daemon_process_find(struct str data_folder, struct daemon_process *ret, struct err *e) {
    struct stat file;
    pid_t pid;
    *ret = (struct daemon_process){.pidfd = -1};
    if (!read_lock(data_folder, &file, &pid, e)) return false;
    if (process_hold(pid, is_same_file, &file, ret, e)) return true;
    return e->code == ERR_NOT_FOUND ? refuse_none(data_folder, e) : false;
}

bool daemon_process_recorded(struct str data_folder, int64_t *ret, struct err *e) {
    struct stat file;
    pid_t pid;
    if (!read_lock(data_folder, &file, &pid, e)) return false;
    *ret = pid;
    return true;
}

/* --- by its socket ------------------------------------------------------------------------ */

#define SOCKETS_MAX 16 /* that listen on one port: each address may have one */
#define TCP_LISTENS 0x0A

struct listening_sockets {
    unsigned long inodes[SOCKETS_MAX];
    size_t count;
};

/* "  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 12345 ..." */
static void read_sockets(const char *path, int port, struct listening_sockets *out) {
    char line[512];
    FILE *file = fopen(path, "re");
    while (file && out->count < SOCKETS_MAX && fgets(line, sizeof(line), file)) {
        unsigned local_port, state;
        unsigned long inode;
        /* NOLINTNEXTLINE(cert-err34-c): the kernel's own numbers */
        int read = sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*d %*d %lu",
                          &local_port, &state, &inode);
        if (read == 3 && local_port == (unsigned)port && state == TCP_LISTENS)
            out->inodes[out->count++] = inode;
    }
    if (file) fclose(file);
}

static bool is_listening_socket(const struct stat *file, const void *wanted) {
    const struct listening_sockets *sockets = wanted;
    for (size_t i = 0; S_ISSOCK(file->st_mode) && i < sockets->count; i++) {
        if (file->st_ino == sockets->inodes[i]) return true;
    }
    return false;
}

bool daemon_process_find_listening(int64_t pid, int port, struct daemon_process *ret,
                                   struct err *e) {
    struct listening_sockets sockets = {.count = 0};
    *ret = (struct daemon_process){.pidfd = -1};
    if (pid <= 0 || pid > INT32_MAX) return err_set(e, ERR_NOT_FOUND, "it names no process");
    read_sockets("/proc/self/net/tcp", port, &sockets);
    read_sockets("/proc/self/net/tcp6", port, &sockets);
    return process_hold((pid_t)pid, is_listening_socket, &sockets, ret, e);
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
