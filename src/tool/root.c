#include "tool/root.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOLDER_MODE 0700
#define FILE_MODE 0600
#define NAME_BYTES_MAX 255  /* of one part of a path (Linux NAME_MAX) */
#define KEY_BYTES_MAX 1024  /* as in common object stores */
#define PATH_BYTES_MAX 4095 /* of the whole path */
#define AGAIN_MAX 100       /* retries when a rename interferes with openat2() */
#define WRITE_BYTES MIB     /* between two checks of *stop */

struct root {
    atomic_uint_fast64_t parts; /* temporary files so far; each has a name of its own */
    int fd;
};

/* ---- Errors ---- */

static bool root_refuse(int error, struct err *e) {
    static const struct {
        int error;
        enum err_code code;
        const char *why;
    } reasons[] = {
        {ENOENT, ERR_NOT_FOUND, "there is no such file"},
        {ENOTDIR, ERR_NOT_FOUND, "part of it is a file and not a folder"},
        {ELOOP, ERR_PERMISSION_DENIED, "a link stands there, and links are not followed"},
        {EXDEV, ERR_PERMISSION_DENIED, "it leads out of the folder"},
        {EACCES, ERR_PERMISSION_DENIED, "this process may not use it"},
        {EPERM, ERR_PERMISSION_DENIED, "this process may not use it"},
        {EROFS, ERR_PERMISSION_DENIED, "the disk is read-only"},
        {EISDIR, ERR_INVALID_ARGUMENT, "it is a folder and not a file"},
        {ENXIO, ERR_INVALID_ARGUMENT, "it is not a regular file"},
        {ENODEV, ERR_INVALID_ARGUMENT, "it is not a regular file"},
        {ENAMETOOLONG, ERR_INVALID_ARGUMENT, "the name is too long"},
        {ENOSPC, ERR_RESOURCE_EXHAUSTED, "the disk is full"},
        {EDQUOT, ERR_RESOURCE_EXHAUSTED, "the quota of the disk is used up"},
    };
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        if (reasons[i].error == error) return err_set(e, reasons[i].code, "%s", reasons[i].why);
    }
    const char *known = strerrordesc_np(error);
    return err_set(e, ERR_UNAVAILABLE, "%s", known ? known : "the system gives no reason");
}

/* ---- Opening beneath ---- */

/* Like openat(), but no name leads out of `folder` and no link is followed. Returns -1 and sets
 * errno. */
static int open_beneath(int folder, const char *name, int flags, mode_t mode) {
    int more = flags & O_PATH ? O_CLOEXEC : O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    struct open_how how = {
        .flags = (unsigned)(flags | more),
        .mode = mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd = -1;
    for (int tries = 0; tries < AGAIN_MAX; tries++) {
        fd = syscall(SYS_openat2, folder, name, &how, sizeof(how));
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) break;
    }
    return (int)fd;
}

static bool kernel_can(int folder, struct err *e) {
    int fd = open_beneath(folder, ".", O_PATH | O_DIRECTORY, 0);
    if (fd >= 0) {
        close(fd);
        return true;
    }
    if (errno != ENOSYS && errno != EPERM && errno != EINVAL) return root_refuse(errno, e);
    return err_set(e, ERR_UNIMPLEMENTED,
                   "the kernel cannot open files beneath a folder only (openat2, Linux 5.6 and "
                   "newer, and not forbidden by a seccomp filter); file tools need it");
}

bool root_open(struct str folder, struct root **ret, struct err *e) {
    char *name = str_dup(folder);
    int fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int error = errno;
    free(name);
    if (fd < 0) {
        if (error == ENOENT)
            err_set(e, ERR_NOT_FOUND, "there is no such folder; make it or name another");
        else
            root_refuse(error, e);
        return err_add(e, "the folder of files '" STR_FMT "'", STR_ARG(folder));
    }
    if (!kernel_can(fd, e)) {
        close(fd);
        return err_add(e, "the folder of files '" STR_FMT "'", STR_ARG(folder));
    }
    struct root *root = MEM_NEW(struct root);
    atomic_init(&root->parts, 0);
    root->fd = fd;
    *ret = root;
    return true;
}

