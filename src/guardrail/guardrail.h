/* guardrail: one rule for the text that goes to an agent or comes from it.
 *
 * A rule finds a regular expression or one of several keywords. It then blocks the text,
 * replaces the match, or only counts it. guardrail/filter.h applies a list of rules to a text.
 *
 * A rule works on text that arrives in pieces, and its result must not depend on how the text
 * was cut. So a match has at most GUARDRAIL_MATCH_MAX_BYTES, and a pattern may not use features
 * that depend on where a search began: \G, \K, and verbs such as (*SKIP).
 *
 * Patterns follow RE2 as far as PCRE2 can: `$` is the end of the text, `\d`, `\w` and `\b` are
 * ASCII, `.` does not match a line feed. A match is never empty. In a replacement `$1`, `${1}`
 * and `${name}` are groups of the match; `$$` is a dollar sign.
 *
 * Memory   a rule owns its compiled pattern and its texts.
 * Threads  read-only once made, except for its counters, which are atomic.
 * Source   contracts/agentbreeder.md 4.5; pcre2api(3), pcre2partial(3). */
#ifndef WEIR_GUARDRAIL_GUARDRAIL_H
#define WEIR_GUARDRAIL_GUARDRAIL_H

#include "base/err.h"

#include <stdatomic.h>

/* Maximum length of a match, and so the most text that a stream holds back for one rule. Of a
 * longer match, the first part of this length is judged. */
#define GUARDRAIL_MATCH_MAX_BYTES 2048

enum guardrail_kind { GUARDRAIL_REGEX, GUARDRAIL_KEYWORD };

enum guardrail_action {
    GUARDRAIL_REDACT, /* the match is replaced */
    GUARDRAIL_BLOCK,  /* the text ends there with a failure */
    GUARDRAIL_WARN,   /* the match is counted and passes */
};

struct guardrail_rule {
    struct str name;
    enum guardrail_kind kind;
    struct str pattern;     /* keywords: separated by commas, case ignored */
    struct str replacement; /* at NULL: GUARDRAIL_REPLACEMENT */
    enum guardrail_action action;
    bool luhn; /* the digits of a match must have a payment card's check digit */
};

#define GUARDRAIL_REPLACEMENT "[REDACTED]"

struct guardrail;

/* Make a rule. The caller ends it with guardrail_free(), which accepts NULL.
 * errors  ERR_INVALID_ARGUMENT what is wrong with the pattern, and at which byte; or the
 *         replacement names a group that the pattern does not have */
MUST_CHECK bool guardrail_new(const struct guardrail_rule *rule, struct guardrail **ret,
                              struct err *e);
void guardrail_free(struct guardrail *guardrail);

struct str guardrail_name(const struct guardrail *guardrail);

/* What a rule has counted since it was made. */
struct guardrail_counts {
    uint64_t matches;   /* found, whatever the action */
    uint64_t undecided; /* texts whose check was given up as too expensive */
};

struct guardrail_counts guardrail_counts(const struct guardrail *guardrail);

/* Rules in order. Each reads the output of the rule before it. */
struct guardrails {
    struct guardrail *const *rules;
    size_t count;
};

/* The default rules for personal data: US social security numbers, payment cards and e-mail
 * addresses, each redacted. */
#define GUARDRAIL_PERSONAL_COUNT 3
extern const struct guardrail_rule guardrail_personal[GUARDRAIL_PERSONAL_COUNT];

#endif
