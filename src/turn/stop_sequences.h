/* stop_sequences: find where a reply must end while it comes in pieces.
 *
 * Most models end a reply themselves. This finds the end for those that do not, and for agents that
 * are no models.
 *
 *     "a, b E" + "ND c", stop "END"     shown: "a, b "     held back meanwhile: "E"
 *
 * Memory   owns what is held back, less than the longest sequence; the sequences are borrowed.
 * Threads  none.
 */
#ifndef WEIR_TURN_STOP_SEQUENCES_H
#define WEIR_TURN_STOP_SEQUENCES_H

#include "base/buf.h"

struct stop_sequences {
    const struct str *list; /* none is empty */
    size_t count;           /* 0: nothing is looked for */
    struct buf held;        /* may be the beginning of one */
};

/* `max_bytes` of one sequence. */
void stop_sequences_init(struct stop_sequences *stops, size_t max_bytes);
void stop_sequences_done(struct stop_sequences *stops);

/* A reply begins; `list` is borrowed until the next one. */
void stop_sequences_begin(struct stop_sequences *stops, const struct str *list, size_t count);

/* Append to `out` what is shown of `text`. True: the reply ends here, before *ret_stop. */
bool stop_sequences_take(struct stop_sequences *stops, struct str text, struct buf *out,
                         struct str *ret_stop);

/* The reply is over: append what was held back. */
void stop_sequences_end(struct stop_sequences *stops, struct buf *out);

#endif