void root_free(struct root *root) {
    if (!root) return;
    close(root->fd);
    free(root);
}

/* ---- Paths ---- */

/* Never "." or "..". No id is encoded as "%", which is the name of the empty one. */
bool root_append_name(struct str id, struct buf *out, struct err *e) {
    bool dots = str_equal(id, STR(".")) || str_equal(id, STR(".."));
    size_t before = out->len;
    if (id.len == 0) buf_append_byte(out, '%');
    buf_append_percent(out, id, dots ? "" : "._-");
    return out->len - before <= NAME_BYTES_MAX ||
           err_set(e, ERR_INVALID_ARGUMENT, "the name '" STR_FMT "...' is too long",
                   STR_ARG(str_head(id, 40)));
}

static bool append_workspace(struct str workspace, struct buf *out, struct err *e) {
    if (workspace.len == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "the call belongs to no workspace");
    return root_append_name(workspace, out, e) ||
           err_set(e, ERR_INVALID_ARGUMENT, "the name of the workspace is too long");
}

static bool check_part(struct str part, struct err *e) {
    for (size_t i = 0; i < part.len; i++) {
        unsigned char c = (unsigned char)part.at[i];
        if (c < 0x20 || c == 0x7F)
            return err_set(e, ERR_INVALID_ARGUMENT, "the key holds a control byte");
    }
    return part.len <= NAME_BYTES_MAX ||
           err_set(e, ERR_INVALID_ARGUMENT, "a part of the key is longer than %d bytes",
                   NAME_BYTES_MAX);
}

static bool root_append_key(struct str key, struct buf *out, struct err *e) {
    if (key.len > KEY_BYTES_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "the key is longer than %d bytes",
                       KEY_BYTES_MAX);
    size_t parts = 0;
    for (struct str rest = key; rest.len;) {
        struct str part = str_split(rest, '/', &rest);
        if (part.len == 0 || str_equal(part, STR(".")) || str_equal(part, STR(".."))) continue;
        if (!check_part(part, e)) return false;
        buf_append_byte(out, '/');
        buf_append(out, part);
        parts++;
    }
    return parts > 0 || err_set(e, ERR_INVALID_ARGUMENT, "the key names no file");
}

bool root_path(struct str workspace, struct str key, struct buf *out, struct err *e) {
    struct buf path;
    buf_init(&path, PATH_BYTES_MAX);
    buf_append(&path, STR("workspaces/"));
    bool fine = append_workspace(workspace, &path, e);
    fine = fine && buf_append(&path, STR("/files")) && root_append_key(key, &path, e);
    if (fine && !(buf_ok(&path) && buf_append(out, buf_str(&path))))
        fine = err_set(e, ERR_INVALID_ARGUMENT, "the key is too long");
    buf_done(&path);
    return fine;
}

/* ---- Reading ---- */

static bool check_regular(int fd, uint64_t *ret_size, struct err *e) {
    struct stat about;
    if (fstat(fd, &about) != 0) return root_refuse(errno, e);
    if (S_ISDIR(about.st_mode)) return root_refuse(EISDIR, e);
    if (!S_ISREG(about.st_mode)) return root_refuse(ENXIO, e);
    if ((uint64_t)about.st_size > ROOT_FILE_MAX_BYTES)
        return err_set(e, ERR_TOO_LARGE, "it is larger than %zu bytes",
                       (size_t)ROOT_FILE_MAX_BYTES);
    *ret_size = (uint64_t)about.st_size;
    return true;
}

static bool read_beginning(int fd, uint64_t size, struct buf *out, struct err *e) {
    while (size > 0 && out->len < out->max_bytes) {
        size_t room = out->max_bytes - out->len;
        if (room > size) room = (size_t)size;
        ssize_t got = read(fd, buf_room(out, room), room);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return root_refuse(errno, e);
        if (got == 0) break; /* the file was truncated meanwhile */
        buf_grew(out, (size_t)got);
        size -= (uint64_t)got;
    }
    return true;
}

