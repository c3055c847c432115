/* stream: one caller's view of one journal.
 *
 * A stream reads a journal with a cursor, hands each event to its wire, which turns it into
 * frames, and ends the way its close mode promises. There is no queue in here: while the
 * transport holds enough bytes the cursor simply stands still, and the journal (and, behind
 * the pacing stream, the provider) waits.
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

#define STREAM_HIGH_BYTES (8 * KIB) /* waiting in the transport: read no further */
#define STREAM_LOW_BYTES (4 * KIB)  /* and go on from here */
#define STREAM_STALL_MS 30000
#define STREAM_HEARTBEAT_MS 15000

/* What one event means for the stream. */
enum stream_verdict { STREAM_GOES_ON, STREAM_FINISHES, STREAM_FAILS };

/* done finishes; failed and cancelled fail; all else goes on. */
enum stream_verdict stream_judge(const struct event *event);

/* How a contract sends. All on the stream's loop; ctx is the options' ctx. What they find wrong
 * with the transport they report later: none may call back into the stream, but for `ended`. */
struct stream_wire {
    /* NULL: stream_judge. A contract may end its stream where the run goes on (a question to
     * a human), never the other way round. */
    enum stream_verdict (*judge)(const struct event *event, void *ctx);
    /* Turn the event into frames on the transport. `frame` says which frame is due: FRAME_DATA
     * for none, one or several ordinary ones; FRAME_NONE when nothing may be sent yet (mode
     * SINGLE before its end); otherwise exactly this last frame. */
    void (*project)(const struct event *event, enum close_frame frame, void *ctx);
    size_t (*queued)(void *ctx);            /* bytes waiting in the transport */
    void (*wake_at)(size_t low, void *ctx); /* then call stream_drained() */
    uint64_t (*stalled_ms)(void *ctx);      /* how long the peer has not been reading */
    void (*heartbeat)(void *ctx);           /* something the reader skips; NULL: no heartbeat */
    /* The last call of all: close the transport with this status. `last` is the event that
     * ended it, or NULL when the cause lies outside the journal. May free the stream. */
    void (*ended)(struct close_ending ending, enum close_cause cause, const struct event *last,
                  void *ctx);
};

struct stream_options {
    struct loop *loop;
    struct journal *journal;
    uint64_t after_seq; /* 0: from the first event */
    enum close_mode mode;
    bool paces;            /* it belongs to the caller who started the run */
    uint64_t stall_ms;     /* a peer that reads nothing is cut after this; 0: STREAM_STALL_MS */
    uint64_t heartbeat_ms; /* of silence before one; 0: STREAM_HEARTBEAT_MS */
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

/* The transport's queue fell to what wake_at asked for. */
void stream_drained(struct stream *stream);

/* After `ended`; also before it, then nothing is called any more. NULL is fine. */
void stream_free(struct stream *stream);

/* seq of the last event that was projected: where a later stream would go on. */
uint64_t stream_seq(const struct stream *stream);

#endif
