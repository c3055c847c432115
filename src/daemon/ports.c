#include "daemon/ports.h"

#include "base/file.h"
#include "base/log.h"
#include "wire/json.h"

static bool ports_put(struct str path, unsigned mode, const struct server *server,
                      const struct listening *listenings, size_t count, struct err *e) {
    struct buf text;
    buf_init(&text, KIB);
    struct json_writer json = json_writer(&text);
    json_open_object(&json);
    for (size_t i = 0; i < count; i++) {
        const char *name = listenings[i].listener->name;
        int port = server_port(server, str_from(name));
        if (port > 0) json_member_i64(&json, name, port);
    }
    json_close(&json);
    buf_append_byte(&text, '\n');
    bool written = file_replace(path, mode, buf_str(&text), e) || err_add(e, "the ports file");
    buf_done(&text);
    return written;
}

bool ports_write(struct str path, const struct server *server,
                 const struct listening *listenings, size_t count, struct err *e) {
    return path.len == 0 || ports_put(path, 0644, server, listenings, count, e);
}

/* Only the owner of the data folder may read its files. */
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
