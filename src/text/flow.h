/* flow: build running text with paragraphs from pieces with arbitrary white space.
 *
 * Any white space becomes one blank, and none is left at the ends of lines. The number of line
 * breaks between two pieces is the largest number requested between them.
 *
 * Memory   borrows its buffer.
 * Threads  none.
 */
#ifndef WEIR_TEXT_FLOW_H
#define WEIR_TEXT_FLOW_H

#include "base/buf.h"

#define FLOW_PREFIX_MAX_BYTES 64

struct flow {
    struct buf *out;
    unsigned breaks;                    /* line ends before the next text */
    bool blank;                         /* a blank before the next text */
    char prefix[FLOW_PREFIX_MAX_BYTES]; /* written before the next text, after its breaks */
    size_t prefix_len;
};

struct flow flow_of(struct buf *out);

/* At least `count` line breaks before the next text; no effect right after a prefix. */
void flow_break(struct flow *flow, unsigned count);
void flow_blank(struct flow *flow);

/* "- ", "## ": only if text follows before the next prefix or flow_no_prefix(). */
void flow_prefix(struct flow *flow, struct str prefix);
void flow_no_prefix(struct flow *flow);

void flow_text(struct flow *flow, struct str text);
void flow_raw(struct flow *flow, struct str text); /* space and line ends as they are */

#endif
