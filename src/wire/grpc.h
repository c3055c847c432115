/* grpc: the gRPC message framing and header values.
 *
 * On a stream each message follows a prefix of five bytes:
 *
 *     ┌────────┬───────────────────────┬──────────────────┐
 *     │ flag 1 │ length 4, big-endian  │ message          │
 *     └────────┴───────────────────────┴──────────────────┘
 *     flag: 0 as it is, 1 compressed with the call's grpc-encoding; others are no gRPC
 *
 * The reader takes the stream as it comes, cut anywhere. A message that lies whole in the
 * bytes at hand is lent from there; only one that was cut is assembled, in memory that grows
 * with what has arrived and not with what the prefix claims. It does not inflate; it says
 * which messages are compressed.
 *
 * The rest is the text of headers: timeouts, status messages, content types, binary metadata.
 *
 * Memory   a reader owns its assembly buffer, at most the size limit; it holds none between
 *          messages. A message is lent until the next call on the reader, and no longer than
 *          the bytes it was read from.
 * Threads  none; one reader belongs to one call.
 * Source   grpc/doc/PROTOCOL-HTTP2.md; grpc/doc/compression.md; statuscodes.md.
 */
#ifndef WEIR_WIRE_GRPC_H
#define WEIR_WIRE_GRPC_H

#include "base/buf.h"
#include "base/err.h"

#include <assert.h>
#include <endian.h>

#define GRPC_PREFIX_BYTES 5

/* The default message size limit of a server. */
#define GRPC_MESSAGE_MAX_BYTES (4 * MIB)

/* ---- Messages ---- */

struct grpc_message {
    bool compressed;
    struct str bytes; /* as received, perhaps compressed */
};

enum grpc_step {
    GRPC_MESSAGE, /* *ret is a message; there may be more */
    GRPC_MORE,    /* all bytes were taken; feed more */
    GRPC_BROKEN,  /* *e says why; the reader cannot be used any more */
};

struct grpc_reader {
    unsigned char prefix[GRPC_PREFIX_BYTES];
    size_t prefix_len;
    size_t max_bytes;
    bool lent; /* `partial` holds a complete message, which is lent */
    struct buf partial;
};

void grpc_reader_init(struct grpc_reader *reader, size_t message_max_bytes);
void grpc_reader_done(struct grpc_reader *reader);

/* Take from the front of *bytes until a message is whole or nothing is left:
 *
 *     while ((step = grpc_next(&reader, &bytes, &message, e)) == GRPC_MESSAGE) ...
 *
 * errors  ERR_INTERNAL a flag that is neither 0 nor 1; ERR_TOO_LARGE past the limit, as
 *         soon as the prefix shows it */
enum grpc_step grpc_next(struct grpc_reader *reader, struct str *bytes,
                         struct grpc_message *ret, struct err *e);

/* The stream is over. False: it ended inside a message or a prefix.
 * errors  ERR_INTERNAL */
MUST_CHECK bool grpc_end(const struct grpc_reader *reader, struct err *e);

static inline void grpc_put_length(char *prefix, size_t len) {
    assert(len <= UINT32_MAX);
    uint32_t big_endian = htobe32((uint32_t)len);
    memcpy(prefix + 1, &big_endian, sizeof(big_endian));
}

/* Write the prefix of a message of `len` bytes at `at`; returns where the message begins. */
static inline char *grpc_put_prefix(char *at, size_t len) {
    *at = 0; /* not compressed */
    grpc_put_length(at, len);
    return at + GRPC_PREFIX_BYTES;
}

/* Leave room for a prefix at the end of `out`. Append the message after it, then pass the
 * returned value to grpc_end_message(), which writes the length. A buffer that became full
 * meanwhile stays full. */
static inline size_t grpc_begin_message(struct buf *out) {
    size_t begin = out->len;
    buf_append(out, str_of("\0\0\0\0", GRPC_PREFIX_BYTES));
    return begin;
}

static inline void grpc_end_message(struct buf *out, size_t begin) {
    if (buf_ok(out)) grpc_put_length(out->at + begin, out->len - begin - GRPC_PREFIX_BYTES);
}

/* Append a message with its prefix. False at the buffer's limit. */
bool grpc_append_message(struct buf *out, struct str message);

/* ---- Compression ---- */

enum grpc_encoding {
    GRPC_IDENTITY, /* also without the header */
    GRPC_GZIP,
    GRPC_ENCODING_UNKNOWN, /* answer UNIMPLEMENTED with grpc-accept-encoding */
};

/* The encoding that a grpc-encoding header names; empty: there is no header. */
enum grpc_encoding grpc_encoding_named(struct str value);

/* Whether a message may carry its flag under this encoding.
 * errors  ERR_INTERNAL compressed although nothing was agreed; ERR_UNIMPLEMENTED unknown */
MUST_CHECK bool grpc_flag_allowed(struct grpc_message message, enum grpc_encoding encoding,
                                  struct err *e);

/* ---- Headers ---- */

/* The value of a grpc-timeout header, at most INT64_MAX nanoseconds; 0 has passed already.
 * errors  ERR_INTERNAL not one to eight digits and one of H M S m u n */
MUST_CHECK bool grpc_timeout_parse(struct str value, uint64_t *ret_ns, struct err *e);

/* Append a timeout in the finest unit whose eight digits hold it, rounded up. */
bool grpc_timeout_append(struct buf *out, uint64_t timeout_ns);

/* The longest encoded grpc-message in a header. */
#define GRPC_STATUS_MESSAGE_MAX_BYTES (1 * KIB)

/* Append `text` percent-encoded as a grpc-message: cut to GRPC_STATUS_MESSAGE_MAX_BYTES
 * between two characters, ill-formed UTF-8 as U+FFFD. False at the limit of the buffer. */
bool grpc_message_encode(struct buf *out, struct str text);

/* Append the decoded grpc-message as valid UTF-8. Anything but a valid %XX stays unchanged. */
bool grpc_message_decode(struct buf *out, struct str value);

/* Whether a content-type is gRPC with protobuf messages: application/grpc, with or without
 * "+proto" and parameters; not application/grpc-web. */
bool grpc_content_type_ok(struct str value);

/* Append the bytes of one `-bin` metadata value; padding may be there or not.
 * errors  ERR_INTERNAL no base64; ERR_TOO_LARGE past the limit of the buffer */
MUST_CHECK bool grpc_bin_decode(struct buf *out, struct str value, struct err *e);

/* Append bytes as the value of `-bin` metadata, unpadded. */
bool grpc_bin_encode(struct buf *out, struct str bytes);

#endif
