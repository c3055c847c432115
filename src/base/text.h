/* text: bytes that have an owner.
 *
 * A struct str shows bytes and never owns them. What keeps a text longer than a call keeps a
 * struct text, shows it with text_str(), and ends it with text_done(). So the type of a member
 * says whether its struct must free it, and no view is ever freed.
 *
 * Memory   one block of the heap, which ends in NUL (not counted). All zero is no text.
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

/* Free it: no text from then on, so that doing it twice does no harm. */
void text_done(struct text *text);

/* The same for a secret: its bytes are overwritten first. */
void text_wipe(struct text *text);

#endif
