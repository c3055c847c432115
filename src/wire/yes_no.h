/* yes_no: whether a person's words are plainly a yes or a no, and nothing else.
 *
 * The words must equal one entry of a short list. White space around them, extra white space
 * between them, case, commas and final punctuation are ignored:
 *
 *     yes   "yes" "OK!" "Go ahead." "yes, please" "👍"
 *     no    "no" "Stop" "don't" "no, thanks" "👎"
 *     none  "what happens if I say yes?" "ok, how much is it?" "yes?" "not now, maybe"
 *
 * A question mark is not ignored: a question is not a decision.
 *
 * Memory   lists are borrowed.
 * Threads  none; values only.
 * Source   checks.md K29. */
#ifndef WEIR_WIRE_YES_NO_H
#define WEIR_WIRE_YES_NO_H

#include "base/buf.h"

enum yes_no { YES_NO_NEITHER, YES_NO_YES, YES_NO_NO };

/* Entries in addition to the built-in ones, in an operator's own language. */
struct yes_no_list {
    const struct str *entries;
    size_t count;
};

struct yes_no_words {
    struct yes_no_list yes, no;
};

#define YES_NO_MAX_BYTES 200 /* longer words match no entry */

/* `more` may be NULL. Words in both lists are neither. */
enum yes_no yes_no_read(struct str words, const struct yes_no_words *more);

/* The same for an answer that may be JSON: true, {"approved":true}, {"decision":"approve"} or
 * "edit", a string; and their opposites. An object that decides twice is neither. */
enum yes_no yes_no_of(struct str answer, const struct yes_no_words *more);

/* Call `each` with every entry of `which`. */
void yes_no_each(enum yes_no which, const struct yes_no_words *more,
                 void (*each)(struct str entry, void *ctx), void *ctx);

#endif
