/* base64: bytes as text and back, in the two alphabets.
 *
 * Decoding is strict, so that no two texts decode to the same bytes: it refuses foreign
 * characters, line breaks, unwanted padding, and leftover bits in the last character. A signed
 * text cannot be altered without altering its bytes.
 *
 * Memory   none.
 * Threads  any.
 * Source   RFC 4648, sections 3.5, 4 and 5.
 */
#ifndef WEIR_WIRE_BASE64_H
#define WEIR_WIRE_BASE64_H

#include "base/buf.h"

enum base64_alphabet {
    BASE64_STANDARD, /* + and / */
    BASE64_URL,      /* - and _ */
};

enum base64_padding {
    BASE64_PADDED,   /* '=' up to a multiple of four */
    BASE64_UNPADDED, /* no '=' */
    BASE64_EITHER,   /* decoding only: all of the padding or none of it */
};

/* Bytes that `len` characters without padding decode to, and the other way round. */
static inline size_t base64_decoded_len(size_t len) {
    return len / 4 * 3 + len % 4 * 3 / 4;
}

static inline size_t base64_encoded_len(size_t len) {
    return len / 3 * 4 + (len % 3 ? len % 3 + 1 : 0);
}

/* Append `bytes` as text. False at the limit of the buffer. */
bool base64_encode(struct buf *out, struct str bytes, enum base64_alphabet alphabet,
                   enum base64_padding padding);

/* Decode into `room`, which has base64_decoded_len(text.len) bytes. False when `text` is not
 * base64; the contents of `room` are then undefined. */
MUST_CHECK bool base64_decode(struct str text, enum base64_alphabet alphabet,
                              enum base64_padding padding, char *room, size_t *ret_len);

#endif
