#include "client/dial.h"

#include "base/mem.h"
#include "client/http.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#define ADDRESSES_MAX 16
#define NEXT_MS 250 /* RFC 8305 5 */
#define THREAD_STACK_BYTES ((size_t)(256 * KIB))

union address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

struct addresses {
    union address at[ADDRESSES_MAX];
    size_t count;
};

/* One look-up, shared by its thread and its dial; the last of both frees it. */
struct lookup {
    uv_async_t wake;
    pthread_mutex_t lock;
    bool wanted; /* under the lock: there is still a dial */
    bool ready;  /* under the lock */
    int refs;    /* under the lock */
    char *host;
    struct addresses found;
    int failed; /* of getaddrinfo() */
    struct dial *dial;
};

struct attempt {
    uv_poll_t poll;
    struct dial *dial; /* NULL: it is given up */
    int fd;
};

struct dial {
    struct loop *loop;
    uint16_t port;
    bool public_only;
    dial_fn *on_dialled;
    void *ctx;
    struct lookup *lookup;
    struct addresses addresses;
    size_t next; /* address to try */
    struct attempt *attempts[ADDRESSES_MAX];
    size_t pending, tried, refused;
    int last_errno;
    struct timer timer;
};

/* --- addresses ---------------------------------------------------------------------------- */

static void add_address(struct addresses *list, const struct sockaddr *address) {
    if (list->count == ADDRESSES_MAX) return;
    union address *to = &list->at[list->count];
    if (address->sa_family == AF_INET) {
        memcpy(&to->four, address, sizeof(to->four));
    } else if (address->sa_family == AF_INET6) {
        memcpy(&to->six, address, sizeof(to->six));
    } else {
        return;
    }
    list->count++;
}

/* The next unused address at or after `from` of the other family, or of any. */
static size_t pick(const struct addresses *list, const bool *used, int not_family) {
    size_t any = list->count;
    for (size_t i = 0; i < list->count; i++) {
        if (used[i]) continue;
        if (list->at[i].any.sa_family != not_family) return i;
        if (any == list->count) any = i;
    }
    return any;
}

/* The families take turns; within one the resolver's order stays. */
static void interleave(struct addresses *list) {
    struct addresses sorted = {.count = 0};
    bool used[ADDRESSES_MAX] = {false};
    int family = AF_UNSPEC;
    while (sorted.count < list->count) {
        size_t i = pick(list, used, family);
        used[i] = true;
        family = list->at[i].any.sa_family;
        sorted.at[sorted.count++] = list->at[i];
    }
    *list = sorted;
}

static bool address_is_public(const union address *address) {
    if (address->any.sa_family == AF_INET)
        return http_address_is_public((const unsigned char *)&address->four.sin_addr, 4);
    return http_address_is_public((const unsigned char *)&address->six.sin6_addr, 16);
}

/* An address as it stands, in each spelling that getaddrinfo() knows too: "127.1". */
static bool read_literal(const char *host, struct addresses *ret) {
    union address address = {0};
    ret->count = 0;
    if (inet_pton(AF_INET6, host, &address.six.sin6_addr) == 1) {
        address.six.sin6_family = AF_INET6;
    } else if (inet_aton(host, &address.four.sin_addr)) {
        address.four.sin_family = AF_INET;
    } else {
        return false;
    }
    add_address(ret, &address.any);
    return true;
}

/* --- attempts ----------------------------------------------------------------------------- */

static void free_attempt(uv_handle_t *handle) {
    free(handle->data);
}

/* The descriptor stays open when it is somebody else's now. */
static void let_go(struct attempt *attempt) {
    attempt->dial->pending--;
    attempt->dial = NULL;
    uv_close((uv_handle_t *)&attempt->poll, free_attempt);
}

static void give_up_attempts(struct dial *dial) {
    for (size_t i = 0; i < dial->next; i++) {
        struct attempt *attempt = dial->attempts[i];
        if (!attempt) continue;
        dial->attempts[i] = NULL;
        let_go(attempt);
        close(attempt->fd);
    }
}

static void lookup_leave(struct lookup *lookup);

static void dial_free(struct dial *dial) {
    give_up_attempts(dial);
    timer_stop(&dial->timer);
    if (dial->lookup) lookup_leave(dial->lookup);
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
                "the server has no public address; what stands on this machine or in a private "
                "network is not asked");
    } else {
        err_set(&why, ERR_UNAVAILABLE, "nobody answers there (%s)",
                strerrordesc_np(dial->last_errno ? dial->last_errno : ECONNREFUSED));
    }
    dial_report(dial, -1, &why);
}

static void try_next(struct dial *dial);

static void attempt_failed(struct dial *dial, size_t index, int error) {
    struct attempt *attempt = dial->attempts[index];
    dial->last_errno = error;
    dial->attempts[index] = NULL;
    let_go(attempt);
    close(attempt->fd);
    try_next(dial);
}

static size_t index_of(const struct dial *dial, const struct attempt *attempt) {
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
    size_t index = index_of(dial, attempt);
    if (getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) error = errno;
    if (!error && status < 0) error = -status;
    if (error) {
        attempt_failed(dial, index, error);
        return;
    }
    int fd = attempt->fd;
    dial->attempts[index] = NULL;
    let_go(attempt);
    dial_report(dial, fd, NULL);
}

static void set_options(int fd) {
    int on = 1, idle_s = 60, apart_s = 60;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &apart_s, sizeof(apart_s));
}

