/* nearest: "did you mean".
 *
 * Given an unknown name, offer the known names and get the one that was most likely meant, or
 * none when nothing is close. Close means few edits for the length of the name. An edit is a
 * letter added, removed or changed, or two letters swapped. Case is ignored.
 *
 * Memory   borrows the offered names until the result has been used.
 * Threads  none.
 */
#ifndef WEIR_BASE_NEAREST_H
#define WEIR_BASE_NEAREST_H

#include "base/str.h"

struct nearest {
    struct str wanted; /* the unknown name */
    struct str found;  /* the best match so far; empty = nothing is close */
    size_t edits;      /* its distance */
    char hint[96];     /* room of nearest_hint() */
};

void nearest_init(struct nearest *nearest, struct str wanted);
void nearest_offer(struct nearest *nearest, struct str known);

/* The closest of `known` (ends with NULL), or an empty string. */
struct str nearest_name(struct str wanted, const char *const *known);

/* "; did you mean 'search'?" to end an error text, or "" when nothing is close. */
const char *nearest_hint(struct nearest *nearest);

#endif
