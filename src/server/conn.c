#include "server/conn.h"

#include "base/mem.h"
#include "server/http2_memory.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <time.h>

#define CONN_MAGIC 0x636f6e6eu

/* Bytes written per turn; then other connections get theirs. */
#define TURN_BYTES (512 * KIB)

/* Limits for a lingering connection whose peer does not stop sending. */
#define LINGER_MS 1000
#define LINGER_MAX_BYTES (1 * MIB)

/* A handler ends its stalled stream with a status at write_stall_ms (ruling K20). If none does,
 * the server cuts the stream this much later. */
#define STALL_GRACE_MS 5000

#define HOME_REST_MS 5000

#define SPARE_MIN_BYTES 256 /* the room of a queue that sends a short event at a time */
#define SPARE_MAX_BYTES (1 * MIB)

static const struct str preface = STR_INIT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

const struct state conn_states[CONN_STATE_COUNT] = {
    /* clang-format off */
    [CONN_OPEN]      = {"open",      TO(CONN_FINISHING) | TO(CONN_CUT)},
    [CONN_FINISHING] = {"finishing", TO(CONN_LINGERING) | TO(CONN_CUT)},
    [CONN_LINGERING] = {"lingering", TO(CONN_CUT)},
    [CONN_CUT]       = {"cut",       0},
    /* clang-format on */
};

/* The only function that writes conn->state. */
static void conn_move(struct conn *conn, enum conn_state next) {
    assert(states_allow(conn_states, conn->state, next));
    conn->state = next;
}

/* --- home --------------------------------------------------------------------------------- */

static void on_rest(void *ctx);

void home_init(struct home *home, struct loop *loop) {
    *home = (struct home){.loop = loop, .date_s = -1};
    list_init(&home->conns);
    timer_init(&home->rest, loop, on_rest, home);
    region_pool_init(&home->regions);
    list_init(&home->awake);
    timer_init(&home->look, loop, http2_memory_look, home);
    buf_init(&home->tls_plain, HOME_READ_BYTES + HOME_TLS_ROOM);
    buf_init(&home->tls_out, HOME_GATHER_ROOM + HOME_TLS_ROOM);
}

static void conn_release(struct home *home) {
    for (size_t i = 0; i < HOME_SPARES; i++) buf_done(&home->spares[i]);
    buf_release(&home->tls_plain);
    buf_release(&home->tls_out);
    free(home->read_bytes);
    free(home->gather_bytes);
    home->read_bytes = home->gather_bytes = NULL;
    region_pool_rest(&home->regions);
}

void home_done(struct home *home) {
    assert(list_empty(&home->conns));
    timer_stop(&home->rest);
    timer_stop(&home->look);
    conn_release(home);
    region_pool_done(&home->regions);
    nghttp2_session_callbacks_del(home->callbacks);
    nghttp2_option_del(home->options);
}

static void on_rest(void *ctx) {
    struct home *home = ctx;
    if (atomic_load_explicit(&home->exchange_count, memory_order_relaxed) == 0)
        conn_release(home);
}

void home_settle(struct home *home) {
    size_t left = atomic_load_explicit(&home->exchange_count, memory_order_relaxed);
    bool rests = left == 0 && !home->shut_down && !timer_waits(&home->rest);
    if (rests) timer_start(&home->rest, HOME_REST_MS);
}

void home_shut_down(struct home *home) {
    home->shut_down = true;
    timer_stop(&home->rest);
    timer_stop(&home->look);
}

char *home_read_bytes(struct home *home) {
    if (!home->read_bytes) home->read_bytes = mem_alloc(HOME_READ_BYTES);
    return home->read_bytes;
}

static char *home_gather_bytes(struct home *home) {
    if (!home->gather_bytes) home->gather_bytes = mem_alloc(HOME_GATHER_ROOM);
    return home->gather_bytes;
}

