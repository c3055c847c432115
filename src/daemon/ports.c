#include "daemon/ports.h"

#include "base/log.h"
#include "wire/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool write_whole(const char *path, struct str text) {
    FILE *file = fopen(path, "we");
    if (!file) return false;
    bool whole = fwrite(text.at, 1, text.len, file) == text.len;
    return (fclose(file) == 0) && whole;
}

bool ports_write(struct str path, const struct server *server,
                 const struct listening *listenings, size_t count, struct err *e) {
    if (path.len == 0) return true;
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
    bool written = write_whole(next.at, buf_str(&text)) && rename(next.at, name) == 0;
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

void ports_leave(struct str folder, const struct server *server,
                 const struct listening *listenings, size_t count) {
    struct buf path;
    struct err e;
    buf_init(&path, folder.len + 32);
    buf_append(&path, folder);
    buf_append(&path, STR("/" PORTS_NAME));
    if (!ports_write(buf_str(&path), server, listenings, count, &e)) log_warning("%s", e.text);
    buf_done(&path);
}
