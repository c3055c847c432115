#include "daemon/clients.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "daemon/client_lock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define LOOK_MS 250

struct clients {
    struct clients_options options;
    struct text folder;
    struct timer look;
    int lock;
    bool stopped;
    bool let_go; /* of stdout and stderr */
};

static void token_path(struct str folder, struct buf *path) {
    buf_init(path, folder.len + 32);
    buf_printf(path, STR_FMT "/" CLIENT_TOKEN_NAME, STR_ARG(folder));
}

static bool leave_token(const struct clients_options *options, struct err *e) {
    struct buf path;
    token_path(options->folder, &path);
    bool left = file_replace(buf_str(&path), 0600, options->token, e);
    buf_done(&path);
    return left;
}

void clients_forget(struct str folder) {
    struct buf path;
    token_path(folder, &path);
    buf_append_byte(&path, '\0');
    (void)unlink(path.at); /* there may be none */
    buf_done(&path);
}

static void let_output_go(void) {
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nothing < 0) return;
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    close(nothing);
}

static void look_for_clients(void *ctx) {
    struct clients *clients = ctx;
    if (client_lock_alone(clients->lock)) {
        clients->options.on_none(clients->options.ctx);
        return;
    }
    if (!clients->let_go && getppid() != clients->options.starter) {
        clients->let_go = true;
        let_output_go();
    }
    timer_start(&clients->look, LOOK_MS);
}

bool clients_start(const struct clients_options *options, struct clients **ret, struct err *e) {
    int lock = client_lock_open(options->folder, true);
    if (lock < 0)
        return err_set(e, ERR_UNAVAILABLE, "'" STR_FMT "/" CLIENT_LOCK_NAME "': %m",
                       STR_ARG(options->folder));
    if (!leave_token(options, e)) {
        close(lock);
        return false;
    }
    struct clients *clients = MEM_NEW(struct clients);
    clients->options = *options;
    clients->folder = text_copy(options->folder);
    clients->lock = lock;
    timer_init(&clients->look, options->loop, look_for_clients, clients);
    timer_start(&clients->look, LOOK_MS);
    *ret = clients;
    return true;
}

void clients_stop(struct clients *clients) {
    if (!clients || clients->stopped) return;
    clients->stopped = true;
    timer_stop(&clients->look);
    clients_forget(text_str(clients->folder));
}

void clients_free(struct clients *clients) {
    if (!clients) return;
    close(clients->lock);
    text_done(&clients->folder);
    free(clients);
}
