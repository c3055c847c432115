/* long_reply: the text of a reply while it is only in the store.
 *
 * A run holds the text of the reply that streams, because the event that ends the reply repeats
 * it. While the caller reads slowly the provider is paused, and the text would stay in memory
 * for as long as the caller likes. So the run drops what is on disk by then, and whatever its
 * caller does while memory is scarce. It reads it back from its own events when the reply ends,
 * or when the turn is ended early.
 *
 *     held ─▶ stored ─▶ waiting ─▶ reading ─▶ held     stored: later text stays in memory, until
 *                                                      it is dropped as well
 *
 * A loop reads the replies of a few runs at a time; the others wait in line. So a thousand
 * callers who leave at once do not bring a thousand replies into memory.
 *
 * Memory   a plain value inside its run. While the reply is read back it holds the run, and a
 *          flush of the keeper waits for it.
 * Threads  the loop of its run.
 * Source   docs/internals/streams.md "A reply whose caller is slow".
 */
#ifndef WEIR_TURN_LONG_REPLY_H
#define WEIR_TURN_LONG_REPLY_H

#include "base/states.h"
#include "base/str.h"
#include "wire/event.h"

#define LONG_REPLY_BYTES (8 * KIB) /* a shorter text stays in memory */
#define LONG_REPLY_READS_MAX 8     /* of one loop at a time */

struct run;
struct reply_read;

enum long_reply_state {
    LONG_REPLY_HELD,    /* all of the text is in memory */
    LONG_REPLY_STORED,  /* the beginning is in the store alone */
    LONG_REPLY_WAITING, /* to be read back */
    LONG_REPLY_READING,
    LONG_REPLY_STATE_COUNT,
};

struct long_reply {
    enum long_reply_state state;
    uint64_t first_seq;      /* of the events with the reply's text */
    uint64_t last_seq;       /* of those whose text was dropped */
    size_t stored_bytes;     /* of that text */
    struct reply_read *read; /* while it is read back */
};

extern const struct state long_reply_states[LONG_REPLY_STATE_COUNT];

/* Everything up to `seq` is on disk: drop the reply's text if the caller lags or memory is
 * scarce. */
void run_drop_reply(struct run *run, uint64_t seq);

/* The reply is over. True: all of its text is in memory. False: it is read back, and
 * run_end_reply() is called when it is, unless the turn is ended first. */
bool run_bring_reply(struct run *run);

/* The turn ends with `event` (copied), which repeats the reply's text. True: it is appended when
 * the text is back in memory. False: the text is there. */
bool run_end_later(struct run *run, const struct event *event);

#endif
