#include "sidecar/delivery_file.h"

#include "base/file.h"
#include "wire/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#define PATH_BYTES 4096

static bool delivery_file_fail(const struct delivery_file *file, const char *what,
                               struct err *e) {
    return err_set(e, ERR_UNAVAILABLE, "outbox " STR_FMT ": %s: %s",
                   STR_ARG(text_str(file->path)), what, strerrordesc_np(errno));
}

static int open_at(struct str path, int flags) {
    char *name = str_dup(path);
    int fd = open(name, flags | O_CLOEXEC, 0600);
    free(name);
    return fd;
}

bool delivery_file_open(struct delivery_file *file, struct str path, struct buf *text,
                        struct err *e) {
    *file = (struct delivery_file){.fd = open_at(path, O_RDWR | O_CREAT | O_APPEND),
                                   .path = text_copy(path)};
    if (file->fd < 0) return delivery_file_fail(file, "it cannot be opened", e);
    if (flock(file->fd, LOCK_EX | LOCK_NB) != 0)
        return delivery_file_fail(file, "another process has it", e);
    if (!file_read(path, text, e)) return err_add(e, "outbox");
    file->bytes = text->len;
    return true;
}

void delivery_file_close(struct delivery_file *file) {
    if (file->fd >= 0) close(file->fd);
    text_done(&file->path);
    file->fd = -1;
}

static bool write_all(int fd, struct str bytes) {
    while (bytes.len) {
        ssize_t written = write(fd, bytes.at, bytes.len);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        bytes = str_skip(bytes, (size_t)written);
    }
    return fdatasync(fd) == 0;
}

/* A part of the lines may have been written: it is cut off again. */
bool delivery_file_append(struct delivery_file *file, struct str lines, struct err *e) {
    if (file->bytes + lines.len > DELIVERY_FILE_MAX_BYTES)
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "outbox " STR_FMT ": it is full",
                       STR_ARG(text_str(file->path)));
    if (write_all(file->fd, lines)) {
        file->bytes += lines.len;
        return true;
    }
    (void)delivery_file_fail(file, "it cannot be written", e);
    if (ftruncate(file->fd, (off_t)file->bytes) != 0)
        (void)delivery_file_fail(file, "it cannot be cut", e);
    return false;
}

static bool delivery_file_take_place(struct delivery_file *file, const char *beside, int fd,
                                     struct err *e) {
    char *name = str_dup(text_str(file->path));
    bool moved = flock(fd, LOCK_EX | LOCK_NB) == 0 && rename(beside, name) == 0;
    free(name);
    return moved || delivery_file_fail(file, "it cannot be replaced", e);
}

bool delivery_file_replace(struct delivery_file *file, struct str lines, struct err *e) {
    char beside[PATH_BYTES];
    struct str path = text_str(file->path);
    int len = snprintf(beside, sizeof(beside), STR_FMT ".new", STR_ARG(path));
    if (len < 0 || (size_t)len >= sizeof(beside))
        return err_set(e, ERR_INVALID_ARGUMENT, "outbox: its path is too long");
    int fd = open_at(str_from(beside), O_RDWR | O_CREAT | O_TRUNC | O_APPEND);
    if (fd < 0) return delivery_file_fail(file, "it cannot be written anew", e);
    bool good =
        write_all(fd, lines) || delivery_file_fail(file, "it cannot be written anew", e);
    good = good && delivery_file_take_place(file, beside, fd, e);
    if (!good) {
        unlink(beside);
        close(fd);
        return false;
    }
    close(file->fd);
    file->fd = fd;
    file->bytes = lines.len;
    return true;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* An id's spelling in JSON is its text. One that is a number was written by an earlier version. */
static bool read_id(struct json value, struct str *ret) {
    bool number = value.kind == JSON_NUMBER;
    if (!number && value.kind != JSON_STRING) return false;
    *ret = number ? value.raw : str_of(value.raw.at + 1, value.raw.len - 2);
    return ret->len > 0 && ret->len <= DELIVERY_ID_MAX_BYTES;
}

bool delivery_line_read(struct str line, struct delivery_line *ret) {
    struct json json, path, body;
    struct err e;
    *ret = (struct delivery_line){.path = STR_EMPTY, .body = STR_EMPTY};
    if (!json_read(line, &json, &e) || json.kind != JSON_OBJECT) return false;
    if (read_id(json_find(json, STR("sent")), &ret->id)) return true;
    path = json_find(json, STR("path"));
    body = json_find(json, STR("body"));
    if (!read_id(json_find(json, STR("id")), &ret->id) || path.kind != JSON_STRING ||
        body.kind != JSON_OBJECT)
        return false;
    ret->path = str_of(path.raw.at + 1, path.raw.len - 2);
    ret->body = body.raw;
    ret->once = json_find(json, STR("once")).kind == JSON_TRUE;
    return ret->path.len > 0;
}

/* Paths are our own constants, so their spelling in JSON is their text. */
void delivery_line_write(const struct delivery_line *line, struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    if (line->path.len) {
        json_member_str(&json, "id", line->id);
        json_member_str(&json, "path", line->path);
        if (line->once) json_member_bool(&json, "once", true);
        json_member_raw(&json, "body", line->body);
    } else {
        json_member_str(&json, "sent", line->id);
    }
    json_close(&json);
    buf_append_byte(out, '\n');
}
