/* websocket: cut a byte stream into WebSocket messages, and write them, for both roles.
 *
 *     server   reads masked frames, writes unmasked ones
 *     client   reads unmasked frames, writes masked ones
 *
 * Feed it bytes as they arrive, in pieces of any size; whole messages come out of on_message in
 * order. Fragments are joined, control frames may come between them. There is no socket and no
 * clock in here. It answers nothing by itself: the owner answers a ping with websocket_append()
 * of a pong with the same data, and a close with a close of the same code.
 *
 *      0               1               2               3
 *     +-+-+-+-+-------+-+-------------+-------------------------------+
 *     |F|R|R|R| opcode|M| length (7)  | length (16 or 64, if 126, 127)|
 *     +-+-+-+-+-------+-+-------------+-------------------------------+
 *     | masking key (32, if M) | payload ...
 *
 * No extension is negotiated, so the reserved bits must be zero.
 *
 * Memory   owns the message being received, at most max_bytes. Between two frames it holds no
 *          buffers.
 * Lends    each message to on_message; copy what must outlive the callback.
 * Threads  websocket_load() any; one reader belongs to one loop. The rest any.
 * Source   RFC 6455, sections 4 (opening), 5 (frames), 6 and 7 (messages and closing), 8.1
 *          (UTF-8). Frames are read and written by libwslay.
 */
#ifndef WEIR_WIRE_WEBSOCKET_H
#define WEIR_WIRE_WEBSOCKET_H

#include "base/buf.h"
#include "base/err.h"

/* Load libwslay. Must have succeeded once before anything below is called, except for the
 * functions of the handshake. Blocks, as it reads a file.
 * errors  ERR_UNAVAILABLE it is not installed */
MUST_CHECK bool websocket_load(struct err *e);

enum websocket_role { WEBSOCKET_SERVER, WEBSOCKET_CLIENT };

enum websocket_kind {
    WEBSOCKET_TEXT, /* data is valid UTF-8 */
    WEBSOCKET_BINARY,
    WEBSOCKET_PING,
    WEBSOCKET_PONG,
    WEBSOCKET_CLOSE, /* the last message; data is the reason, valid UTF-8 */
};

/* RFC 6455 7.4.1 */
enum websocket_code {
    WEBSOCKET_NORMAL = 1000,
    WEBSOCKET_GOING_AWAY = 1001,
    WEBSOCKET_PROTOCOL_ERROR = 1002,
    WEBSOCKET_UNSUPPORTED = 1003,
    WEBSOCKET_NO_CODE = 1005, /* never sent: a close without a code */
    WEBSOCKET_BAD_TEXT = 1007,
    WEBSOCKET_POLICY = 1008,
    WEBSOCKET_TOO_LARGE = 1009,
    WEBSOCKET_INTERNAL = 1011,
};

struct websocket_message {
    enum websocket_kind kind;
    struct str data;
    unsigned code; /* of a close: 1000 to 4999, or WEBSOCKET_NO_CODE */
};

/* Runs before websocket_feed() returns. It may call websocket_stop(), but not websocket_feed()
 * or websocket_free(). */
typedef void websocket_message_fn(const struct websocket_message *message, void *ctx);

struct websocket;

/* `max_bytes` bounds a message, joined. The caller owns the result and ends it with
 * websocket_free(), which accepts NULL. */
struct websocket *websocket_new(enum websocket_role role, size_t max_bytes,
                                websocket_message_fn *on_message, void *ctx);
void websocket_free(struct websocket *websocket);

/* Parse `bytes` (borrowed). Bytes after a close are dropped.
 * errors  ERR_MALFORMED, ERR_TOO_LARGE; the reader is spent. Send a close with
 *         websocket_fault() and end the connection. */
MUST_CHECK bool websocket_feed(struct websocket *websocket, struct str bytes, struct err *e);

/* The code to close with after websocket_feed() failed. */
enum websocket_code websocket_fault(const struct websocket *websocket);

/* Report no further messages; later input is dropped. */
void websocket_stop(struct websocket *websocket);

/* Whether a frame or a message has begun and has not ended: the stream was cut off there. */
bool websocket_midway(const struct websocket *websocket);

/* --- writing ------------------------------------------------------------------------------- */

#define WEBSOCKET_CONTROL_BYTES 125 /* most data of a ping or a pong */
#define WEBSOCKET_REASON_BYTES 123  /* most of a close's reason */

/* Append one message as one frame; not a close. The frame of a server is the same for every
 * reader, so it may be encoded once for many. Data of a ping or pong has at most
 * WEBSOCKET_CONTROL_BYTES. False, and nothing appended, at the limit of the buffer. */
bool websocket_append(struct buf *out, enum websocket_role role, enum websocket_kind kind,
                      struct str data);

/* Append a close. A longer reason is cut to WEBSOCKET_REASON_BYTES between characters.
 * WEBSOCKET_NO_CODE: a close without code and reason. */
bool websocket_append_close(struct buf *out, enum websocket_role role, unsigned code,
                            struct str reason);

/* --- the opening handshake ------------------------------------------------------------------ */

#define WEBSOCKET_KEY_BYTES 24
#define WEBSOCKET_ACCEPT_BYTES 28

/* A new random Sec-WebSocket-Key, without a NUL. */
void websocket_key(char ret[WEBSOCKET_KEY_BYTES]);

/* Whether a Sec-WebSocket-Key is 16 bytes in base64. */
bool websocket_key_ok(struct str key);

/* The Sec-WebSocket-Accept that answers `key`, without a NUL. */
void websocket_accept(struct str key, char ret[WEBSOCKET_ACCEPT_BYTES]);

#endif
