/* schema_pattern: regular expressions that cannot run away.
 *
 * Schemas come with tools that others serve, and the texts come from a model, so neither may
 * cost more than a moment: each match has a number of steps that falls with the length of the
 * text, and memory of its own, small limit. What passes them is neither a match nor a
 * mismatch but an error.
 *
 * Patterns mean what they mean in ECMA-262, as far as PCRE2 can be told: `$` is the end alone,
 * `\u00e9` is a character, `\d` is ASCII, and a pattern is found anywhere in the text.
 *
 * Memory   a pattern is the caller's, until schema_pattern_free().
 * Threads  read-only once made; any thread may match.
 * Source   JSON Schema 2020-12 core 6.4; pcre2api(3).
 */
#ifndef WEIR_SCHEMA_SCHEMA_PATTERN_H
#define WEIR_SCHEMA_SCHEMA_PATTERN_H

#include "base/err.h"

struct schema_pattern;

/* errors  ERR_INVALID_ARGUMENT what is wrong, and at which byte of it */
MUST_CHECK bool schema_pattern_new(struct str text, struct schema_pattern **ret, struct err *e);
void schema_pattern_free(struct schema_pattern *pattern);

enum schema_match {
    SCHEMA_MATCH,
    SCHEMA_NO_MATCH,
    SCHEMA_MATCH_TOO_HARD, /* the limits were reached before it was decided */
};

/* Whether the pattern is found in `text`, valid UTF-8. */
enum schema_match schema_pattern_match(const struct schema_pattern *pattern, struct str text);

#endif
