/* utf8: validate UTF-8 and find character boundaries.
 *
 * Every string sent as protobuf or JSON must be valid UTF-8, and a delta must never split a
 * character. Only these functions decide either question.
 *
 * Memory   none.
 * Threads  any.
 * Source   Unicode 15, table 3-7 (well-formed UTF-8 byte sequences).
 */
#ifndef WEIR_BASE_UTF8_H
#define WEIR_BASE_UTF8_H

#include "base/buf.h"

bool utf8_valid(struct str s);

/* Length of the longest valid prefix. */
size_t utf8_valid_prefix(struct str s);

/* Length of the longest prefix of at most `max_bytes` that does not end inside a character.
 * `s` should be valid; for invalid text at most three more bytes are cut. */
size_t utf8_cut(struct str s, size_t max_bytes);

/* Length of the longest prefix of ASCII. */
size_t utf8_ascii_prefix(struct str s);

/* Number of bytes (0 to 3) at the end of `s` that start a character and may be completed by
 * later bytes. A stream holds them back until then. */
size_t utf8_pending(struct str s);

/* Length in bytes of the first `count` characters, or s.len when there are fewer. `s` must be
 * valid. */
size_t utf8_head(struct str s, uint64_t count);

/* Append `s` with each ill-formed part replaced by U+FFFD. False at the buffer's limit. */
bool utf8_append_repaired(struct buf *buf, struct str s);

/* Append one code point. It must be a scalar value (no surrogate, at most 0x10FFFF). */
bool utf8_append(struct buf *buf, uint32_t code_point);

#endif
