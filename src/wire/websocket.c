#include "wire/websocket.h"

#include "base/mem.h"
#include "base/shared_library.h"
#include "base/utf8.h"
#include "wire/base64.h"

#include <assert.h>
#include <nettle/sha1.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/types.h>
#include <wslay/wslay.h>

#define OPCODE_NONE WSLAY_CONTINUATION_FRAME
#define FRAME_HEAD_MAX_BYTES 14

/* --- libwslay ------------------------------------------------------------------------------ */

/* Debian ships it as a shared object only, and a daemon that serves no WebSocket starts without
 * it. */
/* clang-format off */
#define FUNCTIONS(USE)                                                                         \
    USE(wslay_frame_context_init) USE(wslay_frame_context_free) USE(wslay_frame_send)          \
    USE(wslay_frame_recv)
/* clang-format on */

#define MEMBER(name) __typeof__(name) *name;
static struct wslay { FUNCTIONS(MEMBER) } wslay;

#define SYMBOL(name) SHARED_SYMBOL(struct wslay, name),
static const struct shared_symbol symbols[] = {FUNCTIONS(SYMBOL)};

static struct shared_library library = {
    .file = "libwslay.so.1",
    .title = "libwslay",
    .needs = "WebSocket needs libwslay",
    .package = "libwslay1",
    .version = "weir needs 1.1 or later",
    .code = ERR_UNAVAILABLE,
    .symbols = symbols,
    .symbols_count = ARRAY_LEN(symbols),
    .table = &wslay,
};

bool websocket_load(struct err *e) {
    return shared_library_load(&library, e);
}

struct websocket {
    enum websocket_role role;
    websocket_message_fn *on_message;
    void *ctx;
    wslay_frame_context_ptr frames; /* NULL between frames */
    struct str input;               /* not yet taken by libwslay */
    size_t held_bytes;              /* libwslay took them and has not used them */
    uint8_t opcode;                 /* of the message being joined, or OPCODE_NONE */
    uint64_t frame_bytes;           /* of the frame's payload so far */
    bool in_frame;
    bool over; /* stopped, closed or failed */
    enum websocket_code fault;
    struct buf message; /* the fragments so far */
    struct buf control; /* the control frame so far */
};

/* --- reading: bytes to frames -------------------------------------------------------------- */

static ssize_t give_input(uint8_t *room, size_t len, int flags, void *ctx) {
    struct websocket *websocket = ctx;
    struct str part = str_head(websocket->input, len);
    (void)flags;
    if (part.len == 0) return 0;
    memcpy(room, part.at, part.len);
    websocket->input = str_skip(websocket->input, part.len);
    websocket->held_bytes += part.len;
    return (ssize_t)part.len;
}

static void begin_frames(struct websocket *websocket) {
    static const struct wslay_frame_callbacks reading = {.recv_callback = give_input};
    if (websocket->frames) return;
    if (wslay.wslay_frame_context_init(&websocket->frames, &reading, websocket) != 0) abort();
}

static void end_frames(struct websocket *websocket) {
    if (websocket->frames) wslay.wslay_frame_context_free(websocket->frames);
    websocket->frames = NULL;
}

struct websocket *websocket_new(enum websocket_role role, size_t max_bytes,
                                websocket_message_fn *on_message, void *ctx) {
    assert(wslay.wslay_frame_recv); /* websocket_load() has succeeded */
    struct websocket *websocket = MEM_NEW(struct websocket);
    websocket->role = role;
    websocket->on_message = on_message;
    websocket->ctx = ctx;
    websocket->fault = WEBSOCKET_PROTOCOL_ERROR;
    buf_init(&websocket->message, max_bytes);
    buf_init(&websocket->control, WEBSOCKET_CONTROL_BYTES);
    return websocket;
}

void websocket_free(struct websocket *websocket) {
    if (!websocket) return;
    end_frames(websocket);
    buf_done(&websocket->message);
    buf_done(&websocket->control);
    free(websocket);
}

