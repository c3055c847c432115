/* filter: one text on its way through a list of guardrails.
 *
 * Feed the text in pieces of any size; what may pass comes out. The output, the counts and the
 * verdict are the same however the text is cut, unless a check is given up. A rule holds back only what may become a match
 * with the text to come, GUARDRAIL_MATCH_MAX_BYTES at most. A character that is not complete
 * is held back as well, and what is not UTF-8 becomes U+FFFD.
 *
 *     rule 1 ─▶ rule 2 ─▶ ... ─▶ out       each reads what the one before it wrote
 *
 * A block stops everything: what was released before it stays released, and what is held is
 * dropped. A check that would cost too much is given up, and the text is blocked as well: a
 * rule that cannot be decided has not been passed. A rule that only warns lets such text pass.
 *
 * Memory   borrows the rules; owns what it holds back.
 * Threads  none; one filter belongs to one loop.
 * Source   contracts/agentbreeder.md 4.5.
 */
#ifndef WEIR_GUARDRAIL_FILTER_H
#define WEIR_GUARDRAIL_FILTER_H

#include "base/buf.h"
#include "base/utf8_tail.h"
#include "guardrail/guardrail.h"

struct filter_result {
    const struct guardrail *blocked_by; /* NULL: no rule */
    bool undecided; /* a check was given up: the text is blocked, or its rule only warns */
    uint64_t redacted, warned; /* matches so far */
};

struct filter {
    struct guardrails rules;
    struct filter_stage *stages; /* one for each rule */
    struct utf8_tail tail;
    struct filter_result result;
    uint64_t bytes, spent_ns; /* of all its texts: read, and what their checks have cost */
};

void filter_init(struct filter *filter, struct guardrails rules);
void filter_done(struct filter *filter);

/* Append to `out` what may pass. False: a rule blocks the text (filter->result), now or
 * earlier. Without rules everything passes as it is. */
MUST_CHECK bool filter_feed(struct filter *filter, struct str bytes, struct buf *out);

/* The text is over: append what was held back. The filter is ready for the next text; its result
 * goes on, so a filter that blocked lets nothing pass any more. */
MUST_CHECK bool filter_end(struct filter *filter, struct buf *out);

/* Forget the text so far; the next one begins. */
void filter_reset(struct filter *filter);

/* Bytes that are held back. */
size_t filter_held(const struct filter *filter);

/* A whole text. False: a rule blocks it. */
MUST_CHECK bool filter_text(struct guardrails rules, struct str text, struct buf *out,
                            struct filter_result *ret);

/* Each string value of the JSON value `text`, by itself; all other bytes stay as they are, keys
 * too. Strings without a match keep their spelling. Text that is not JSON is read whole. */
MUST_CHECK bool filter_json(struct guardrails rules, struct str text, struct buf *out,
                            struct filter_result *ret);

#endif
