/* filter: one text on its way through a list of guardrails.
 *
 * Feed the text in pieces of any size; the text that may pass comes out. The output, the counts
 * and the verdict are the same however the text is cut, unless a check is given up. A rule
 * holds back only text that may become a match, GUARDRAIL_MATCH_MAX_BYTES at most. An
 * incomplete character is held back as well. Invalid UTF-8 becomes U+FFFD.
 *
 *     rule 1 ─▶ rule 2 ─▶ ... ─▶ out       each rule reads the output of the one before it
 *
 * A block stops everything: text released before stays released, and text held back is dropped.
 * A check that would cost too much is given up, and the text is blocked too, because the rule
 * was not passed. If the rule only warns, the text passes.
 *
 * Memory   borrows the rules; owns what it holds back.
 * Threads  none; one filter belongs to one loop.
 * Source   contracts/agentbreeder.md 4.5. */
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
    struct filter_stage *stages; /* one per rule */
    struct utf8_tail tail;
    struct filter_result result;
    uint64_t bytes, spent_ns; /* over all texts: bytes read, and the time of their checks */
};

void filter_init(struct filter *filter, struct guardrails rules);
void filter_done(struct filter *filter);

/* Append to `out` the text that may pass. False: a rule blocks the text (filter->result), now
 * or earlier. Without rules everything passes unchanged. */
MUST_CHECK bool filter_feed(struct filter *filter, struct str bytes, struct buf *out);

/* End the text: append what was held back. The filter is then ready for the next text. The
 * result is kept, so a filter that has blocked lets nothing more pass. */
MUST_CHECK bool filter_end(struct filter *filter, struct buf *out);

/* Drop the text so far and begin the next one. */
void filter_reset(struct filter *filter);

/* Number of bytes held back. */
size_t filter_held(const struct filter *filter);

/* Filter a whole text. False: a rule blocks it. */
MUST_CHECK bool filter_text(struct guardrails rules, struct str text, struct buf *out,
                            struct filter_result *ret);

/* Filter each string value of the JSON `text` separately; all other bytes, including keys, are
 * unchanged. Strings without a match keep their spelling. If `text` is not JSON, it is filtered
 * as one text. */
MUST_CHECK bool filter_json(struct guardrails rules, struct str text, struct buf *out,
                            struct filter_result *ret);

#endif
