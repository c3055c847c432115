#include "server/listener.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "server/holder.h"
#include "server/tls.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The kernel lowers this to the system's limit. */
#define BACKLOG_MAX 65535

/* Connections accepted per turn, so that existing ones are served in between. */
#define ACCEPTS_A_TURN 64

/* Without free descriptors the socket stays readable, so retrying at once would only spin. */
#define BACK_OFF_MS 100
#define WARN_EVERY_MS 10000

/* --- opening ------------------------------------------------------------------------------ */

/* The command-line flag of a listener: "nimi-grpc" for nimi_grpc. */
static const char *flag_of(const struct listener *listener, char *flag, size_t size) {
    snprintf(flag, size, STR_FMT, STR_ARG(listener->options.name));
    for (char *c = flag; *c; c++) {
        if (*c == '_') *c = '-';
    }
    return flag;
}

/* Writes "it is taken by pid 4121 (node). ..." */
static const char *explain_taken(const struct listener *listener, const struct address *address,
                                 char *text, size_t size) {
    char who[64] = "another process", flag[32];
    bool known = holder_find(address, who, sizeof(who));
    snprintf(text, size, "it is taken by %s. Use --%s with another %s%s", who,
             flag_of(listener, flag, sizeof(flag)), address_is_local(address) ? "path" : "port",
             known ? ", or stop that one" : ", or see `ss -xtanp` for who it is");
    return text;
}

static bool listener_explain(const struct listener *listener, const struct address *address,
                             int reason, struct err *e) {
    struct str name = listener->options.name, where = listener->options.address;
    const char *why = uv_strerror(-reason);
    char text[256];
    if (reason == EADDRINUSE) why = explain_taken(listener, address, text, sizeof(text));
    if (reason == EADDRNOTAVAIL) why = "no interface of this machine has that address";
    if (reason == EACCES)
        why = "not allowed: ports below 1024 need a privilege, and a socket's folder must "
              "be writable; choose another address";
    return err_set(e, ERR_UNAVAILABLE, STR_FMT ": cannot listen on " STR_FMT ": %s",
                   STR_ARG(name), STR_ARG(where), why);
}

