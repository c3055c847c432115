/* stream: one caller's view of one journal.
 *
 * A stream reads a journal with a cursor, hands each event to its wire, which turns it into
 * frames, and ends the way its close mode promises. There is no queue in here. While the
 * transport holds enough bytes the cursor stands still, and the journal waits; for the pacing
 * stream the provider waits, too.
 *
 *     journal ─▶ cursor ─▶ judge ─▶ project ─▶ transport
 *                            │
 *                            └ the last event: the close mode decides the last frame and
 *                              the status ─▶ ended
 *
 * Memory   the stream owns its cursor and a reference to the journal.
 * Threads  belongs to one loop.
 * Source   design.md "Three things that carry the design"; checks.md K16, K19, K20, K24.
 */
#ifndef WEIR_STREAM_STREAM_H
#define WEIR_STREAM_STREAM_H

#include "journal/journal.h"
#include "stream/close.h"

struct stream;

#define STREAM_HIGH_BYTES (8 * KIB) /* waiting in the transport: stop reading */
#define STREAM_LOW_BYTES (4 * KIB)  /* read again */
#define STREAM_STALL_MS 30000
#define STREAM_HEARTBEAT_MS 15000

/* What one event means for the stream. */
enum stream_verdict { STREAM_GOES_ON, STREAM_FINISHES, STREAM_FAILS };

/* done finishes; failed and cancelled fail; all else goes on. */
enum stream_verdict stream_judge(const struct event *event);

/* For a wire: a question to a human finishes as well, because its caller answers with the next
 * request. */
enum stream_verdict stream_judge_question(const struct event *event, void *ctx);

/* How a contract sends. All are called on the stream's loop with the options' ctx. Only `ended`
 * may call back into the stream; the others report trouble with the transport later. */
struct stream_wire {
    /* NULL: stream_judge. A contract may end its stream where the run goes on (a question to a
     * human), but must not continue past the run's end. Not asked about text, which never ends
     * one. */
    enum stream_verdict (*judge)(const struct event *event, void *ctx);
    /* Turn the event into frames on the transport. `frame` says which frame is due: FRAME_DATA
     * for any number of ordinary frames, or none; FRAME_NONE when nothing may be sent yet (mode
     * SINGLE before its end); otherwise exactly this last frame. */
    void (*project)(const struct event *event, enum close_frame frame, void *ctx);
    /* `count` events of text at once, as cursor_texts() lends them, where FRAME_DATA is due.
     * NULL: each goes to `project`. */
    void (*project_texts)(struct str texts, size_t count, void *ctx);
    /* Called around the projection of what nothing follows yet and does not end the stream: what is
     * sent between the two may leave at once, and together. NULL, both: it leaves at the end of the
     * loop turn. */
    void (*gather)(void *ctx);
    void (*leave_now)(void *ctx);
    /* NULL, with the two after it: what is sent never waits. */
    size_t (*queued)(void *ctx);            /* bytes waiting in the transport */
    void (*wake_at)(size_t low, void *ctx); /* call stream_drained() at `low` bytes */
    uint64_t (*stalled_ms)(void *ctx);      /* how long the peer has not been reading */
    void (*heartbeat)(void *ctx); /* send something the reader skips; NULL: no heartbeat */
    /* The last call of all: close the transport with this status. `last` is the event that
     * ended it, or NULL if the cause was outside the journal. May free the stream. */
    void (*ended)(struct close_ending ending, enum close_cause cause, const struct event *last,
                  void *ctx);
};

struct stream_options {
    struct loop *loop;
    struct journal *journal;
    uint64_t after_seq; /* 0: from the first event */
    enum close_mode mode;
    bool paces;        /* its reader started the run and paces it */
    uint64_t stall_ms; /* a peer that reads nothing for so long is cut; 0: STREAM_STALL_MS */
    uint64_t heartbeat_ms; /* silence before a heartbeat; 0: STREAM_HEARTBEAT_MS */
    const struct stream_wire *wire;
    void *ctx;
};

/* Established from the start. No callback before it returns.
 * errors  ERR_OUT_OF_RANGE as cursor_open() */
MUST_CHECK bool stream_open(const struct stream_options *options, struct stream **ret,
                            struct err *e);

/* End it for a reason outside the journal: LEFT, DEADLINE, STALLED or STOPPING. `ended` is
 * called before this returns, unless it already was. */
void stream_end(struct stream *stream, enum close_cause cause);

/* The transport's queue has fallen to the bytes that wake_at asked for. */
void stream_drained(struct stream *stream);

/* After `ended`, or before it: then no callback comes any more. NULL is fine. */
void stream_free(struct stream *stream);

#endif
