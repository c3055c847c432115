/* schema_pattern: regular expressions with bounded cost.
 *
 * Schemas come from tools of third parties and texts come from a model, so neither may make a
 * match expensive. Each match has a step limit, which falls with the length of the text, and a
 * small memory limit. A match that reaches a limit is an error, neither a match nor a mismatch.
 *
 * Patterns follow ECMA-262 as far as PCRE2 can: `$` matches only at the end, `\u00e9` is a
 * character, `\d` is ASCII, and a pattern may match anywhere in the text.
 *
 * Memory   a pattern is the caller's, until schema_pattern_free().
 * Threads  read-only once made; any thread may match.
 * Source   JSON Schema 2020-12 core 6.4; pcre2api(3). */
#ifndef WEIR_SCHEMA_SCHEMA_PATTERN_H
#define WEIR_SCHEMA_SCHEMA_PATTERN_H

#include "base/err.h"

struct schema_pattern;

/* errors  ERR_INVALID_ARGUMENT what is wrong, and at which byte of the pattern */
MUST_CHECK bool schema_pattern_new(struct str text, struct schema_pattern **ret, struct err *e);
void schema_pattern_free(struct schema_pattern *pattern);

enum schema_match {
    SCHEMA_MATCH,
    SCHEMA_NO_MATCH,
    SCHEMA_MATCH_TOO_HARD, /* a limit was reached before the result was known */
};

/* Whether the pattern is found in `text`, valid UTF-8. */
enum schema_match schema_pattern_match(const struct schema_pattern *pattern, struct str text);

#endif
