/* seam: where a stream of text passes from one reply of a model to the next.
 *
 * A turn may hold several replies. A client that joins their deltas would glue the last word of
 * one to the first word of the next, so the stream puts a blank line between them.
 *
 * Memory   a plain value; zero is a stream that has shown nothing.
 * Threads  none.
 * Source   checks.md K30.
 */
#ifndef WEIR_CONVERSATION_SEAM_H
#define WEIR_CONVERSATION_SEAM_H

#include "wire/event.h"

#define SEAM_TEXT "\n\n"
/* In a stream with more speakers, each counts as one that has spoken before. */
#define SEAM_SPEAKERS_MAX 16

/* Which earlier text counts: that of the same agent, or any. */
enum seam_of { SEAM_OF_SPEAKER, SEAM_OF_STREAM };

struct seam {
    bool reply_over;                      /* the next text begins another reply */
    uint64_t speakers[SEAM_SPEAKERS_MAX]; /* hashes of their names */
    size_t speaker_count;
};

/* seam_before(), where the reply does not just go on. */
bool seam_note(struct seam *seam, const struct event *event, enum seam_of of);

/* Note what the stream shows next. True: it is text, and SEAM_TEXT must come before it, as text
 * of the same agent. */
static inline bool seam_before(struct seam *seam, const struct event *event, enum seam_of of) {
    bool on_in_reply = seam->speaker_count && !seam->reply_over;
    bool is_text = event->kind == EVENT_TEXT; /* most often, and then the reply goes on */
    return !(is_text && on_in_reply) && seam_note(seam, event, of);
}

#endif
