#include "daemon/ports.h"

#include "base/log.h"
#include "wire/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_whole(const char *path, mode_t mode, struct str text) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!file && fd >= 0) close(fd);
    if (!file) return false;
    bool whole = fwrite(text.at, 1, text.len, file) == text.len;
    return (fclose(file) == 0) && whole;
}

static bool ports_put(struct str path, mode_t mode, const struct server *server,
                      const struct listening *listenings, size_t count, struct err *e) {
    struct buf text, next;
    buf_init(&text, KIB);
    buf_init(&next, path.len + 8);
    struct json_writer json = json_writer(&text);
    json_open_object(&json);
    for (size_t i = 0; i < count; i++) {
        const char *name = listenings[i].listener->name;
        int port = server_port(server, str_from(name));
        if (port > 0) json_member_i64(&json, name, port);
    }
    json_close(&json);
    buf_append_byte(&text, '\n');
    buf_append(&next, path);
    buf_append(&next, (struct str){".new", 5}); /* with its NUL */
    char *name = str_dup(path);
    bool written = write_whole(next.at, mode, buf_str(&text)) && rename(next.at, name) == 0;
    if (!written) {
        err_set(e, ERR_UNAVAILABLE,
                "cannot write the ports file '%s': %m; name a file in a "
                "folder that this user may write",
                name);
    }
    free(name);
    buf_done(&next);
    buf_done(&text);
    return written;
}

bool ports_write(struct str path, const struct server *server,
                 const struct listening *listenings, size_t count, struct err *e) {
    return path.len == 0 || ports_put(path, 0644, server, listenings, count, e);
}

/* Whoever may read the data folder's files is its owner. */
void ports_leave(struct str folder, const struct server *server,
                 const struct listening *listenings, size_t count) {
    struct buf path;
    struct err e;
    buf_init(&path, folder.len + 32);
    buf_append(&path, folder);
    buf_append(&path, STR("/" PORTS_NAME));
    if (!ports_put(buf_str(&path), 0600, server, listenings, count, &e))
        log_warning("%s", e.text);
    buf_done(&path);
}
