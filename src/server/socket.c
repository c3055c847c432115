#include "server/socket.h"

#include "base/mem.h"
#include "server/tls.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

struct socket {
    struct transport transport;
    uv_poll_t poll;
    int fd;
    int events;              /* events the loop watches for */
    bool peer_ended;         /* no more bytes will come; not watched for again */
    struct records *records; /* NULL: no TLS */
    struct buf held;         /* encrypted bytes that the peer has not accepted yet */
};

static void socket_on_ready(uv_poll_t *poll, int status, int events);

static ptrdiff_t send_now(struct socket *socket, struct str bytes) {
    ssize_t sent;
    do {
        sent = send(socket->fd, bytes.at, bytes.len, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0) return sent;
    return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
}

static ptrdiff_t socket_send(struct transport *transport, struct str bytes) {
    struct socket *socket = CONTAINER_OF(transport, struct socket, transport);
    return send_now(socket, bytes);
}

/* Without reading, only the end of the peer's side can be noticed. It stays ready once it is,
 * so it is watched only until the first time. */
static void socket_watch(struct transport *transport, bool reading, bool writing) {
    struct socket *socket = CONTAINER_OF(transport, struct socket, transport);
    int events = writing ? UV_WRITABLE : 0;
    if (reading)
        events |= UV_READABLE;
    else if (!socket->peer_ended)
        events |= UV_DISCONNECT;
    if (events == socket->events) return;
    socket->events = events;
    if (events)
        uv_poll_start(&socket->poll, events, socket_on_ready);
    else
        uv_poll_stop(&socket->poll);
}

static void socket_end(struct transport *transport) {
    struct socket *socket = CONTAINER_OF(transport, struct socket, transport);
    shutdown(socket->fd, SHUT_WR);
}

static void socket_on_closed(uv_handle_t *handle) {
    struct socket *socket = handle->data;
    conn_closed(socket->transport.conn);
    records_free(socket->records);
    buf_done(&socket->held);
    free(socket);
}

/* Take the descriptor out of the loop before closing it: another loop may get the same
 * number. */
static void socket_close(struct transport *transport) {
    struct socket *socket = CONTAINER_OF(transport, struct socket, transport);
    uv_close((uv_handle_t *)&socket->poll, socket_on_closed);
    close(socket->fd);
    socket->fd = -1;
}

static const struct transport_kind plain = {
    .send = socket_send,
    .watch = socket_watch,
    .end = socket_end,
    .close = socket_close,
};

/* --- TLS ---------------------------------------------------------------------------------- */

/* Records must leave in order, so once some are held, later ones queue after them, and no more
 * are made until all have left. */
static bool send_records(struct socket *socket, struct str records) {
    ptrdiff_t sent = 0;
    if (socket->held.len) {
        sent = send_now(socket, buf_str(&socket->held));
        if (sent < 0) return false;
        buf_drop(&socket->held, (size_t)sent);
        sent = 0;
    }
    if (socket->held.len == 0 && records.len) sent = send_now(socket, records);
    if (sent < 0 || !buf_append(&socket->held, str_skip(records, (size_t)sent))) return false;
    if (socket->held.len == 0) buf_release(&socket->held);
    socket->transport.held = socket->held.len;
    return true;
}

static ptrdiff_t secure_send(struct transport *transport, struct str bytes) {
    struct socket *socket = CONTAINER_OF(transport, struct socket, transport);
    struct buf *out = &transport->conn->home->tls_out;
    if (!send_records(socket, STR_EMPTY)) return -1;
    if (bytes.len == 0 || socket->held.len) return 0;
    buf_clear(out);
    bool good = records_seal(socket->records, bytes, out) && send_records(socket, buf_str(out));
    return good ? (ptrdiff_t)bytes.len : -1;
}

static void secure_end(struct transport *transport) {
    struct socket *socket = CONTAINER_OF(transport, struct socket, transport);
    struct buf *out = &transport->conn->home->tls_out;
    buf_clear(out);
    records_end(socket->records, out);
    if (send_records(socket, buf_str(out))) socket_end(transport);
}

static const struct transport_kind secure = {
    .send = secure_send,
    .watch = socket_watch,
    .end = secure_end,
    .close = socket_close,
};

/* Handshake bytes are sent at once; no flush would follow. */
static void receive_records(struct socket *socket, struct str sealed) {
    struct conn *conn = socket->transport.conn;
    struct buf *plain_bytes = &conn->home->tls_plain, *out = &conn->home->tls_out;
    buf_clear(plain_bytes);
    buf_clear(out);
    enum records_verdict verdict = records_receive(socket->records, sealed, plain_bytes, out);
    bool sent = send_records(socket, buf_str(out));
    if (verdict == RECORDS_BROKEN || !sent) {
        conn_broken(conn);
        return;
    }
    if (plain_bytes->len)
        conn_receive(conn, buf_str(plain_bytes));
    else
        conn_watch(conn); /* records may be held now */
    if (verdict == RECORDS_ENDED && conn->state != CONN_CUT) {
        socket->peer_ended = true;
        conn_peer_ended(conn);
    }
}

/* --- reading ------------------------------------------------------------------------------ */

/* One read per wake-up, so that one busy peer does not delay the others. */
static void socket_read_some(struct socket *socket) {
    struct conn *conn = socket->transport.conn;
    char *bytes = home_read_bytes(conn->home);
    ssize_t len = recv(socket->fd, bytes, HOME_READ_BYTES, 0);
    if (len == 0) socket->peer_ended = true;
    if (len > 0 && socket->records)
        receive_records(socket, str_of(bytes, (size_t)len));
    else if (len > 0)
        conn_receive(conn, str_of(bytes, (size_t)len));
    else if (len == 0)
        conn_peer_ended(conn);
    else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        conn_broken(conn);
}

static void socket_on_ready(uv_poll_t *poll, int status, int events) {
    struct socket *socket = poll->data;
    struct conn *conn = socket->transport.conn;
    if (status < 0) {
        conn_broken(conn);
        return;
    }
    if (events & UV_WRITABLE) conn_writable(conn);
    if (events & UV_READABLE) {
        socket_read_some(socket);
    } else if (events & UV_DISCONNECT) {
        socket->peer_ended = true;
        socket->events = -1;
        conn_peer_left_unread(conn);
    }
}

/* The kernel doubles this for its own overhead: 128 KiB in total. */
#define SEND_BUFFER_BYTES ((int)(64 * KIB))
/* Bytes that the peer's window does not admit wait in our queue, which stops the source. */
#define NOT_SENT_MAX_BYTES ((int)(16 * KIB))

/* TCP_NODELAY: an answer must not wait for the acknowledgement of the previous one.
 * TCP_USER_TIMEOUT: a peer that vanished holds a connection no longer than one that does not
 * read. The buffer limits: for a slow reader, waiting bytes must be in our queues and not in
 * the kernel. */
static void socket_set_options(int fd, const struct server_limits *limits) {
    int on = 1, buffer = SEND_BUFFER_BYTES, not_sent = NOT_SENT_MAX_BYTES;
    unsigned patience_ms = (unsigned)limits->write_stall_ms;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, sizeof(patience_ms));
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &not_sent, sizeof(not_sent));
}

struct conn *socket_serve(int fd, struct tls *tls, const struct conn_options *options) {
    struct socket *socket = MEM_NEW(struct socket);
    struct conn_options whole = *options;
    socket->transport.kind = tls ? &secure : &plain;
    if (tls) socket->records = tls_accept(tls);
    buf_init(&socket->held, HOME_GATHER_ROOM + HOME_TLS_ROOM);
    socket->fd = fd;
    socket->poll.data = socket;
    int failed = uv_poll_init(loop_uv(options->home->loop), &socket->poll, fd);
    assert(failed == 0); /* a fresh, nonblocking descriptor */
    (void)failed;
    const struct server_limits *limits = options->listener->limits;
    socket_set_options(fd, limits ? limits : &server_limits_default);
    whole.transport = &socket->transport;
    return conn_new(&whole);
}
