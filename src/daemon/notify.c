#include "daemon/notify.h"

#include "base/buf.h"
#include "base/clock.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* "/run/systemd/notify", or "@name" in the abstract namespace. */
static bool find_manager(struct sockaddr_un *ret, socklen_t *ret_len) {
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment */
    const char *name = getenv("NOTIFY_SOCKET");
    if (!name) return false;
    struct str path = str_from(name);
    if (path.len < 2 || path.len >= sizeof(ret->sun_path)) return false;
    if (path.at[0] != '/' && path.at[0] != '@') return false;
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret->sun_path, path.at, path.len);
    if (path.at[0] == '@') ret->sun_path[0] = '\0';
    *ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.len);
    return true;
}

static void send_lines(struct str lines) {
    struct sockaddr_un manager;
    socklen_t len;
    if (!find_manager(&manager, &len)) return;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    ssize_t sent =
        sendto(fd, lines.at, lines.len, MSG_NOSIGNAL, (struct sockaddr *)&manager, len);
    (void)sent; /* no service manager is listening */
    close(fd);
}

void notify_ready(size_t agent_count) {
    char room[96];
    struct buf lines = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    buf_printf(&lines, "READY=1\nSTATUS=serving %zu agent%s", agent_count,
               agent_count == 1 ? "" : "s");
    send_lines(buf_str(&lines));
}

void notify_reloading(void) {
    char room[128];
    struct buf lines = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    buf_printf(&lines, "RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=reading the configuration",
               (unsigned long long)clock_mono_us());
    send_lines(buf_str(&lines));
}

void notify_stopping(void) {
    send_lines(STR("STOPPING=1\nSTATUS=letting turns end"));
}