void home_lend_spare(struct home *home, struct buf *queue) {
    for (size_t i = HOME_SPARES; i-- > 0;) {
        if (!home->spares[i].at) continue;
        queue->at = home->spares[i].at;
        queue->room = home->spares[i].room;
        home->spares[i] = (struct buf){0};
        return;
    }
}

/* The spare to give up for a larger one: a free place, or the smallest. */
static struct buf *least_spare(struct home *home) {
    struct buf *least = &home->spares[0];
    for (size_t i = 1; i < HOME_SPARES; i++) {
        if (home->spares[i].room < least->room) least = &home->spares[i];
    }
    return least;
}

void home_take_spare(struct home *home, struct buf *queue) {
    bool worth = queue->room >= SPARE_MIN_BYTES && queue->room <= SPARE_MAX_BYTES;
    struct buf *least = least_spare(home);
    if (worth && queue->room > least->room) {
        buf_done(least);
        *least = (struct buf){.at = queue->at, .room = queue->room};
        buf_init(queue, queue->max_bytes);
        return;
    }
    buf_release(queue);
}

struct str home_date(struct home *home) {
    time_t now = time(NULL);
    if ((int64_t)now != home->date_s) {
        struct tm parts;
        gmtime_r(&now, &parts);
        strftime(home->date, sizeof(home->date), "%a, %d %b %Y %H:%M:%S GMT", &parts);
        home->date_s = (int64_t)now;
    }
    return str_from(home->date);
}

void gather_append(struct gather *gather, struct str bytes) {
    assert(bytes.len <= gather_room(gather));
    if (bytes.len) memcpy(gather->at + gather->len, bytes.at, bytes.len);
    gather->len += bytes.len;
}

/* --- a connection's life ------------------------------------------------------------------ */

static uint64_t conn_now_ms(const struct conn *conn) {
    return loop_now_ms(conn->home->loop);
}

static void flush(void *ctx);
static void tick(void *ctx);

struct conn *conn_new(const struct conn_options *options) {
    struct conn *conn = MEM_NEW(struct conn);
    conn->magic = CONN_MAGIC;
    conn->home = options->home;
    conn->transport = options->transport;
    conn->transport->conn = conn;
    conn->listener = options->listener;
    conn->limits =
        options->listener->limits ? options->listener->limits : &server_limits_default;
    conn->peer_is_loopback = options->peer_is_loopback;
    conn->late = options->late;
    conn->owner = conn->stranger = options->owner;
    struct str peer = str_head(options->peer, CONN_PEER_BYTES - 1);
    memcpy(conn->peer, peer.at, peer.len);

    list_init(&conn->exchanges);
    list_init(&conn->dirty);
    list_init(&conn->waiting);
    list_init(&conn->link);
    list_append(&conn->home->conns, &conn->link);
    task_init(&conn->flush, flush, conn);
    timer_init(&conn->timer, conn->home->loop, tick, conn);
    buf_init(&conn->unsent, HOME_GATHER_ROOM);

    conn->stranger_ms = conn->opened_ms = conn->read_ms = conn->progress_ms = conn->idle_ms =
        conn_now_ms(conn);
    conn->scan_ms = CONN_NEVER;
    atomic_fetch_add_explicit(&conn->home->accepted, 1, memory_order_relaxed);
    conn_watch(conn);
    conn_rearm(conn);
    return conn;
}

static void close_exchanges(struct conn *conn, enum exchange_close how) {
    while (!list_empty(&conn->exchanges))
        exchange_close(CONTAINER_OF(conn->exchanges.next, struct exchange, link), how);
}

void conn_cut(struct conn *conn, enum exchange_close how) {
    if (conn->state == CONN_CUT) return;
    conn_move(conn, CONN_CUT);
    close_exchanges(conn, how);
    timer_stop(&conn->timer);
    task_cancel(&conn->flush);
    conn->transport->kind->close(conn->transport);
}