bool root_read(const struct root *root, struct str path, struct buf *out, uint64_t *ret_size,
               struct err *e) {
    char *name = str_dup(path);
    int fd = open_beneath(root->fd, name, O_RDONLY, 0);
    int error = errno;
    free(name);
    if (fd < 0) return root_refuse(error, e);
    uint64_t size = 0;
    bool read = check_regular(fd, &size, e) && read_beginning(fd, size, out, e);
    close(fd);
    if (read) *ret_size = size;
    return read;
}

/* ---- Writing ---- */

/* Open the folder of the file at `path`, creating missing folders. The slashes of `path` become
 * NULs; *ret_name is the part after the last one. */
static int open_parent(const struct root *root, char *path, const char **ret_name) {
    int folder = fcntl(root->fd, F_DUPFD_CLOEXEC, 0);
    char *name = path;
    for (char *slash; folder >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
        *slash = '\0';
        int next = -1;
        if (mkdirat(folder, name, FOLDER_MODE) == 0 || errno == EEXIST)
            next = open_beneath(folder, name, O_PATH | O_DIRECTORY, 0);
        int error = errno;
        close(folder);
        errno = error;
        folder = next;
    }
    *ret_name = name;
    return folder;
}

/* An existing entry may be replaced only if it is a regular file. */
static bool check_place(int folder, const char *name, struct err *e) {
    struct stat about;
    if (fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT || root_refuse(errno, e);
    if (S_ISREG(about.st_mode)) return true;
    return root_refuse(S_ISLNK(about.st_mode)   ? ELOOP
                       : S_ISDIR(about.st_mode) ? EISDIR
                                                : ENXIO,
                       e);
}

static bool stopped(const atomic_bool *stop, struct err *e) {
    if (!atomic_load_explicit(stop, memory_order_relaxed)) return false;
    err_set(e, ERR_CANCELLED, "the call was cancelled");
    return true;
}

static bool root_write_all(int fd, struct str bytes, const atomic_bool *stop, struct err *e) {
    while (bytes.len) {
        if (stopped(stop, e)) return false;
        ssize_t put = write(fd, bytes.at, bytes.len < WRITE_BYTES ? bytes.len : WRITE_BYTES);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return root_refuse(errno, e);
        bytes = str_skip(bytes, (size_t)put);
    }
    return fdatasync(fd) == 0 || root_refuse(errno, e);
}

/* Create a temporary file in the same folder, with a name that is not in use. */
static int open_beside(struct root *root, int folder, char name[32]) {
    for (int tries = 0; tries < AGAIN_MAX; tries++) {
        uint64_t number = atomic_fetch_add_explicit(&root->parts, 1, memory_order_relaxed);
        snprintf(name, 32, ".part-%x-%llx", (unsigned)getpid(), (unsigned long long)number);
        int fd = open_beneath(folder, name, O_WRONLY | O_CREAT | O_EXCL, FILE_MODE);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

static bool replace(struct root *root, int folder, const char *name, struct str bytes,
                    const atomic_bool *stop, struct err *e) {
    if (!check_place(folder, name, e)) return false;
    char part[32];
    int fd = open_beside(root, folder, part);
    if (fd < 0) return root_refuse(errno, e);
    bool written = root_write_all(fd, bytes, stop, e);
    close(fd);
    if (written) written = !stopped(stop, e);
    if (written && renameat(folder, part, folder, name) != 0) written = root_refuse(errno, e);
    if (!written) unlinkat(folder, part, 0);
    return written;
}

bool root_write(struct root *root, struct str path, struct str bytes, const atomic_bool *stop,
                struct err *e) {
    if (bytes.len > ROOT_FILE_MAX_BYTES)
        return err_set(e, ERR_TOO_LARGE, "it would be larger than %zu bytes",
                       (size_t)ROOT_FILE_MAX_BYTES);
    char *names = str_dup(path);
    const char *name;
    int folder = open_parent(root, names, &name);
    bool written =
        folder >= 0 ? replace(root, folder, name, bytes, stop, e) : root_refuse(errno, e);
    if (folder >= 0) close(folder);
    free(names);
    return written;
}
