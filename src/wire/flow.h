/* flow: running text with paragraphs, from pieces that come with any space between them.
 *
 * Space of all kinds becomes one blank, and none at the ends of lines; how many line ends
 * stand between two pieces is the most that was asked for between them.
 *
 * Memory   borrows its buffer.
 * Threads  none.
 */
#ifndef WEIR_WIRE_FLOW_H
#define WEIR_WIRE_FLOW_H

#include "base/buf.h"

#define FLOW_PREFIX_MAX_BYTES 64

struct flow {
    struct buf *out;
    unsigned breaks;                    /* line ends before the next text */
    bool blank;                         /* a blank before the next text */
    char prefix[FLOW_PREFIX_MAX_BYTES]; /* stands before the next text, after its breaks */
    size_t prefix_len;
};

struct flow flow_of(struct buf *out);

/* At least `count` line ends before what comes next; nothing right behind a prefix. */
void flow_break(struct flow *flow, unsigned count);
void flow_blank(struct flow *flow);

/* "- ", "## ": only if text follows before the next prefix or flow_no_prefix(). */
void flow_prefix(struct flow *flow, struct str prefix);
void flow_no_prefix(struct flow *flow);

void flow_text(struct flow *flow, struct str text);
void flow_raw(struct flow *flow, struct str text); /* space and line ends as they are */

#endif