void conn_closed(struct conn *conn) {
    assert(conn->magic == CONN_MAGIC && conn->state == CONN_CUT);
    struct home *home = conn->home;
    const struct listener_options *listener = conn->listener;
    bool late = conn->late;
    conn_known(conn);
    if (conn->protocol) conn->protocol->free(conn);
    buf_done(&conn->unsent);
    list_remove(&conn->link);
    conn->magic = 0;
    free(conn);
    if (home->on_gone) home->on_gone(home, listener, late, home->ctx);
}

void conn_known(struct conn *conn) {
    if (conn->stranger.len && conn->home->on_known)
        conn->home->on_known(conn->home, conn->listener, &conn->stranger);
    conn->stranger.len = 0;
}

void conn_finish(struct conn *conn) {
    if (conn->state != CONN_OPEN) return;
    conn_move(conn, CONN_FINISHING);
    close_exchanges(conn, EXCHANGE_ABORTED);
    conn_flush_soon(conn);
}

void conn_shut_down(struct conn *conn) {
    if (conn->stopping || conn->state != CONN_OPEN) return;
    conn->stopping = true;
    if (conn->protocol)
        conn->protocol->shut_down(conn);
    else
        conn_cut(conn, EXCHANGE_ABORTED);
}

/* All output has left. Wait for the peer to close: closing with unread input would send a
 * reset, which could overtake the answer. */
static void linger(struct conn *conn) {
    if (conn->peer_ended) {
        conn_cut(conn, EXCHANGE_ABORTED);
        return;
    }
    conn_move(conn, CONN_LINGERING);
    conn->linger_ms = conn_now_ms(conn) + LINGER_MS;
    conn->transport->kind->end(conn->transport);
}

void conn_watch(struct conn *conn) {
    if (conn->state == CONN_CUT) return;
    bool wanted =
        conn->state != CONN_OPEN || !conn->protocol || conn->protocol->wants_bytes(conn);
    bool reading = wanted && !conn->peer_ended;
    bool writing = conn_unsent_bytes(conn) > 0 || conn->yields;
    conn->transport->kind->watch(conn->transport, reading, writing);
}

/* --- bytes in ----------------------------------------------------------------------------- */

static void use(struct conn *conn, const struct protocol *protocol, struct str seen) {
    conn->protocol = protocol;
    protocol->start(conn);
    if (seen.len && conn->state != CONN_CUT) protocol->receive(conn, seen);
}

/* No HTTP/1 request can begin with the HTTP/2 preface. Matching bytes need not be stored,
 * because they equal the preface. */
static struct str take_preface(struct conn *conn, struct str bytes) {
    size_t same = 0;
    while (same < bytes.len && conn->preface_seen < preface.len &&
           bytes.at[same] == preface.at[conn->preface_seen]) {
        same++;
        conn->preface_seen++;
    }
    struct str rest = str_skip(bytes, same);
    if (conn->preface_seen == preface.len)
        use(conn, &protocol_http2, preface);
    else if (rest.len)
        use(conn, &protocol_http1, str_head(preface, conn->preface_seen));
    return rest;
}

void conn_receive(struct conn *conn, struct str bytes) {
    conn->read_ms = conn_now_ms(conn);
    if (conn->state == CONN_FINISHING || conn->state == CONN_LINGERING) {
        conn->lingered_bytes += bytes.len;
        if (conn->lingered_bytes > LINGER_MAX_BYTES) conn_cut(conn, EXCHANGE_ABORTED);
        return;
    }
    if (!conn->protocol) bytes = take_preface(conn, bytes);
    if (bytes.len && conn->state == CONN_OPEN) conn->protocol->receive(conn, bytes);
    conn_watch(conn);
    conn_rearm(conn);
}

void conn_peer_ended(struct conn *conn) {
    /* HTTP clients do not half-close: a peer that ends its side gives up, and a running
     * exchange is cancelled. A complete answer is still sent. */
    bool answered = conn->exchange_count == 0 && conn_unsent_bytes(conn) > 0;
    conn->peer_ended = true;
    if (conn->state == CONN_OPEN && answered) conn_finish(conn);
    if (conn->state == CONN_FINISHING)
        conn_watch(conn);
    else
        conn_cut(conn, EXCHANGE_PEER_LEFT);
}

