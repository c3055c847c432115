/* reply_text: the text of a reply while it comes in.
 *
 * A reply grows by some bytes at a time and is read as a whole once, at its end. So it is kept in
 * pieces, and none of them moves when more comes: one block that grows would be copied at each step,
 * and leaves a hole behind that fits no other reply.
 *
 *     piece ─▶ piece ─▶ piece (appending)      a later one has an eighth of the text before it
 *
 * Memory   owns its pieces. reply_text_whole() joins them into one.
 * Threads  none; it belongs to one loop, or to one reader.
 */
#ifndef WEIR_CONVERSATION_REPLY_TEXT_H
#define WEIR_CONVERSATION_REPLY_TEXT_H

#include "base/str.h"

#include <string.h>

struct reply_piece;

struct reply_text {
    struct reply_piece *first, *last; /* NULL: it is empty */
    char *end;                        /* of the text in the last piece */
    size_t left;                      /* room after it; 0: also because it is full */
    size_t len, max_bytes;
    bool full; /* something did not fit, and nothing more is taken */
};

void reply_text_init(struct reply_text *text, size_t max_bytes);

/* Drop the text and all pieces. */
void reply_text_clear(struct reply_text *text);

/* The same, but what reply_text_whole() lent stays until the next append. */
void reply_text_restart(struct reply_text *text);

/* Of reply_text_append(), for bytes that the last piece has no room for. */
MUST_CHECK bool reply_text_append_more(struct reply_text *text, struct str bytes);

/* Append a copy. False: the limit is reached, now or before, and nothing is appended. */
MUST_CHECK static inline bool reply_text_append(struct reply_text *text, struct str bytes) {
    if (bytes.len > text->left || bytes.len > text->max_bytes - text->len)
        return reply_text_append_more(text, bytes);
    if (bytes.len) memcpy(text->end, bytes.at, bytes.len);
    text->end += bytes.len;
    text->left -= bytes.len;
    text->len += bytes.len;
    return true;
}

/* All of it, in one piece; valid until the next append or clear. */
struct str reply_text_whole(struct reply_text *text);

/* Move the pieces of `later` to the end of `text`, also beyond its limit. `later` is empty then. */
void reply_text_take(struct reply_text *text, struct reply_text *later);

#endif
