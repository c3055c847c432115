#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define READ_BYTES (64 * KIB)

/* The error for errno `error`, with the system's reason. */
static bool base_file_refuse(struct str path, int error, struct err *e) {
    static const struct {
        int error;
        enum err_code code;
        const char *fix;
    } reasons[] = {
        {ENOENT, ERR_NOT_FOUND, "there is no such file; check the name"},
        {ENOTDIR, ERR_NOT_FOUND, "part of the path is not a folder; check the name"},
        {EACCES, ERR_PERMISSION_DENIED, "this user may not read it; change its owner or mode"},
        {EISDIR, ERR_INVALID_ARGUMENT, "it is a folder; name a file in it"},
    };
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        if (reasons[i].error == error)
            return err_set(e, reasons[i].code, "read '" STR_FMT "': %s", STR_ARG(path),
                           reasons[i].fix);
    }
    const char *known = strerrordesc_np(error);
    return err_set(e, ERR_UNAVAILABLE, "read '" STR_FMT "': %s", STR_ARG(path),
                   known ? known : "the system gives no reason");
}

static bool file_read_all(int fd, struct str path, struct buf *out, struct err *e) {
    for (;;) {
        /* A full buffer may hold the whole file: try to read one more byte. */
        char past = 0;
        size_t room = out->max_bytes - out->len;
        if (room > READ_BYTES) room = READ_BYTES;
        /* cppcheck-suppress uninitvar; read() writes there */
        char *at = room ? buf_room(out, room) : &past;
        ssize_t got = read(fd, at, room ? room : 1);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return base_file_refuse(path, errno, e);
        if (got == 0) return true;
        if (!room)
            return err_set(e, ERR_TOO_LARGE, "read '" STR_FMT "': it is larger than %zu bytes",
                           STR_ARG(path), out->max_bytes);
        buf_grew(out, (size_t)got);
    }
}

bool file_read(struct str path, struct buf *out, struct err *e) {
    char *name = str_dup(path);
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    free(name);
    if (fd < 0) return base_file_refuse(path, errno, e);

    bool done = file_read_all(fd, path, out, e);
    close(fd);
    return done;
}

/* --- writing ------------------------------------------------------------------------------ */

/* A file that was left there may have another mode, or be a link. */
static bool file_write_all(const char *path, unsigned mode, struct str text) {
    (void)unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) return false;
    while (text.len) {
        ssize_t wrote = write(fd, text.at, text.len);
        if (wrote < 0 && errno != EINTR) break;
        if (wrote > 0) text = str_skip(text, (size_t)wrote);
    }
    return (close(fd) == 0) && text.len == 0;
}

bool file_replace(struct str path, unsigned mode, struct str text, struct err *e) {
    char *name = str_dup(path);
    struct buf next;
    buf_init(&next, path.len + 8);
    buf_printf(&next, "%s.new%c", name, '\0');
    bool written = file_write_all(next.at, mode, text) && rename(next.at, name) == 0;
    if (!written) {
        err_set(e, ERR_UNAVAILABLE,
                "cannot write '%s': %m; name a file in a folder that this "
                "user may write",
                name);
        (void)unlink(next.at);
    }
    buf_done(&next);
    free(name);
    return written;
}
