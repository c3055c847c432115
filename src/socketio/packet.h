/* packet: the packets of Socket.IO 5, as text, and those of Engine.IO 4 that carry them.
 *
 *     Engine.IO    <kind>[data]                4 + a Socket.IO packet, 2 ping, 3 pong ...
 *     Socket.IO    <kind>[/namespace,][ack id][JSON]
 *
 *     42/v1,7["message.send",{"text":"hi"}]
 *     ││└─┬┘│└──────────────┬────────────┘
 *     ││  │ ack id        JSON
 *     ││  namespace, "/" when there is none
 *     │event
 *     message
 *
 * A packet with binary attachments has `<count>-` before the namespace and is refused.
 *
 * Memory   a packet borrows the text it was read from.
 * Threads  any; values only.
 * Source   socket.io/docs/v4/engine-io-protocol and socket-io-protocol.
 */
#ifndef WEIR_SOCKETIO_PACKET_H
#define WEIR_SOCKETIO_PACKET_H

#include "wire/json.h"

/* The first byte of an Engine.IO packet. */
#define ENGINEIO_OPEN '0'
#define ENGINEIO_CLOSE '1'
#define ENGINEIO_PING '2'
#define ENGINEIO_PONG '3'
#define ENGINEIO_MESSAGE '4'
#define ENGINEIO_UPGRADE '5'
#define ENGINEIO_NOOP '6'
#define ENGINEIO_BINARY 'b' /* base64, in polling */

/* Between the packets of one polling body. */
#define ENGINEIO_SEPARATOR '\x1e'

enum packet_kind {
    PACKET_CONNECT,       /* data: an object, or none */
    PACKET_DISCONNECT,    /* no data */
    PACKET_EVENT,         /* data: an array that begins with the event's name */
    PACKET_ACK,           /* data: an array; always with an ack id */
    PACKET_CONNECT_ERROR, /* data: an object or a string */
};

#define PACKET_NAMESPACE_MAX_BYTES 256

struct packet {
    enum packet_kind kind;
    struct str name_space; /* "/v1": without a query */
    int64_t ack;           /* -1: none */
    struct json data;
};

/* Read the text of one Socket.IO packet, without the '4' of Engine.IO.
 * errors  ERR_MALFORMED; ERR_UNIMPLEMENTED a binary packet */
MUST_CHECK bool packet_read(struct str text, struct packet *ret, struct err *e);

/* --- writing. Each appends one Engine.IO message with the packet in it. ----------------------
 *
 * Appends without looking; ask buf_ok() of the buffer once at the end. */

void packet_put_connect(struct buf *out, struct str name_space, struct str sid);
/* `data` is JSON, or empty for none. */
void packet_put_error(struct buf *out, struct str name_space, struct str message,
                      struct str data);
void packet_put_disconnect(struct buf *out, struct str name_space);
/* `json` is one value, or empty for none. */
void packet_put_event(struct buf *out, struct str name_space, struct str event,
                      struct str json);
void packet_put_ack(struct buf *out, struct str name_space, int64_t ack, struct str json);

#endif
