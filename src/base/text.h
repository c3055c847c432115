/* text: bytes with an owner.
 *
 * A struct str never owns its bytes. An object that keeps a text longer than a call holds a
 * struct text, reads it with text_str() and frees it with text_done(). The type of a member
 * therefore says whether its struct must free it, and a view is never freed.
 *
 * Memory   one heap block, which ends in NUL (not counted). All zero means no text.
 * Threads  any; values only.
 */
#ifndef WEIR_BASE_TEXT_H
#define WEIR_BASE_TEXT_H

#include "base/str.h"

struct text {
    char *at;
    size_t len;
};

/* The caller owns the copy and ends it with text_done(). */
struct text text_copy(struct str bytes);

/* Valid until text_done(); empty for no text. */
static inline struct str text_str(struct text text) {
    return text.at ? str_of(text.at, text.len) : STR_EMPTY;
}

/* Free it and reset it to no text, so that a second call is harmless. */
void text_done(struct text *text);

/* The same for a secret: its bytes are overwritten first. */
void text_wipe(struct text *text);

#endif
