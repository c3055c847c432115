#include "cli/shared_daemon.h"

#include "base/file.h"
#include "daemon/client_lock.h"
#include "daemon/clients.h"

#include <unistd.h>

#define NO_LIMIT_MS (-1)

void shared_daemon_init(struct shared_daemon *shared) {
    *shared = (struct shared_daemon){.lock = -1, .process = {.pidfd = -1}};
}

bool shared_daemon_may_be(const struct config *config) {
    return !config->store.url.len && !config->data_in_memory;
}

bool shared_daemon_read(struct str folder, struct buf *url, struct buf *token) {
    struct buf path;
    struct err e;
    int64_t port;
    buf_init(&path, folder.len + 64);
    buf_printf(&path, STR_FMT "/" CLIENT_TOKEN_NAME, STR_ARG(folder));
    bool left = file_read(buf_str(&path), token, &e) && token->len &&
                daemon_process_port(folder, STR("http"), &port);
    buf_done(&path);
    if (left) buf_printf(url, "http://127.0.0.1:%lld", (long long)port);
    return left && buf_ok(url);
}

bool shared_daemon_join(struct shared_daemon *shared, const struct config *config,
                        struct buf *url, struct buf *token) {
    struct err none;
    if (!shared_daemon_may_be(config)) return false;
    if (!daemon_process_find(config->data, &shared->process, &none)) return false;
    shared->lock = client_lock_open(config->data, false);
    if (shared->lock >= 0 && client_lock_try(shared->lock) &&
        shared_daemon_read(config->data, url, token))
        return true;
    buf_clear(token);
    daemon_process_done(&shared->process);
    if (shared->lock >= 0) close(shared->lock);
    shared->lock = -1;
    return false;
}

void shared_daemon_leave(struct shared_daemon *shared) {
    struct err none;
    if (shared->lock < 0) return;
    if (client_lock_alone(shared->lock) && daemon_process_signal(&shared->process, &none))
        (void)daemon_process_ended(&shared->process, NO_LIMIT_MS);
    daemon_process_done(&shared->process);
    close(shared->lock);
    shared->lock = -1;
}