/* A socket file outlives its process and would block its path for ever. */
static bool remove_stale(const struct address *address) {
    struct stat info;
    const char *path = address->as.local.sun_path;
    if (!address_is_local(address) || stat(path, &info) != 0 || !S_ISSOCK(info.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    bool dead = connect(fd, &address->as.any, address->len) != 0 && errno == ECONNREFUSED;
    close(fd);
    return dead && unlink(path) == 0;
}

static int open_socket(const struct address *address) {
    int on = 1, off = 0;
    int fd = socket(address->as.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    bool bound = bind(fd, &address->as.any, address->len) == 0;
    if (!bound && errno == EADDRINUSE && remove_stale(address))
        bound = bind(fd, &address->as.any, address->len) == 0;
    if (bound && listen(fd, BACKLOG_MAX) == 0) return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

/* ":port" means both families; a machine without IPv6 has only IPv4. */
static int open_anywhere(const struct address *address) {
    int fd = open_socket(address);
    if (fd >= 0 || errno != EAFNOSUPPORT || address->as.any.sa_family != AF_INET6) return fd;
    struct address inet4 = {.len = sizeof(struct sockaddr_in)};
    struct sockaddr_in *inet = (struct sockaddr_in *)&inet4.as.inet;
    inet->sin_family = AF_INET;
    inet->sin_port = htons((uint16_t)address_port(address));
    return open_socket(&inet4);
}

static int port_of(int fd) {
    struct address own = {.len = sizeof(own.as)};
    return getsockname(fd, &own.as.any, &own.len) == 0 ? address_port(&own) : 0;
}

static void listener_watch(struct listener *listener);

static void stop_back_off(void *ctx) {
    listener_watch(ctx);
}

static struct str listener_keep(struct text *own, struct str text) {
    *own = text_copy(text);
    return text_str(*own);
}

static void copy_options(struct listener *listener, const struct listener_options *options) {
    listener->options = *options;
    listener->options.name = listener_keep(&listener->name, options->name);
    listener->options.address = listener_keep(&listener->address, options->address);
    listener->limits = options->limits ? *options->limits : server_limits_default;
    listener->options.limits = &listener->limits;
    if (!options->tls) return;
    listener->tls_files =
        (struct tls_options){listener_keep(&listener->cert, options->tls->cert),
                             listener_keep(&listener->key, options->tls->key),
                             listener_keep(&listener->ca, options->tls->ca)};
    listener->options.tls = &listener->tls_files;
}

static bool bind_to(struct listener *listener, const struct address *address, struct err *e) {
    listener->fd = open_anywhere(address);
    if (listener->fd < 0) return listener_explain(listener, address, errno, e);
    if (address_is_local(address))
        listener->path = str_dup(str_skip(listener->options.address, 5));
    listener->port = port_of(listener->fd);
    return true;
}

static enum exchange_reach reach_of(const struct address *address) {
    if (address_is_local(address)) return REACH_LOCAL;
    return address_is_loopback(address) ? REACH_LOOPBACK : REACH_NET;
}

bool listener_open(struct loop *loop, const struct listener_options *options,
                   listener_accept_fn *on_accept, void *ctx, struct listener **ret,
                   struct err *e) {
    struct address address;
    if (!address_parse(options->address, &address, e))
        return err_add(e, STR_FMT, STR_ARG(options->name));

    struct listener *listener = MEM_NEW(struct listener);
    copy_options(listener, options);
    listener->options.reach = reach_of(&address);
    pthread_mutex_init(&listener->tls.lock, NULL);
    pthread_mutex_init(&listener->strangers.lock, NULL);
    listener->strangers.counts = map_new();
    listener->loop = loop;
    listener->on_accept = on_accept;
    listener->ctx = ctx;
    list_init(&listener->link);
    timer_init(&listener->back_off, loop, stop_back_off, listener);
    if (!listener_read_tls(listener, e) || !bind_to(listener, &address, e)) {
        listener_free(listener);
        return false;
    }
    listener_show_tls(listener);
    int failed = uv_poll_init(loop_uv(loop), &listener->poll, listener->fd);
    assert(failed == 0);
    (void)failed;
    listener->poll.data = listener;
    listener_watch(listener);
    *ret = listener;
    return true;
}

static void free_listener(struct listener *listener) {
    text_done(&listener->name);
    text_done(&listener->address);
    text_done(&listener->cert);
    text_done(&listener->key);
    text_done(&listener->ca);
    tls_unref(listener->tls.now);
    tls_unref(listener->tls.next);
    pthread_mutex_destroy(&listener->tls.lock);
    pthread_mutex_destroy(&listener->strangers.lock);
    map_free(listener->strangers.counts);
    free(listener->path);
    free(listener);
}

static void free_closed(uv_handle_t *handle) {
    free_listener(handle->data);
}

/* Take the descriptor out of the loop before closing it: another loop may get the same
 * number. */
static void listener_release(struct listener *listener, uv_close_cb closed) {
    timer_stop(&listener->back_off);
    uv_close((uv_handle_t *)&listener->poll, closed);
    close(listener->fd);
    listener->fd = -1;
    if (listener->path) unlink(listener->path);
}

/* A listener that still listens (because another one failed to) closes its socket now. Its
 * memory is freed when the loop has released it. */
void listener_free(struct listener *listener) {
    if (!listener) return;
    if (listener->poll.data && listener->fd >= 0) {
        listener_release(listener, free_closed);
    } else {
        free_listener(listener);
    }
}

static void closed(uv_handle_t *handle) {
    struct listener *listener = handle->data;
    listener->on_closed(listener->ctx);
}

void listener_close(struct listener *listener, void (*on_closed)(void *ctx)) {
    listener->on_closed = on_closed;
    listener_release(listener, closed);
}

/* --- certificates ------------------------------------------------------------------------ */

bool listener_read_tls(struct listener *listener, struct err *e) {
    if (!listener->options.tls) return true;
    return tls_load(listener->options.tls, &listener->tls.next, e) ||
           err_add(e, STR_FMT, STR_ARG(listener->options.name));
}

void listener_drop_tls(struct listener *listener) {
    tls_unref(listener->tls.next);
    listener->tls.next = NULL;
}

void listener_show_tls(struct listener *listener) {
    pthread_mutex_lock(&listener->tls.lock);
    struct tls *before = listener->tls.now;
    listener->tls.now = listener->tls.next;
    pthread_mutex_unlock(&listener->tls.lock);
    listener->tls.next = NULL;
    tls_unref(before);
}

struct tls *listener_tls(struct listener *listener) {
    pthread_mutex_lock(&listener->tls.lock);
    struct tls *tls = listener->tls.now ? tls_ref(listener->tls.now) : NULL;
    pthread_mutex_unlock(&listener->tls.lock);
    return tls;
}

/* --- strangers --------------------------------------------------------------------------- */

/* Strangers (connections without a whole request) of one peer may hold this share of all
 * connections. Other connections are not counted, so a proxy may hold all of them. */
#define STRANGERS_SHARE 4

static size_t listener_count_of(const struct listener *listener, struct str owner) {
    return (size_t)(uintptr_t)map_find(listener->strangers.counts, owner);
}

static void set_count(struct listener *listener, struct str owner, size_t count) {
    if (count)
        map_put(listener->strangers.counts, owner, (void *)(uintptr_t)count);
    else
        map_remove(listener->strangers.counts, owner);
}

void listener_meets(struct listener *listener, const struct address_owner *owner) {
    struct str name = str_of(owner->bytes, owner->len);
    if (name.len == 0) return;
    pthread_mutex_lock(&listener->strangers.lock);
    set_count(listener, name, listener_count_of(listener, name) + 1);
    pthread_mutex_unlock(&listener->strangers.lock);
}

void listener_knows(struct listener *listener, const struct address_owner *owner) {
    struct str name = str_of(owner->bytes, owner->len);
    if (name.len == 0) return;
    pthread_mutex_lock(&listener->strangers.lock);
    set_count(listener, name, listener_count_of(listener, name) - 1);
    pthread_mutex_unlock(&listener->strangers.lock);
}

bool listener_sends_away(struct listener *listener, const struct address_owner *owner) {
    struct str name = str_of(owner->bytes, owner->len);
    size_t share = listener->limits.connections_max / STRANGERS_SHARE;
    if (share == 0) share = 1;
    pthread_mutex_lock(&listener->strangers.lock);
    size_t count = listener_count_of(listener, name);
    bool away = count > share;
    bool tells = away && !listener->strangers.told;
    listener->strangers.told |= away;
    if (away) set_count(listener, name, count - 1);
    pthread_mutex_unlock(&listener->strangers.lock);
    if (tells)
        log_warning(
            "one peer has more than %zu connections that have sent no request, a quarter "
            "of limits.connections: such connections are closed; if they are yours, raise "
            "that limit (this is said once)",
            share);
    return away;
}

/* --- accepting ---------------------------------------------------------------------------- */

/* Whether another connection fits. At the limit, clients wait in the kernel's queue until a
 * connection closes. */
static bool has_room(struct listener *listener) {
    if (atomic_load(&listener->conn_count) < listener->limits.connections_max) return true;
    uv_poll_stop(&listener->poll);
    atomic_store(&listener->full, true);
    /* A connection may have closed between the two checks, before `full` was set. */
    if (atomic_load(&listener->conn_count) >= listener->limits.connections_max) return false;
    if (atomic_exchange(&listener->full, false)) listener_watch(listener);
    return false;
}

static void back_off(struct listener *listener, int reason) {
    uint64_t now_ms = loop_now_ms(listener->loop);
    if (listener->warned_ms == 0 || now_ms - listener->warned_ms >= WARN_EVERY_MS) {
        listener->warned_ms = now_ms;
        log_warning(STR_FMT ": cannot accept: %s; trying again every %d ms",
                    STR_ARG(listener->options.name), uv_strerror(-reason), BACK_OFF_MS);
    }
    uv_poll_stop(&listener->poll);
    timer_start(&listener->back_off, BACK_OFF_MS);
}

/* False: nothing more to accept for now. */
static bool accept_one(struct listener *listener) {
    struct address peer = {.len = sizeof(peer.as)};
    int fd = accept4(listener->fd, &peer.as.any, &peer.len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        atomic_fetch_add(&listener->conn_count, 1);
        listener->on_accept(listener, fd, &peer, listener->ctx);
        return true;
    }
    bool gone_already = errno == ECONNABORTED || errno == EINTR || errno == EPROTO;
    if (gone_already) return true;
    if (errno != EAGAIN && errno != EWOULDBLOCK) back_off(listener, errno);
    return false;
}

static void on_acceptable(uv_poll_t *poll, int status, int events) {
    (void)status;
    (void)events;
    struct listener *listener = poll->data;
    for (int i = 0; i < ACCEPTS_A_TURN; i++)
        if (!has_room(listener) || !accept_one(listener)) return;
}

static void listener_watch(struct listener *listener) {
    uv_poll_start(&listener->poll, UV_READABLE, on_acceptable);
}

bool listener_lost_one(struct listener *listener) {
    atomic_fetch_sub(&listener->conn_count, 1);
    return atomic_exchange(&listener->full, false);
}

void listener_resume(void *ctx) {
    struct listener *listener = ctx;
    if (listener->fd >= 0) listener_watch(listener);
}
