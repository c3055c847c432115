#include "wire/grpc.h"

/* ---- Reading messages ---- */

void grpc_reader_init(struct grpc_reader *reader, size_t message_max_bytes) {
    *reader = (struct grpc_reader){.max_bytes = message_max_bytes};
    buf_init(&reader->partial, message_max_bytes);
}

void grpc_reader_done(struct grpc_reader *reader) {
    buf_done(&reader->partial);
}

static struct str grpc_take(struct str *bytes, size_t len) {
    struct str head = str_head(*bytes, len);
    *bytes = str_skip(*bytes, head.len);
    return head;
}

/* Take bytes of the prefix. True: it is complete. */
static bool take_prefix(struct grpc_reader *reader, struct str *bytes) {
    struct str part = grpc_take(bytes, GRPC_PREFIX_BYTES - reader->prefix_len);
    if (part.len) memcpy(reader->prefix + reader->prefix_len, part.at, part.len);
    reader->prefix_len += part.len;
    return reader->prefix_len == GRPC_PREFIX_BYTES;
}

static size_t promised_len(const struct grpc_reader *reader) {
    const unsigned char *prefix = reader->prefix;
    return (size_t)prefix[1] << 24 | (size_t)prefix[2] << 16 | (size_t)prefix[3] << 8 |
           prefix[4];
}

static bool check_prefix(const struct grpc_reader *reader, struct err *e) {
    if (reader->prefix[0] > 1)
        return err_set(e, ERR_INTERNAL, "a message has the flag %u; gRPC knows 0 and 1",
                       reader->prefix[0]);
    size_t len = promised_len(reader);
    if (len > reader->max_bytes)
        return err_set(e, ERR_TOO_LARGE,
                       "a message of %zu bytes is larger than the limit of %zu", len,
                       reader->max_bytes);
    return true;
}

/* Take the message if its last bytes have arrived. It is lent from *bytes if they hold all of
 * it, otherwise assembled. */
static bool grpc_take_message(struct grpc_reader *reader, struct str *bytes, struct str *ret) {
    size_t len = promised_len(reader);
    if (reader->partial.len == 0 && bytes->len >= len) {
        *ret = grpc_take(bytes, len);
        return true;
    }
    buf_append(&reader->partial, grpc_take(bytes, len - reader->partial.len));
    if (reader->partial.len < len) return false;
    reader->lent = true;
    *ret = buf_str(&reader->partial);
    return true;
}

enum grpc_step grpc_next(struct grpc_reader *reader, struct str *bytes,
                         struct grpc_message *ret, struct err *e) {
    if (reader->lent) {
        buf_release(&reader->partial);
        reader->lent = false;
    }
    if (!take_prefix(reader, bytes)) return GRPC_MORE;
    if (!check_prefix(reader, e)) return GRPC_BROKEN;
    struct str message;
    if (!grpc_take_message(reader, bytes, &message)) return GRPC_MORE;
    *ret = (struct grpc_message){.compressed = reader->prefix[0] == 1, .bytes = message};
    reader->prefix_len = 0;
    return GRPC_MESSAGE;
}

bool grpc_end(const struct grpc_reader *reader, struct err *e) {
    if (reader->prefix_len == 0) return true;
    if (reader->prefix_len < GRPC_PREFIX_BYTES)
        return err_set(e, ERR_INTERNAL,
                       "the stream ended inside a message prefix, after %zu of its 5 bytes",
                       reader->prefix_len);
    return err_set(e, ERR_INTERNAL,
                   "the stream ended inside a message, after %zu of its %zu bytes",
                   reader->partial.len, promised_len(reader));
}

/* ---- Writing messages ---- */

bool grpc_append_message(struct buf *out, struct str message) {
    size_t begin = grpc_begin_message(out);
    buf_append(out, message);
    grpc_end_message(out, begin);
    return buf_ok(out);
}

/* ---- Compression ---- */

enum grpc_encoding grpc_encoding_named(struct str value) {
    if (value.len == 0 || str_equal(value, STR("identity"))) return GRPC_IDENTITY;
    if (str_equal(value, STR("gzip"))) return GRPC_GZIP;
    return GRPC_ENCODING_UNKNOWN;
}

bool grpc_flag_allowed(struct grpc_message message, enum grpc_encoding encoding,
                       struct err *e) {
    if (encoding == GRPC_ENCODING_UNKNOWN)
        return err_set(e, ERR_UNIMPLEMENTED,
                       "the grpc-encoding is not supported; send identity or gzip");
    if (message.compressed && encoding == GRPC_IDENTITY)
        return err_set(e, ERR_INTERNAL,
                       "a message is flagged as compressed, but the call's grpc-encoding "
                       "is identity");
    return true;
}