enum websocket_code websocket_fault(const struct websocket *websocket) {
    return websocket->fault;
}

void websocket_stop(struct websocket *websocket) {
    websocket->over = true;
}

bool websocket_midway(const struct websocket *websocket) {
    return websocket->in_frame || websocket->held_bytes > 0 || websocket->opcode != OPCODE_NONE;
}

static bool websocket_fail(struct websocket *websocket, enum websocket_code fault,
                           const char *why, struct err *e) {
    websocket->fault = fault;
    websocket->over = true;
    enum err_code code = fault == WEBSOCKET_TOO_LARGE ? ERR_TOO_LARGE : ERR_MALFORMED;
    return err_set(e, code, "%s", why);
}

/* --- reading: frames to messages ----------------------------------------------------------- */

static void websocket_report(struct websocket *websocket, enum websocket_kind kind,
                             struct str data, unsigned code) {
    const struct websocket_message message = {kind, data, code};
    websocket->on_message(&message, websocket->ctx);
}

/* RFC 6455 7.4: what a peer may send. */
static bool is_code(unsigned code) {
    if (code >= 3000 && code <= 4999) return true;
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014);
}

static bool take_close(struct websocket *websocket, struct str data, struct err *e) {
    unsigned code = WEBSOCKET_NO_CODE;
    if (data.len == 1)
        return websocket_fail(websocket, WEBSOCKET_PROTOCOL_ERROR, "a close with half a code",
                              e);
    if (data.len >= 2) code = (unsigned)(uint8_t)data.at[0] << 8 | (uint8_t)data.at[1];
    if (data.len >= 2 && !is_code(code))
        return websocket_fail(websocket, WEBSOCKET_PROTOCOL_ERROR,
                              "a close with a code nobody may send", e);
    struct str reason = str_skip(data, 2);
    if (!utf8_valid(reason))
        return websocket_fail(websocket, WEBSOCKET_BAD_TEXT,
                              "the reason of a close is not UTF-8", e);
    websocket->over = true;
    websocket_report(websocket, WEBSOCKET_CLOSE, reason, code);
    return true;
}

static bool take_control(struct websocket *websocket, uint8_t opcode, struct str data,
                         struct err *e) {
    if (opcode == WSLAY_CONNECTION_CLOSE) return take_close(websocket, data, e);
    websocket_report(websocket, opcode == WSLAY_PING ? WEBSOCKET_PING : WEBSOCKET_PONG, data,
                     0);
    return true;
}

static bool websocket_take_message(struct websocket *websocket, struct str data,
                                   struct err *e) {
    bool is_text = websocket->opcode == WSLAY_TEXT_FRAME;
    websocket->opcode = OPCODE_NONE;
    if (is_text && !utf8_valid(data))
        return websocket_fail(websocket, WEBSOCKET_BAD_TEXT, "a text message is not UTF-8", e);
    websocket_report(websocket, is_text ? WEBSOCKET_TEXT : WEBSOCKET_BINARY, data, 0);
    return true;
}

static bool is_data(uint8_t opcode) {
    return opcode == WSLAY_TEXT_FRAME || opcode == WSLAY_BINARY_FRAME;
}

static bool is_control(uint8_t opcode) {
    return opcode >= WSLAY_CONNECTION_CLOSE && opcode <= WSLAY_PONG;
}

static const char *judge_head(const struct websocket *websocket,
                              const struct wslay_frame_iocb *frame) {
    bool continues = frame->opcode == WSLAY_CONTINUATION_FRAME;
    if (frame->rsv) return "a reserved bit is set, and no extension was agreed on";
    if (frame->mask != (websocket->role == WEBSOCKET_SERVER))
        return frame->mask ? "a frame of the server is masked"
                           : "a frame of the client is not masked";
    if (!continues && !is_data(frame->opcode) && !is_control(frame->opcode))
        return "a frame has an unknown opcode";
    if (continues && websocket->opcode == OPCODE_NONE) return "a fragment continues no message";
    if (is_data(frame->opcode) && websocket->opcode != OPCODE_NONE)
        return "a message begins inside another one";
    return NULL;
}

