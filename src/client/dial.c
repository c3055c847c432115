#include "client/dial.h"

#include "base/mem.h"
#include "client/http.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#define NEXT_MS 250 /* RFC 8305 5 */

struct attempt {
    uv_poll_t poll;
    struct dial *dial; /* NULL: abandoned */
    int fd;
};

struct dial {
    struct loop *loop;
    struct str socket; /* a Unix socket instead of addresses; or empty */
    uint16_t port;
    enum http_reach reach;
    dial_fn *on_dialled;
    void *ctx;
    struct name_wait wait;
    struct name_addresses addresses;
    size_t next; /* index of the next address to try */
    struct attempt *attempts[NAMES_ADDRESSES_MAX];
    size_t pending, tried, refused;
    int last_errno;
    struct timer timer;
};

/* --- addresses ---------------------------------------------------------------------------- */

/* The next unused address at or after `from`, of the other family if there is one. */
static size_t pick(const struct name_addresses *list, const bool *used, int not_family) {
    size_t any = list->count;
    for (size_t i = 0; i < list->count; i++) {
        if (used[i]) continue;
        if (list->at[i].any.sa_family != not_family) return i;
        if (any == list->count) any = i;
    }
    return any;
}

/* Alternate between the families; within each, keep the resolver's order. */
static void interleave(struct name_addresses *list) {
    struct name_addresses sorted = {.count = 0};
    bool used[NAMES_ADDRESSES_MAX] = {false};
    int family = AF_UNSPEC;
    while (sorted.count < list->count) {
        size_t i = pick(list, used, family);
        used[i] = true;
        family = list->at[i].any.sa_family;
        sorted.at[sorted.count++] = list->at[i];
    }
    *list = sorted;
}

static bool is_in_reach(enum http_reach reach, const union name_address *address) {
    if (address->any.sa_family == AF_INET)
        return http_address_is_in_reach(reach, (const unsigned char *)&address->four.sin_addr,
                                        4);
    return http_address_is_in_reach(reach, (const unsigned char *)&address->six.sin6_addr, 16);
}

/* Parse a literal address, in the spellings that getaddrinfo() accepts too ("127.1"). */
static bool read_literal(const char *host, struct name_addresses *ret) {
    union name_address address = {0};
    ret->count = 0;
    if (inet_pton(AF_INET6, host, &address.six.sin6_addr) == 1) {
        address.six.sin6_family = AF_INET6;
    } else if (inet_aton(host, &address.four.sin_addr)) {
        address.four.sin_family = AF_INET;
    } else {
        return false;
    }
    name_addresses_add(ret, &address.any);
    return true;
}

/* --- attempts ----------------------------------------------------------------------------- */

static void free_attempt(uv_handle_t *handle) {
    free(handle->data);
}

/* Release the attempt without closing its descriptor, which may have a new owner. */
static void attempt_release(struct attempt *attempt) {
    attempt->dial->pending--;
    attempt->dial = NULL;
    uv_close((uv_handle_t *)&attempt->poll, free_attempt);
}

static void give_up_attempts(struct dial *dial) {
    for (size_t i = 0; i < dial->next; i++) {
        struct attempt *attempt = dial->attempts[i];
        if (!attempt) continue;
        dial->attempts[i] = NULL;
        attempt_release(attempt);
        close(attempt->fd);
    }
}

static void dial_free(struct dial *dial) {
    give_up_attempts(dial);
    timer_stop(&dial->timer);
    names_cancel(&dial->wait);
    free(dial);
}

static void dial_report(struct dial *dial, int fd, const struct err *why) {
    dial_fn *on_dialled = dial->on_dialled;
    void *ctx = dial->ctx;
    dial_free(dial);
    on_dialled(fd, why, ctx);
}

static void dial_fail(struct dial *dial) {
    struct err why;
    if (dial->refused && !dial->tried) {
        err_set(&why, ERR_PERMISSION_DENIED,
                dial->reach == HTTP_PUBLIC_ONLY
                    ? "the server has no public address; what stands on this machine or in a "
                      "private network is not asked"
                    : "the server has only link-local or private IPv6 addresses, where clouds "
                      "serve credentials, and those are not asked");
    } else {
        err_set(&why, ERR_UNAVAILABLE, "no server answers there (%s)",
                strerrordesc_np(dial->last_errno ? dial->last_errno : ECONNREFUSED));
    }
    dial_report(dial, -1, &why);
}

static void try_next(struct dial *dial);

static void attempt_failed(struct dial *dial, size_t index, int error) {
    struct attempt *attempt = dial->attempts[index];
    dial->last_errno = error;
    dial->attempts[index] = NULL;
    attempt_release(attempt);
    close(attempt->fd);
    try_next(dial);
}

static size_t dial_index_of(const struct dial *dial, const struct attempt *attempt) {
    size_t index = 0;
    while (dial->attempts[index] != attempt) index++;
    return index;
}