/* 0, or why not. */
static int begin_attempt(struct dial *dial, const union address *address, size_t index) {
    bool six = address->any.sa_family == AF_INET6;
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    set_options(fd);
    int result = connect(fd, &address->any, six ? sizeof(address->six) : sizeof(address->four));
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
    assert(failed == 0); /* a fresh, nonblocking descriptor */
    (void)failed;
    uv_poll_start(&attempt->poll, UV_WRITABLE, on_writable);
    dial->attempts[index] = attempt;
    dial->pending++;
    return 0;
}

/* Here stands the very address that is connected to next, wherever it came from: what a name
 * meant a moment ago, and how a URL spelled it, does not count. */
static void try_next(struct dial *dial) {
    while (dial->next < dial->addresses.count) {
        size_t index = dial->next++;
        union address *address = &dial->addresses.at[index];
        if (dial->public_only && !address_is_public(address)) {
            dial->refused++;
            continue;
        }
        dial->tried++;
        if (address->any.sa_family == AF_INET6)
            address->six.sin6_port = htons(dial->port);
        else
            address->four.sin_port = htons(dial->port);
        int error = begin_attempt(dial, address, index);
        if (error) {
            dial->last_errno = error;
            continue;
        }
        if (dial->next < dial->addresses.count) timer_start(&dial->timer, NEXT_MS);
        return;
    }
    if (dial->pending == 0) dial_fail(dial);
}

static void on_next(void *ctx) {
    try_next(ctx);
}

/* --- look-ups ----------------------------------------------------------------------------- */

static void lookup_unref(struct lookup *lookup) {
    pthread_mutex_lock(&lookup->lock);
    bool last = --lookup->refs == 0;
    pthread_mutex_unlock(&lookup->lock);
    if (!last) return;
    pthread_mutex_destroy(&lookup->lock);
    free(lookup->host);
    free(lookup);
}

static void on_lookup_closed(uv_handle_t *handle) {
    lookup_unref(handle->data);
}

/* The dial's side: the thread may take its time. */
static void lookup_leave(struct lookup *lookup) {
    pthread_mutex_lock(&lookup->lock);
    lookup->wanted = false;
    pthread_mutex_unlock(&lookup->lock);
    lookup->dial = NULL;
    uv_close((uv_handle_t *)&lookup->wake, on_lookup_closed);
}

static void *look_up(void *ctx) {
    struct lookup *lookup = ctx;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *infos = NULL;
    lookup->failed = getaddrinfo(lookup->host, NULL, &hints, &infos);
    for (struct addrinfo *info = infos; !lookup->failed && info; info = info->ai_next)
        add_address(&lookup->found, info->ai_addr);
    if (infos) freeaddrinfo(infos);
    pthread_mutex_lock(&lookup->lock);
    lookup->ready = true;
    if (lookup->wanted) uv_async_send(&lookup->wake);
    pthread_mutex_unlock(&lookup->lock);
    lookup_unref(lookup);
    return NULL;
}

static void on_looked_up(uv_async_t *wake) {
    struct lookup *lookup = wake->data;
    struct dial *dial = lookup->dial;
    struct err why;
    if (!dial) return;
    int failed = lookup->failed;
    dial->addresses = lookup->found;
    dial->lookup = NULL;
    lookup_leave(lookup);
    if (failed || dial->addresses.count == 0) {
        err_set(&why, ERR_UNAVAILABLE, "the name of the server is not known (%s)",
                failed ? gai_strerror(failed) : "it has no address");
        dial_report(dial, -1, &why);
        return;
    }
    interleave(&dial->addresses);
    try_next(dial);
}

static struct lookup *lookup_new(struct dial *dial, const char *host) {
    struct lookup *lookup = MEM_NEW(struct lookup);
    pthread_mutex_init(&lookup->lock, NULL);
    lookup->host = str_dup(str_from(host));
    lookup->refs = 1;
    lookup->wanted = true;
    lookup->dial = dial;
    lookup->wake.data = lookup;
    uv_async_init(loop_uv(dial->loop), &lookup->wake, on_looked_up);
    return lookup;
}

/* A machine without a thread left answers as one without a name server. */
static void lookup_begin(struct lookup *lookup) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
    lookup->refs = 2;
    if (pthread_create(&thread, &attributes, look_up, lookup) != 0) {
        lookup->refs = 1;
        lookup->failed = EAI_MEMORY;
        uv_async_send(&lookup->wake);
    }
    pthread_attr_destroy(&attributes);
}

/* --- the public story --------------------------------------------------------------------- */

struct dial *dial_new(struct loop *loop, struct str host, uint16_t port, bool public_only,
                      dial_fn *on_dialled, void *ctx) {
    struct dial *dial = MEM_NEW(struct dial);
    dial->loop = loop;
    dial->port = port;
    dial->public_only = public_only;
    dial->on_dialled = on_dialled;
    dial->ctx = ctx;
    timer_init(&dial->timer, loop, on_next, dial);
    char *name = str_dup(host);
    if (read_literal(name, &dial->addresses)) {
        timer_start(&dial->timer, 0);
    } else {
        dial->lookup = lookup_new(dial, name);
        lookup_begin(dial->lookup);
    }
    free(name);
    return dial;
}

void dial_cancel(struct dial *dial) {
    if (dial) dial_free(dial);
}