static bool begin_frame(struct websocket *websocket, const struct wslay_frame_iocb *frame,
                        struct err *e) {
    const char *why = judge_head(websocket, frame);
    if (why) return websocket_fail(websocket, WEBSOCKET_PROTOCOL_ERROR, why, e);
    websocket->in_frame = true;
    websocket->frame_bytes = 0;
    if (is_control(frame->opcode)) return true;
    if (is_data(frame->opcode)) websocket->opcode = frame->opcode;
    size_t room = websocket->message.max_bytes - websocket->message.len;
    if (frame->payload_length <= room) return true;
    websocket->fault = WEBSOCKET_TOO_LARGE;
    websocket->over = true;
    return err_set(e, ERR_TOO_LARGE, "a message is larger than %zu bytes",
                   websocket->message.max_bytes);
}

/* Length of the frame's head: RFC 6455 5.2. libwslay refuses lengths that are not minimal. */
static size_t head_bytes(const struct wslay_frame_iocb *frame) {
    size_t more = frame->payload_length < 126 ? 0 : frame->payload_length <= UINT16_MAX ? 2 : 8;
    return 2 + more + (frame->mask ? 4 : 0);
}

/* A piece of a frame. What arrives whole is not copied. */
static bool take_frame(struct websocket *websocket, const struct wslay_frame_iocb *frame,
                       struct err *e) {
    if (!websocket->in_frame) {
        websocket->held_bytes -= head_bytes(frame);
        if (!begin_frame(websocket, frame, e)) return false;
    }
    struct str part = str_of(frame->data, frame->data_length);
    struct buf *joined = is_control(frame->opcode) ? &websocket->control : &websocket->message;
    websocket->held_bytes -= part.len;
    websocket->frame_bytes += part.len;
    bool ends = websocket->frame_bytes == frame->payload_length;
    bool whole = ends && frame->fin && joined->len == 0;
    if (!whole) buf_append(joined, part);
    assert(buf_ok(joined)); /* both limits were checked */
    if (!ends) return true;
    websocket->in_frame = false;
    if (!frame->fin) return true;
    struct str data = whole ? part : buf_str(joined);
    bool fine = is_control(frame->opcode) ? take_control(websocket, frame->opcode, data, e)
                                          : websocket_take_message(websocket, data, e);
    buf_release(joined);
    return fine;
}

bool websocket_feed(struct websocket *websocket, struct str bytes, struct err *e) {
    struct wslay_frame_iocb frame = {0};
    ssize_t got = 0;
    websocket->input = bytes;
    if (bytes.len && !websocket->over) begin_frames(websocket);
    while (!websocket->over && (websocket->held_bytes > 0 || websocket->input.len > 0)) {
        got = wslay.wslay_frame_recv(websocket->frames, &frame);
        if (got == WSLAY_ERR_WANT_READ) break;
        if (got < 0)
            return websocket_fail(
                websocket, WEBSOCKET_PROTOCOL_ERROR,
                "a frame's length is not minimal, or a control frame is long or in "
                "fragments",
                e);
        if (!take_frame(websocket, &frame, e)) return false;
    }
    websocket->input = STR_EMPTY;
    if (websocket->over || (!websocket->in_frame && websocket->held_bytes == 0))
        end_frames(websocket);
    return true;
}

/* --- writing ------------------------------------------------------------------------------- */

static ssize_t websocket_take_output(const uint8_t *data, size_t len, int flags, void *ctx) {
    struct buf *out = ctx;
    (void)flags;
    buf_append(out, str_of(data, len)); /* the limit was checked */
    return (ssize_t)len;
}

static int make_mask(uint8_t *room, size_t len, void *ctx) {
    (void)ctx;
    return getrandom(room, len, 0) == (ssize_t)len ? 0 : -1;
}

