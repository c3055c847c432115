/* secret: find keys in a text, known ones and ones that look like keys.
 *
 * Vendors' keys start with a known prefix, follow a word that introduces them, or are a run of
 * letters and digits that is not a word in any language. This is a guess. The keys found are
 * hidden before a text goes to people or to disk.
 *
 * Memory   none; spans are places in the text.
 * Threads  any; values only.
 */
#ifndef WEIR_BASE_SECRET_H
#define WEIR_BASE_SECRET_H

#include "base/str.h"

/* A piece of a known secret at least this long is hidden wherever it appears. Shorter values
 * are not treated as secrets: home servers are configured with "none" or "ollama". */
#define SECRET_PIECE_BYTES 12

#define SECRET_HIDDEN STR("***")

/* What to do with the bytes at one position: write `shown` of them unchanged, then hide
 * `hidden`. Both 0: no secret begins here. */
struct secret_piece {
    size_t shown, hidden;
};

/* `text` must start where a word may begin. */
struct secret_piece secret_at(struct str text);

/* Length of the run at the start of `text` of bytes that occur in keys or in the mask that
 * hides them. The end of a sentence is not part of it. */
size_t secret_run(struct str text);

/* Length of the longest start of `text` that occurs in `known` in one piece. */
size_t secret_shared(struct str text, struct str known);

struct secret_span {
    size_t from, to;
};

/* The first secret in `text` at or after `from`, where a word may begin: a string that looks
 * like a key, or a piece of one of the `known` secrets. False: there is none. */
bool secret_next(struct str text, size_t from, const struct str *known, size_t known_count,
                 struct secret_span *ret);

/* Whether a member or header with this name holds a secret, whatever its value looks like:
 * "authorization", "api_key", "password". */
bool secret_name(struct str name);

#endif
