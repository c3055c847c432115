/* utf8: where characters begin and whether bytes are text.
 *
 * Every string that leaves over protobuf or JSON must be valid UTF-8, and a delta must never
 * cut a character in two; these are the only functions that decide either.
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

/* The longest prefix of at most `max_bytes` that does not end inside a character: its
 * length. `s` should be valid; of invalid text no more than three bytes are dropped. */
size_t utf8_cut(struct str s, size_t max_bytes);

/* Bytes at the end of `s` that begin a character and may be completed by what comes next:
 * 0 to 3. A stream holds them back until then. */
size_t utf8_pending(struct str s);

/* Bytes that the first `count` characters take, or s.len when there are fewer. `s` is valid. */
size_t utf8_head(struct str s, uint64_t count);

/* Append `s` with each ill-formed part replaced by U+FFFD. False at the buffer's limit. */
bool utf8_append_repaired(struct buf *buf, struct str s);

/* Append one code point. It must be a scalar value (no surrogate, at most 0x10FFFF). */
bool utf8_append(struct buf *buf, uint32_t code_point);

#endif