void conn_peer_left_unread(struct conn *conn) {
    /* A request still being read is completed, even if its owner reads slowly. */
    bool wanted = conn->exchange_count > 0 &&
                  !CONTAINER_OF(conn->exchanges.next, struct exchange, link)->request_ended;
    if (wanted)
        conn_watch(conn);
    else
        conn_cut(conn, EXCHANGE_PEER_LEFT);
}

void conn_broken(struct conn *conn) {
    conn_cut(conn, EXCHANGE_PEER_LEFT);
}

/* --- bytes out ---------------------------------------------------------------------------- */

void conn_flush_soon(struct conn *conn) {
    if (conn->state != CONN_CUT) loop_defer(conn->home->loop, &conn->flush);
}

void conn_writable(struct conn *conn) {
    conn->yields = false;
    conn_flush_soon(conn);
}

/* Send; returns the number of bytes sent. A broken transport cuts the connection. */
static size_t send_some(struct conn *conn, struct str bytes) {
    size_t held = conn->transport->held;
    ptrdiff_t sent = conn->transport->kind->send(conn->transport, bytes);
    if (sent < 0) {
        conn_cut(conn, EXCHANGE_PEER_LEFT);
        return 0;
    }
    size_t passed_on = held > conn->transport->held ? held - conn->transport->held : 0;
    if (sent > 0 || passed_on) conn->progress_ms = conn_now_ms(conn);
    pace_left(&conn->pace, sent > 0 ? (size_t)sent : passed_on);
    return (size_t)sent;
}

static bool send_unsent(struct conn *conn) {
    if (conn_unsent_bytes(conn) == 0) return true;
    buf_drop(&conn->unsent, send_some(conn, buf_str(&conn->unsent)));
    if (conn->state == CONN_CUT || conn_unsent_bytes(conn) > 0) return false;
    buf_release(&conn->unsent);
    return true;
}

/* One gathered write. False: there was nothing to send, or not all of it was accepted. */
static bool send_gathered(struct conn *conn, size_t *ret_sent) {
    struct gather gather = {.at = home_gather_bytes(conn->home)};
    conn->protocol->gather(conn, &gather);
    *ret_sent = 0;
    if (conn->state == CONN_CUT || gather.len == 0) return false;
    struct str bytes = str_of(gather.at, gather.len);
    *ret_sent = send_some(conn, bytes);
    if (conn->state == CONN_CUT) return false;
    buf_append(&conn->unsent, str_skip(bytes, *ret_sent));
    size_t waiting = conn_unsent_bytes(conn); /* nothing waited before */
    if (waiting) pace_begin(&conn->pace, conn_now_ms(conn), waiting);
    return waiting == 0;
}

void conn_await_room(struct conn *conn, struct exchange *exchange) {
    if (!list_linked(&exchange->waits)) list_append(&conn->waiting, &exchange->waits);
}

static void wake_waiting(struct conn *conn) {
    size_t left = conn->queued_bytes + conn_unsent_bytes(conn);
    if (conn->blocked && left > conn->limits->connection_max_bytes / 2) return;
    struct list *link;
    while ((link = list_pop(&conn->waiting)))
        exchange_mark(CONTAINER_OF(link, struct exchange, waits));
}

/* While all of it leaves, nothing of the connection changes, and no deadline moves. */
bool conn_send_now(struct conn *conn, struct str bytes) {
    assert(conn->state == CONN_OPEN && conn_unsent_bytes(conn) == 0);
    ptrdiff_t sent = conn->transport->kind->send(conn->transport, bytes);
    if (sent < 0) return false;
    if ((size_t)sent < bytes.len) buf_append(&conn->unsent, str_skip(bytes, (size_t)sent));
    size_t waiting = conn_unsent_bytes(conn);
    if (waiting == 0) return true;
    conn->progress_ms = conn_now_ms(conn);
    pace_begin(&conn->pace, conn_now_ms(conn), waiting);
    conn_flush_soon(conn);
    return true;
}