static void on_writable(uv_poll_t *poll, int status, int events) {
    struct attempt *attempt = poll->data;
    struct dial *dial = attempt->dial;
    int error = 0;
    socklen_t len = sizeof(error);
    (void)events;
    if (!dial) return;
    size_t index = dial_index_of(dial, attempt);
    if (getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) error = errno;
    if (!error && status < 0) error = -status;
    if (error) {
        attempt_failed(dial, index, error);
        return;
    }
    int fd = attempt->fd;
    dial->attempts[index] = NULL;
    attempt_release(attempt);
    dial_report(dial, fd, NULL);
}

static void dial_set_options(int fd) {
    int on = 1, idle_s = 60, apart_s = 60;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &apart_s, sizeof(apart_s));
}

/* Returns 0 or an errno. */
static int begin_attempt(struct dial *dial, const struct sockaddr *address, socklen_t len,
                         size_t index) {
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    if (address->sa_family != AF_UNIX) dial_set_options(fd);
    int result = connect(fd, address, len);
    if (result != 0 && errno != EINPROGRESS) {
        int error = errno;
        close(fd);
        return error;
    }
    struct attempt *attempt = MEM_NEW(struct attempt);
    attempt->dial = dial;
    attempt->fd = fd;
    attempt->poll.data = attempt;
    int failed = uv_poll_init(loop_uv(dial->loop), &attempt->poll, fd);
    assert(failed == 0); /* the descriptor is new and nonblocking */
    (void)failed;
    uv_poll_start(&attempt->poll, UV_WRITABLE, on_writable);
    dial->attempts[index] = attempt;
    dial->pending++;
    return 0;
}

/* The check is made on the very address that is connected to. An earlier lookup of the name, or
 * the spelling in the URL, does not matter. */
static void try_next(struct dial *dial) {
    while (dial->next < dial->addresses.count) {
        size_t index = dial->next++;
        union name_address *address = &dial->addresses.at[index];
        if (!is_in_reach(dial->reach, address)) {
            dial->refused++;
            continue;
        }
        dial->tried++;
        if (address->any.sa_family == AF_INET6)
            address->six.sin6_port = htons(dial->port);
        else
            address->four.sin_port = htons(dial->port);
        bool six = address->any.sa_family == AF_INET6;
        int error = begin_attempt(dial, &address->any,
                                  six ? sizeof(address->six) : sizeof(address->four), index);
        if (error) {
            dial->last_errno = error;
            continue;
        }
        if (dial->next < dial->addresses.count) timer_start(&dial->timer, NEXT_MS);
        return;
    }
    if (dial->pending == 0) dial_fail(dial);
}

/* The one attempt of a dial without addresses. */
static void try_socket(struct dial *dial) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t index = dial->next++;
    if (dial->socket.len < sizeof(address.sun_path)) {
        memcpy(address.sun_path, dial->socket.at, dial->socket.len);
        dial->last_errno =
            begin_attempt(dial, (const struct sockaddr *)&address, sizeof(address), index);
    } else {
        dial->last_errno = ENAMETOOLONG;
    }
    if (dial->pending == 0) dial_fail(dial);
}

static void on_next(void *ctx) {
    struct dial *dial = ctx;
    if (dial->socket.len)
        try_socket(dial);
    else
        try_next(dial);
}

/* --- its name --- */

static void on_looked_up(const struct name_addresses *found, int failed, void *ctx) {
    struct dial *dial = ctx;
    struct err why;
    if (failed || found->count == 0) {
        err_set(&why, ERR_UNAVAILABLE, "the name of the server is not known (%s)",
                failed ? gai_strerror(failed) : "it has no address");
        dial_report(dial, -1, &why);
        return;
    }
    dial->addresses = *found;
    interleave(&dial->addresses);
    try_next(dial);
}

/* --- public functions --------------------------------------------------------------------- */

struct dial *dial_new(struct place *place, struct str host, uint16_t port,
                      enum http_reach reach, dial_fn *on_dialled, void *ctx) {
    struct dial *dial = MEM_NEW(struct dial);
    dial->loop = place->loop;
    dial->socket = place->socket;
    dial->port = port;
    dial->reach = reach;
    dial->on_dialled = on_dialled;
    dial->ctx = ctx;
    timer_init(&dial->timer, place->loop, on_next, dial);
    if (dial->socket.len) {
        timer_start(&dial->timer, 0);
        return dial;
    }
    char *name = str_dup(host);
    if (read_literal(name, &dial->addresses)) {
        timer_start(&dial->timer, 0);
    } else {
        names_ask(&place->names, host, &dial->wait, on_looked_up, dial);
    }
    free(name);
    return dial;
}

void dial_cancel(struct dial *dial) {
    if (dial) dial_free(dial);
}
