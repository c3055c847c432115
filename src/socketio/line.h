/* line: one connection that carries a session: a WebSocket, a GET that waits, or a POST.
 *
 *     connection ─▶ line ─▶ peer_attach, peer_hear, peer_lose
 *     connection ◀─ line ◀─ line_answer, line_send, line_close
 *
 * The functions of each side may be called on the other side's loop only through this header:
 * on the same loop they run at once, between loops they travel by mail, in order.
 *
 * Private to socketio/.
 *
 * Memory   counted references: one of the connection while it lives, one of the peer while it
 *          holds the line, one of each mail.
 * Threads  the connection side belongs to the loop that accepted it.
 */
#ifndef WEIR_SOCKETIO_LINE_H
#define WEIR_SOCKETIO_LINE_H

#include "route/route_socket.h"
#include "socketio/parcel.h"

struct line;
struct peer;

enum line_kind { LINE_SOCKET, LINE_GET, LINE_POST };

enum line_kind line_kind(const struct line *line);

/* --- for the route: on the connection's loop ----------------------------------------------- */

/* A request of long polling for `peer` (takes the caller's reference). The call is answered
 * later; the body of a POST is passed on. */
void line_poll(struct peer *peer, struct route_call *call, enum line_kind kind);

/* A WebSocket for `peer` (takes the caller's reference). NULL: it was refused, and the call has
 * been answered. One that is to take over from long polling is passed on with line_attach(). */
struct line *line_accept(struct peer *peer, struct route_call *call,
                         const struct route_socket_options *options);
void line_attach(struct line *line);

/* --- for the peer: on the peer's loop ------------------------------------------------------ */

struct line *line_ref(struct line *line);
void line_unref(struct line *line);

/* Answer a GET or a POST, once. `text` is borrowed. */
void line_answer(struct line *line, int status, struct str text);

void line_send(struct line *line, struct parcel *parcel);
/* Bytes that wait for the client; 0 when the connection is on another loop. */
size_t line_queued(const struct line *line);
void line_close(struct line *line, unsigned code, struct str reason);

/* --- for lines, defined by the peer; on the peer's loop ------------------------------------ */

/* A line has come. `body` is that of a POST (borrowed). The peer refs a line that it holds. */
void peer_attach(struct peer *peer, struct line *line, struct str body);
/* A message of a WebSocket; `text` is borrowed. */
void peer_hear(struct peer *peer, struct line *line, struct str text);
/* The connection is gone. `lagged`: its queue was full. */
void peer_lose(struct peer *peer, struct line *line, bool lagged);

#endif
