#include "server/server.h"

#include "base/mem.h"
#include "server/listener.h"
#include "server/socket.h"
#include "server/tls.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

/* Time for connections that arrived during the stop, once all earlier ones have closed. */
#define LATE_MS 300

const struct state server_phases[SERVER_PHASE_COUNT] = {
    /* clang-format off */
    [SERVER_SERVING]  = {"serving",  TO(SERVER_DRAINING)},
    [SERVER_DRAINING] = {"draining", TO(SERVER_CLOSING)},
    [SERVER_CLOSING]  = {"closing",  0},
    /* clang-format on */
};

struct side { /* the part of the server on one loop */
    struct home home;
    struct server *server;
    struct mail stop, close, cut;
};

struct server {
    struct side *sides;
    size_t side_count;
    struct list listeners;
    struct timer deadline;

    /* References that must end before the server does: connections (from the moment they are
     * accepted), and during the stop the listeners and the mails to each side. The server
     * itself counts as one until it closes. */
    atomic_size_t alive;
    /* Connections accepted while serving, and the server itself until it drains. */
    atomic_size_t early;
    atomic_int phase; /* changed on loops[0] */
    struct mail drained, stopped;
    bool cutting, done;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static void server_on_gone(struct home *home, const struct listener_options *options, bool late,
                           void *ctx);
static void begin_close(void *ctx);
static void on_known(struct home *home, const struct listener_options *options,
                     const struct address_owner *owner);
static bool sends_away(struct home *home, const struct listener_options *options,
                       const struct address_owner *owner);
static void cut_all(void *ctx);

static enum server_phase phase_of(const struct server *server) {
    return (enum server_phase)atomic_load(&server->phase);
}

/* The only function that changes the phase. */
static void server_move(struct server *server, enum server_phase next) {
    assert(states_allow(server_phases, phase_of(server), next));
    atomic_store(&server->phase, next);
}

struct server *server_new(struct loop **loops, size_t loop_count) {
    struct server *server = MEM_NEW(struct server);
    server->sides = mem_zero(loop_count, sizeof(struct side));
    server->side_count = loop_count;
    atomic_init(&server->alive, 1);
    atomic_init(&server->early, 1);
    atomic_init(&server->phase, SERVER_SERVING);
    list_init(&server->listeners);
    timer_init(&server->deadline, loops[0], cut_all, server);
    for (size_t i = 0; i < loop_count; i++) {
        struct side *side = &server->sides[i];
        home_init(&side->home, loops[i]);
        side->server = server;
        side->home.on_gone = server_on_gone;
        side->home.on_known = on_known;
        side->home.sends_away = sends_away;
        side->home.ctx = side;
    }
    return server;
}

void server_free(struct server *server) {
    if (!server) return;
    assert(atomic_load(&server->alive) == (phase_of(server) == SERVER_SERVING ? 1 : 0));
    timer_stop(&server->deadline);
    server_unlisten(server);
    for (size_t i = 0; i < server->side_count; i++) home_done(&server->sides[i].home);
    free(server->sides);
    free(server);
}

void server_unlisten(struct server *server) {
    struct list *link;
    while ((link = list_pop(&server->listeners)))
        listener_free(CONTAINER_OF(link, struct listener, link));
}

/* --- references --------------------------------------------------------------------------- */

static void all_stopped(void *ctx) {
    struct server *server = ctx;
    server->done = true;
    timer_stop(&server->deadline);
    if (server->on_stopped) server->on_stopped(server->stopped_ctx);
}

static void server_release(struct server *server) {
    if (atomic_fetch_sub(&server->alive, 1) == 1)
        loop_post(server->sides[0].home.loop, &server->stopped, all_stopped, server);
}

static void release_early(struct server *server) {
    if (atomic_fetch_sub(&server->early, 1) == 1)
        loop_post(server->sides[0].home.loop, &server->drained, begin_close, server);
}

/* Add references, unless the last one has been released. */
static bool hold_if_alive(struct server *server, size_t count) {
    size_t alive = atomic_load(&server->alive);
    do {
        if (alive == 0) return false;
    } while (!atomic_compare_exchange_weak(&server->alive, &alive, alive + count));
    return true;
}

/* --- connections come and go -------------------------------------------------------------- */

/* A socket on its way to its loop. */
struct arrival {
    struct mail mail;
    struct side *side;
    struct listener *listener;
    struct address peer;
    int fd;
    bool late;
    struct tls *tls; /* NULL: none */
};

static void lose_one(struct side *side, struct listener *listener, bool late) {
    struct server *server = side->server;
    atomic_fetch_sub(&side->home.conn_count, 1);
    if (listener_lost_one(listener) && phase_of(server) != SERVER_CLOSING)
        loop_post(listener->loop, &listener->room, listener_resume, listener);
    if (!late) release_early(server);
    server_release(server);
}

static struct listener *listener_of(const struct listener_options *options) {
    const struct listener *listener = CONTAINER_OF(options, struct listener, options);
    return (struct listener *)(uintptr_t)listener;
}

static void on_known(struct home *home, const struct listener_options *options,
                     const struct address_owner *owner) {
    (void)home;
    listener_knows(listener_of(options), owner);
}

static bool sends_away(struct home *home, const struct listener_options *options,
                       const struct address_owner *owner) {
    (void)home;
    return listener_sends_away(listener_of(options), owner);
}

static void server_on_gone(struct home *home, const struct listener_options *options, bool late,
                           void *ctx) {
    (void)home;
    lose_one(ctx, listener_of(options), late);
}

static void settle_in(void *ctx) {
    struct arrival *arrival = ctx;
    struct side *side = arrival->side;
    struct address_owner owner = address_owner(&arrival->peer);
    if (phase_of(side->server) == SERVER_CLOSING) {
        listener_knows(arrival->listener, &owner);
        close(arrival->fd);
        lose_one(side, arrival->listener, arrival->late);
    } else {
        char peer[CONN_PEER_BYTES];
        address_print(&arrival->peer, peer, sizeof(peer));
        const struct conn_options options = {
            .home = &side->home,
            .listener = &arrival->listener->options,
            .peer = str_from(peer),
            .peer_is_loopback = address_is_loopback(&arrival->peer),
            .late = arrival->late,
            .owner = owner,
        };
        socket_serve(arrival->fd, arrival->tls, &options);
    }
    tls_unref(arrival->tls);
    free(arrival);
}

static struct side *emptiest_side(const struct server *server) {
    struct side *best = &server->sides[0];
    for (size_t i = 1; i < server->side_count; i++)
        if (atomic_load(&server->sides[i].home.conn_count) <
            atomic_load(&best->home.conn_count))
            best = &server->sides[i];
    return best;
}

static void on_accept(struct listener *listener, int fd, const struct address *peer,
                      void *ctx) {
    struct server *server = ctx;
    struct side *side = emptiest_side(server);
    bool late = phase_of(server) != SERVER_SERVING;
    atomic_fetch_add(&server->alive, 1);
    if (!late) atomic_fetch_add(&server->early, 1);
    atomic_fetch_add(&side->home.conn_count, 1);
    struct arrival *arrival = MEM_NEW(struct arrival);
    arrival->side = side;
    arrival->listener = listener;
    arrival->peer = *peer;
    arrival->fd = fd;
    arrival->late = late;
    arrival->tls = listener_tls(listener);
    struct address_owner owner = address_owner(peer);
    listener_meets(listener, &owner);
    if (side == &server->sides[0])
        settle_in(arrival);
    else
        loop_post(side->home.loop, &arrival->mail, settle_in, arrival);
}

bool server_listen(struct server *server, const struct listener_options *options,
                   struct err *e) {
    struct listener *listener;
    if (!listener_open(server->sides[0].home.loop, options, on_accept, server, &listener, e))
        return false;
    list_append(&server->listeners, &listener->link);
    return true;
}

/* Read all files before any is used, so that an error in one changes nothing. */
bool server_reload_tls(struct server *server, struct err *e) {
    bool good = true;
    LIST_EACH(&server->listeners, link) {
        if (good) good = listener_read_tls(CONTAINER_OF(link, struct listener, link), e);
    }
    LIST_EACH(&server->listeners, link) {
        struct listener *listener = CONTAINER_OF(link, struct listener, link);
        if (!good)
            listener_drop_tls(listener);
        else if (listener->options.tls)
            listener_show_tls(listener);
    }
    return good;
}

int server_port(const struct server *server, struct str name) {
    LIST_EACH(&server->listeners, link) {
        const struct listener *listener = CONTAINER_OF(link, struct listener, link);
        if (str_equal(listener->options.name, name)) return listener->port;
    }
    return 0;
}

size_t server_listeners(const struct server *server, struct server_listener *ret, size_t max) {
    size_t count = 0;
    LIST_EACH(&server->listeners, link) {
        const struct listener *listener = CONTAINER_OF(link, struct listener, link);
        const struct listener_options *options = &listener->options;
        if (count == max) break;
        ret[count++] = (struct server_listener){options->name, options->address, listener->port,
                                                options->tls != NULL};
    }
    return count;
}

/* --- stopping ----------------------------------------------------------------------------- */

/* Run `obey` on each side, which then releases the server. mail_at: of the mail, in a side. */
static void post_to_sides(struct server *server, size_t mail_at, void (*obey)(void *side)) {
    for (size_t i = 0; i < server->side_count; i++) {
        struct side *side = &server->sides[i];
        struct mail *mail = (struct mail *)(void *)((char *)side + mail_at);
        loop_post(side->home.loop, mail, obey, side);
    }
}

static void shut_down_side(void *ctx) {
    struct side *side = ctx;
    home_shut_down(&side->home);
    LIST_EACH(&side->home.conns, link)
    conn_shut_down(CONTAINER_OF(link, struct conn, link));
    server_release(side->server);
}

static void cut_side(void *ctx) {
    struct side *side = ctx;
    LIST_EACH(&side->home.conns, link)
    conn_cut(CONTAINER_OF(link, struct conn, link), EXCHANGE_ABORTED);
    server_release(side->server);
}

static void stop_within(struct server *server, uint64_t within_ms) {
    uint64_t due_ms = loop_now_ms(server->sides[0].home.loop) + within_ms;
    bool sooner = !timer_waits(&server->deadline) || due_ms < server->deadline.due_ms;
    if (sooner) timer_start(&server->deadline, within_ms);
}

static void listener_closed(void *ctx) {
    server_release(ctx);
}

/* The earlier connections have closed, or their time is over. */
static void begin_close(void *ctx) {
    struct server *server = ctx;
    if (phase_of(server) == SERVER_CLOSING) return;
    server_move(server, SERVER_CLOSING);
    LIST_EACH(&server->listeners, link) {
        atomic_fetch_add(&server->alive, 1);
        listener_close(CONTAINER_OF(link, struct listener, link), listener_closed);
    }
    atomic_fetch_add(&server->alive, server->side_count);
    post_to_sides(server, offsetof(struct side, close), shut_down_side);
    stop_within(server, LATE_MS);
    server_release(server);
}

static void cut_all(void *ctx) {
    struct server *server = ctx;
    begin_close(server);
    if (server->cutting || !hold_if_alive(server, server->side_count)) return;
    server->cutting = true;
    post_to_sides(server, offsetof(struct side, cut), cut_side);
}

static void begin_drain(struct server *server) {
    server_move(server, SERVER_DRAINING);
    atomic_fetch_add(&server->alive, server->side_count);
    post_to_sides(server, offsetof(struct side, stop), shut_down_side);
    release_early(server);
}

void server_stop(struct server *server, uint64_t within_ms, void (*on_stopped)(void *ctx),
                 void *ctx) {
    if (server->done) return;
    if (on_stopped) {
        server->on_stopped = on_stopped;
        server->stopped_ctx = ctx;
    }
    if (phase_of(server) == SERVER_SERVING) begin_drain(server);
    stop_within(server, within_ms);
}

void server_hold(struct server *server) {
    atomic_fetch_add(&server->early, 1);
}

void server_let_go(struct server *server) {
    release_early(server);
}

struct server_counts server_counts(const struct server *server) {
    struct server_counts counts = {0};
    for (size_t i = 0; i < server->side_count; i++) {
        const struct home *home = &server->sides[i].home;
        counts.connections += atomic_load_explicit(&home->conn_count, memory_order_relaxed);
        counts.exchanges += atomic_load_explicit(&home->exchange_count, memory_order_relaxed);
        counts.accepted += atomic_load_explicit(&home->accepted, memory_order_relaxed);
        counts.requests += atomic_load_explicit(&home->requests, memory_order_relaxed);
        counts.slow_cut += atomic_load_explicit(&home->slow_cut, memory_order_relaxed);
    }
    return counts;
}
