/* compiled: the compiled form of a rule. Private to guardrail/. */
#ifndef WEIR_GUARDRAIL_COMPILED_H
#define WEIR_GUARDRAIL_COMPILED_H

#include "base/buf.h"
#include "guardrail/guardrail.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

struct guardrail {
    pcre2_code *code;
    struct buf name, replacement;
    enum guardrail_action action;
    bool luhn;
    size_t behind_bytes; /* bytes before a match that it may look at */
    atomic_ullong matches, undecided;
};

/* Append the replacement of a match. `groups` holds offsets in `subject`, two for each of its
 * `count` groups. */
void guardrail_replace(const struct guardrail *guardrail, struct str subject,
                       const size_t *groups, size_t count, struct buf *out);

/* Whether `match` counts: if the rule requires a check digit, it must be right. */
bool guardrail_accepts(const struct guardrail *guardrail, struct str match);

#endif