static bool append_frame(struct buf *out, enum websocket_role role, uint8_t opcode,
                         struct str data) {
    static const struct wslay_frame_callbacks writing = {.send_callback = websocket_take_output,
                                                         .genmask_callback = make_mask};
    struct wslay_frame_iocb frame = {.fin = 1,
                                     .opcode = opcode,
                                     .payload_length = data.len,
                                     .mask = role == WEBSOCKET_CLIENT,
                                     .data = (const uint8_t *)data.at,
                                     .data_length = data.len};
    wslay_frame_context_ptr frames;
    if (!buf_room(out, data.len + FRAME_HEAD_MAX_BYTES)) return false;
    if (wslay.wslay_frame_context_init(&frames, &writing, out) != 0) abort();
    ssize_t sent = wslay.wslay_frame_send(frames, &frame);
    wslay.wslay_frame_context_free(frames);
    assert(sent == (ssize_t)data.len);
    (void)sent;
    return true;
}

bool websocket_append(struct buf *out, enum websocket_role role, enum websocket_kind kind,
                      struct str data) {
    static const uint8_t opcodes[] = {
        [WEBSOCKET_TEXT] = WSLAY_TEXT_FRAME,
        [WEBSOCKET_BINARY] = WSLAY_BINARY_FRAME,
        [WEBSOCKET_PING] = WSLAY_PING,
        [WEBSOCKET_PONG] = WSLAY_PONG,
        [WEBSOCKET_CLOSE] = 0,
    };
    assert(kind != WEBSOCKET_CLOSE);
    assert(!is_control(opcodes[kind]) || data.len <= WEBSOCKET_CONTROL_BYTES);
    return append_frame(out, role, opcodes[kind], data);
}

bool websocket_append_close(struct buf *out, enum websocket_role role, unsigned code,
                            struct str reason) {
    char room[WEBSOCKET_CONTROL_BYTES];
    if (code == WEBSOCKET_NO_CODE)
        return append_frame(out, role, WSLAY_CONNECTION_CLOSE, STR_EMPTY);
    size_t len = utf8_cut(reason, WEBSOCKET_REASON_BYTES);
    room[0] = (char)(code >> 8);
    room[1] = (char)(code & 0xFF);
    if (len) memcpy(room + 2, reason.at, len);
    return append_frame(out, role, WSLAY_CONNECTION_CLOSE, str_of(room, len + 2));
}

/* --- the opening handshake ----------------------------------------------------------------- */

#define NONCE_BYTES 16

/* RFC 6455 1.3 */
#define HANDSHAKE_GUID STR("258EAFA5-E914-47DA-95CA-C5AB0DC85B11")

static void encode(struct str bytes, char *ret, size_t len) {
    struct buf out = {.at = ret, .room = len, .max_bytes = len};
    bool fits = base64_encode(&out, bytes, BASE64_STANDARD, BASE64_PADDED);
    assert(fits && out.len == len);
    (void)fits;
}

void websocket_key(char ret[WEBSOCKET_KEY_BYTES]) {
    char nonce[NONCE_BYTES];
    if (getrandom(nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce)) abort();
    encode(str_of(nonce, sizeof(nonce)), ret, WEBSOCKET_KEY_BYTES);
}

bool websocket_key_ok(struct str key) {
    char nonce[NONCE_BYTES + 2];
    size_t len;
    return key.len == WEBSOCKET_KEY_BYTES &&
           base64_decode(key, BASE64_STANDARD, BASE64_PADDED, nonce, &len) &&
           len == NONCE_BYTES;
}

void websocket_accept(struct str key, char ret[WEBSOCKET_ACCEPT_BYTES]) {
    struct sha1_ctx hash;
    uint8_t digest[SHA1_DIGEST_SIZE];
    sha1_init(&hash);
    sha1_update(&hash, key.len, (const uint8_t *)key.at);
    sha1_update(&hash, HANDSHAKE_GUID.len, (const uint8_t *)HANDSHAKE_GUID.at);
    sha1_digest(&hash, SHA1_DIGEST_SIZE, digest);
    encode(str_of(digest, sizeof(digest)), ret, WEBSOCKET_ACCEPT_BYTES);
}
