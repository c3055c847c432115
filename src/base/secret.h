/* secret: what in a text looks like a key, or is one that we know.
 *
 * Vendors' keys begin with something known, stand behind words that introduce them, or are
 * letters and digits in one go that are no word of any language. Nobody can tell for sure: what
 * is found is hidden where a text goes to people or to disk.
 *
 * Memory   none; spans are places in the text.
 * Threads  any; values only.
 */
#ifndef WEIR_BASE_SECRET_H
#define WEIR_BASE_SECRET_H

#include "base/str.h"

/* A piece of a known secret that is at least so long is hidden wherever it stands. One that is
 * shorter is none: servers at home are given "none" or "ollama". */
#define SECRET_PIECE_BYTES 12

#define SECRET_HIDDEN STR("***")

/* How the bytes at one place are written: so many as they are, then so many hidden. Both 0:
 * nothing begins here. */
struct secret_piece {
    size_t shown, hidden;
};

/* `text` begins where a word may begin. */
struct secret_piece secret_at(struct str text);

/* Bytes at the start of `text` that keys are written with, and what they are blotted out with;
 * the end of a sentence is none of them. */
size_t secret_run(struct str text);

/* Bytes at the start of `text` that stand in `known` in one piece. */
size_t secret_shared(struct str text, struct str known);

struct secret_span {
    size_t from, to;
};

/* The first one in `text` at or behind `from`, where a word may begin: what looks like one, or
 * a piece of one of those `known`. False: there is none. */
bool secret_next(struct str text, size_t from, const struct str *known, size_t known_count,
                 struct secret_span *ret);

/* Whether a member or header of this name holds a secret whatever it looks like:
 * "authorization", "api_key", "password". */
bool secret_name(struct str name);

#endif
