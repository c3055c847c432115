/* nearest: "did you mean".
 *
 * Somebody wrote a name that nobody knows; offer the known ones and the most likely one that
 * was meant comes back, or none when nothing is close. Close means few edits (a letter added,
 * lost, changed, or two swapped) for the length of the name; case does not count.
 *
 * Memory   borrows the names it is offered, until the answer is used.
 * Threads  none.
 */
#ifndef WEIR_BASE_NEAREST_H
#define WEIR_BASE_NEAREST_H

#include "base/str.h"

struct nearest {
    struct str wanted; /* what was written */
    struct str found;  /* the best so far; empty = nothing is close */
    size_t edits;      /* how far it is */
};

void nearest_init(struct nearest *nearest, struct str wanted);
void nearest_offer(struct nearest *nearest, struct str known);

/* The one of `known` (ends with NULL) that was meant, or an empty string. */
struct str nearest_name(struct str wanted, const char *const *known);

/* "; did you mean 'search'?" for the end of an error text, or "" when nothing was close. */
#define NEAREST_HINT_BYTES 96
const char *nearest_hint(const struct nearest *nearest, char room[NEAREST_HINT_BYTES]);

#endif