static void pump(struct conn *conn) {
    if (conn->yields || !send_unsent(conn)) return;
    size_t left = 0;
    for (size_t sent; conn->protocol && left < TURN_BYTES; left += sent)
        if (!send_gathered(conn, &sent)) break;
    if (conn->state == CONN_CUT) return;
    conn->yields = left >= TURN_BYTES;
    bool all_left = !conn->yields && conn_unsent_bytes(conn) == 0;
    if (all_left && conn->state == CONN_FINISHING) linger(conn);
}

static void flush(void *ctx) {
    struct conn *conn = ctx;
    assert(conn->magic == CONN_MAGIC);
    if (conn->state == CONN_CUT) return;
    if (conn->protocol) conn->protocol->settle(conn);
    if (conn->state != CONN_CUT) pump(conn);
    if (conn->state == CONN_CUT) return;
    conn->blocked = conn->window_shut || conn_unsent_bytes(conn) > 0;
    wake_waiting(conn);
    conn_watch(conn);
    conn_rearm(conn);
}

/* --- time --------------------------------------------------------------------------------- */

static uint64_t earlier(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* When to cut an exchange that has made no progress since `since_ms`. */
static uint64_t stall_ms(const struct conn *conn, uint64_t since_ms) {
    return since_ms + conn->limits->write_stall_ms + STALL_GRACE_MS;
}

/* Bytes that must leave in a stretch of write_stall_ms, with `sharers` exchanges on the
 * connection. */
static size_t wanted_bytes(const struct conn *conn, size_t sharers) {
    const struct server_limits *limits = conn->limits;
    return (size_t)(limits->answer_bytes_per_s * limits->write_stall_ms / 1000) /
           (sharers ? sharers : 1);
}

/* Whether the peer reads fast enough; if so, the next stretch begins. While the connection
 * itself has unsent bytes, its own pace is measured instead. */
static bool keeps_pace(struct conn *conn, struct exchange *exchange) {
    struct pace *pace = &exchange->pace;
    if (stall_ms(conn, pace->since_ms) > conn_now_ms(conn)) return true;
    bool fine = conn_unsent_bytes(conn) > 0 ||
                pace_is_enough(pace, wanted_bytes(conn, conn->exchange_count));
    if (fine) pace_begin(pace, conn_now_ms(conn), exchange_queued(exchange));
    return fine;
}

/* Scanning all exchanges takes time, so it runs at deadlines and not at each write. */
static void scan_for_stalled(struct conn *conn) {
    conn->scan_ms = CONN_NEVER;
    LIST_EACH(&conn->exchanges, link) {
        struct exchange *exchange = CONTAINER_OF(link, struct exchange, link);
        if (exchange_queued(exchange) == 0 || exchange->aborted) continue;
        bool stalled = stall_ms(conn, exchange_progress_ms(exchange)) <= conn_now_ms(conn);
        if (stalled || !keeps_pace(conn, exchange)) {
            exchange_abort(exchange, ABORT_ENHANCE_CALM);
            continue;
        }
        uint64_t since_ms = earlier(exchange_progress_ms(exchange), exchange->pace.since_ms);
        conn->scan_ms = earlier(conn->scan_ms, stall_ms(conn, since_ms));
    }
}

static uint64_t idle_due_ms(const struct conn *conn) {
    bool idle = conn->exchange_count == 0 && conn_unsent_bytes(conn) == 0;
    return idle ? conn->idle_ms + conn->limits->idle_timeout_ms : CONN_NEVER;
}

static uint64_t stalled_due_ms(const struct conn *conn) {
    uint64_t since_ms = earlier(conn->progress_ms, conn->pace.since_ms);
    return conn_unsent_bytes(conn) ? since_ms + conn->limits->write_stall_ms : CONN_NEVER;
}

/* Call when due. A peer that read enough begins its next stretch. */
static bool is_stalled(struct conn *conn) {
    uint64_t now = conn_now_ms(conn), stall = conn->limits->write_stall_ms;
    if (conn->progress_ms + stall <= now) return true;
    if (!pace_is_enough(&conn->pace, wanted_bytes(conn, 1))) return true;
    pace_begin(&conn->pace, now, conn_unsent_bytes(conn));
    return false;
}

/* A new connection is judged after this time; clients that mean to send have done so by
 * then. */
#define STRANGER_YOUNG_MS 500

static uint64_t stranger_due_ms(const struct conn *conn) {
    return conn->stranger.len ? conn->stranger_ms + STRANGER_YOUNG_MS : CONN_NEVER;
}

static bool must_go(struct conn *conn) {
    struct home *home = conn->home;
    conn->stranger_ms = conn_now_ms(conn);
    if (!home->sends_away || !home->sends_away(home, conn->listener, &conn->stranger))
        return false;
    conn->stranger.len = 0; /* it is no longer counted */
    return true;
}

static uint64_t protocol_due_ms(const struct conn *conn) {
    if (conn->protocol) return conn->protocol->due_ms(conn);
    return conn->opened_ms + conn->limits->header_timeout_ms;
}

static uint64_t next_due_ms(struct conn *conn) {
    if (conn->queued_bytes && conn->scan_ms == CONN_NEVER)
        conn->scan_ms = stall_ms(conn, conn_now_ms(conn));
    if (conn->queued_bytes == 0) conn->scan_ms = CONN_NEVER;

    uint64_t due_ms = stalled_due_ms(conn);
    if (conn->state == CONN_LINGERING) return conn->linger_ms;
    if (conn->state == CONN_FINISHING) return due_ms;
    due_ms = earlier(due_ms, conn->scan_ms);
    due_ms = earlier(due_ms, idle_due_ms(conn));
    due_ms = earlier(due_ms, stranger_due_ms(conn));
    return earlier(due_ms, protocol_due_ms(conn));
}

/* Deadlines mostly move later. The timer then fires too early and is started again, which is
 * cheaper than moving it with every byte. */
void conn_rearm(struct conn *conn) {
    if (conn->state == CONN_CUT) return;
    uint64_t due_ms = next_due_ms(conn);
    if (due_ms == CONN_NEVER) return;
    if (timer_waits(&conn->timer) && conn->timer.due_ms <= due_ms) return;
    timer_start(&conn->timer, due_ms > conn_now_ms(conn) ? due_ms - conn_now_ms(conn) : 0);
}

static void tick(void *ctx) {
    struct conn *conn = ctx;
    assert(conn->magic == CONN_MAGIC);
    uint64_t now = conn_now_ms(conn);
    if (conn->state == CONN_LINGERING) {
        if (conn->linger_ms <= now) conn_cut(conn, EXCHANGE_ABORTED);
    } else if (stalled_due_ms(conn) <= now && is_stalled(conn)) {
        conn_cut(conn, EXCHANGE_ABORTED);
    } else if (conn->state == CONN_OPEN) {
        if (stranger_due_ms(conn) <= now && must_go(conn)) {
            conn_cut(conn, EXCHANGE_ABORTED);
            return;
        }
        if (conn->scan_ms <= now) scan_for_stalled(conn);
        if (protocol_due_ms(conn) <= now) {
            if (conn->protocol)
                conn->protocol->overdue(conn);
            else
                conn_cut(conn, EXCHANGE_ABORTED);
        } else if (idle_due_ms(conn) <= now) {
            conn_shut_down(conn);
            conn->idle_ms = now; /* try again only after another idle timeout */
        }
    }
    conn_rearm(conn);
}
