/* stream_outcome: what the end of a stream means for the client that read it.
 *
 * A client knows how the stream's method closes, what the last business frame was, which status
 * came, and whether it cancelled the call itself. One table turns that into one outcome, and
 * into advice: whether the request may be sent again, what to wait for before that, and whether
 * a snapshot must be fetched first. The first row that fits counts; no input is without a row.
 *
 *     mode          completed by      OK without it      CANCELLED, not ours
 *     DONE          done              truncated          preempted
 *     TERMINAL      terminal event    truncated          preempted
 *     EOF           eof               incomplete         incomplete
 *     SUBSCRIPTION  -                 disconnected       disconnected
 *
 * No row calls a stream completed whose completing frame did not arrive. A frame that did arrive
 * keeps its verdict, whatever status follows it.
 *
 * A status counts only if the server sent it. Trailers that never came (a reset, a lost
 * connection) are UNAVAILABLE here: stream_outcome_status().
 *
 * Memory   plain values.
 * Threads  none.
 * Source   contracts/nimi.md 7.1, 7.2; checks.md group C.
 */
#ifndef WEIR_READER_STREAM_OUTCOME_H
#define WEIR_READER_STREAM_OUTCOME_H

#include "stream/close.h"

enum stream_outcome {
    STREAM_COMPLETED,
    STREAM_FAILED,         /* the stream says that the work failed, with a reason */
    STREAM_WORK_CANCELLED, /* the stream says that the work was cancelled */
    STREAM_REFUSED,        /* before anything was executed */
    STREAM_UNKNOWN,        /* no frame and no reason: it may have been executed or not */
    STREAM_TRUNCATED,      /* the server said OK, and the completing frame is missing */
    STREAM_PREEMPTED,      /* the server cancelled it: it stops, or we read too slowly */
    STREAM_SLOW_CONSUMER,  /* we read too slowly */
    STREAM_TIMED_OUT,
    STREAM_BROKEN,       /* the transport broke, or the server failed */
    STREAM_INCOMPLETE,   /* an export without its end, or with a gap: it must not be used */
    STREAM_DISCONNECTED, /* the server closed a subscription */
    STREAM_CANCELLED,    /* by the caller */
    STREAM_OUTCOME_COUNT,
};

/* The last business frame of the stream. */
enum stream_outcome_last {
    LAST_NOTHING, /* no frame was received */
    LAST_DATA,
    LAST_DONE,      /* done without a reason; a terminal event of success; eof */
    LAST_FAILED,    /* done with a reason; a terminal event of failure */
    LAST_CANCELLED, /* a terminal event: the work was cancelled */
    LAST_INVALID,   /* eof after a gap */
    LAST_COUNT,
};

/* Whether the same request may be sent again. */
enum stream_outcome_repeat {
    REPEAT_NO,      /* there is nothing to repeat, or it would be refused again */
    REPEAT_YES,     /* nothing can happen twice */
    REPEAT_UNKNOWN, /* it may have been executed: the caller decides */
    REPEAT_COUNT,
};

/* What to do before that. */
enum stream_outcome_wait {
    WAIT_NONE,
    WAIT_BACKOFF, /* stream_outcome_backoff_ms() */
    WAIT_READY,   /* until the server is ready again; ask its health, with that back-off */
    WAIT_COUNT,
};

struct stream_outcome_close {
    enum close_mode mode; /* not CLOSE_SINGLE */
    enum stream_outcome_last last;
    enum err_code status; /* of stream_outcome_status(); ERR_NONE: OK, or not closed yet */
    bool by_us;           /* we cancelled the call */
    bool reasoned;        /* the status names a reason */
    bool never_seen;      /* the server has provably done nothing */
    bool can_help;        /* the reason, else the status, says that a later try can succeed */
};

struct stream_outcome_advice {
    enum stream_outcome outcome;
    enum stream_outcome_repeat repeat;
    enum stream_outcome_wait wait;
    bool snapshot; /* fetch the state first: events were missed */
};

struct stream_outcome_advice stream_outcome_decide(const struct stream_outcome_close *close);

/* The status that counts in stream_outcome_decide(). from_server: it stood in trailers, or in a head
 * without a body. */
enum err_code stream_outcome_status(enum err_code code, bool from_server);

/* How long to wait before try number `attempt`, 1 for the first repetition: 200 ms, doubled
 * each time, 3 s at most. `random` is any number; it shortens the time by less than half, so
 * that clients that were cut off together do not come back together. */
#define STREAM_OUTCOME_BACKOFF_FIRST_MS 200
#define STREAM_OUTCOME_BACKOFF_MAX_MS 3000
uint64_t stream_outcome_backoff_ms(unsigned attempt, uint64_t random);

/* "completed", "slow_consumer"; the names are part of the public interface. */
struct str stream_outcome_name(enum stream_outcome outcome);
struct str stream_outcome_repeat_name(enum stream_outcome_repeat repeat);
struct str stream_outcome_wait_name(enum stream_outcome_wait wait);

/* One sentence for a person, without a full stop. */
struct str stream_outcome_meaning(enum stream_outcome outcome);

#endif
