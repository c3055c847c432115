/* jsonrpc: the envelope of JSON-RPC 2.0, read and written.
 *
 *     {"jsonrpc":"2.0","id":7,"method":"tools/list","params":{...}}     a request
 *     {"jsonrpc":"2.0","method":"notifications/cancelled"}              a notification
 *     {"jsonrpc":"2.0","id":7,"result":{...}}                           an answer
 *     {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"..."}}  a refusal
 *
 * The contents (params, result, data) are up to the caller. An id is a string or an integer; it
 * is kept and sent back unchanged. A refusal may have the id null if its sender could not parse
 * the request. A method, result or error that is null beside another of them is absent, because
 * libraries with optional members write all of them.
 *
 * Memory   what is read borrows the text; writing appends to the caller's buffer.
 * Threads  none; values only.
 * Source   JSON-RPC 2.0 specification; Model Context Protocol 2025-11-25, "Messages" (an id is
 *          never null in a request, params are an object).
 */
#ifndef WEIR_WIRE_JSONRPC_H
#define WEIR_WIRE_JSONRPC_H

#include "wire/json.h"

#define JSONRPC_PARSE_ERROR (-32700)
#define JSONRPC_INVALID_REQUEST (-32600)
#define JSONRPC_METHOD_NOT_FOUND (-32601)
#define JSONRPC_INVALID_PARAMS (-32602)
#define JSONRPC_INTERNAL_ERROR (-32603)

enum jsonrpc_kind { JSONRPC_REQUEST, JSONRPC_NOTIFICATION, JSONRPC_RESULT, JSONRPC_ERROR };

struct jsonrpc {
    enum jsonrpc_kind kind;
    struct json id;      /* JSON_NONE for a notification; may be JSON_NULL for an error */
    struct json method;  /* a string; of a request or a notification */
    struct json params;  /* an object, or JSON_NONE */
    struct json result;  /* any value */
    int64_t code;        /* of an error */
    struct json message; /* a string; of an error */
    struct json data;    /* any value; of an error */
};

/* One message; for a batch of them see jsonrpc_each().
 * errors  ERR_MALFORMED what is wrong with it */
MUST_CHECK bool jsonrpc_read(struct json value, struct jsonrpc *ret, struct err *e);

/* False: no more messages. */
typedef bool jsonrpc_message_fn(const struct jsonrpc *message, void *ctx);

/* Pass `text`, one message or a batch of them, to `fn` before this returns. What is not a message
 * is skipped. Messages borrow `text`, or `room` where json_read_mended() needs it. */
void jsonrpc_each(struct str text, struct buf *room, jsonrpc_message_fn *fn, void *ctx);

/* Whether a peer means our number: some send it back as a string. */
bool jsonrpc_is_number(struct json id, uint64_t number);

/* Whether this answers the request with the number `id`. */
bool jsonrpc_answers(const struct jsonrpc *message, uint64_t id);

/* The id of what jsonrpc_read() refused, if it was to be an answer; else JSON_NONE. */
struct json jsonrpc_refused_id(struct json value);

/* The id of an answer that is no JSON, if it shows one where writers of answers put it: in front of
 * its result or error, or after `"jsonrpc":"2.0",` at the very end. Else JSON_NONE. */
struct json jsonrpc_unread_id(struct str text);

/* Append one message. `params` and `result` are accepted JSON; empty params are left out. Ask
 * buf_ok() in the end. */
void jsonrpc_write_request(struct buf *out, uint64_t id, const char *method, struct str params);
void jsonrpc_write_notification(struct buf *out, const char *method, struct str params);

/* `id` is the raw id of the request. */
void jsonrpc_write_result(struct buf *out, struct str id, struct str result);
void jsonrpc_write_error(struct buf *out, struct str id, int64_t code, struct str message);

/* The same with `data`, accepted JSON; or empty. */
void jsonrpc_write_error_data(struct buf *out, struct str id, int64_t code, struct str message,
                              struct str data);

#endif
