/* close: how a stream ends.
 *
 * Every stream, whatever its wire, is opening → established → closing → closed. Before it is
 * established a failure is a protocol error. Afterwards it ends the way its mode promises.
 * Handlers never close a stream by hand: they name a cause, and one table gives the last frame
 * that is due and the status that the transport closes with.
 *
 *     mode           finished            failed              pre-empted (peer, deadline, …)
 *     SINGLE         reply, OK           status              status
 *     DONE           done frame, OK      done frame, OK      status, no done frame
 *     TERMINAL       terminal event, OK  terminal event, OK  status, no terminal event
 *     EOF            eof chunk, OK       status              status, no eof chunk
 *     SUBSCRIPTION   -                   status              status (CANCELLED when stopping)
 *
 * An illegal move is a bug and fails an assert.
 *
 * Memory   plain values.
 * Threads  none.
 * Source   design.md "Calls and streams"; checks.md K2 to K4, K9, K20 and group C.
 */
#ifndef WEIR_STREAM_CLOSE_H
#define WEIR_STREAM_CLOSE_H

#include "base/err.h"
#include "base/states.h"

enum close_mode {
    CLOSE_SINGLE,       /* one reply, then OK */
    CLOSE_DONE,         /* the last message says done, also when the work failed (A) */
    CLOSE_TERMINAL,     /* a final state event, then OK (B) */
    CLOSE_EOF,          /* the last chunk says eof, then OK (C) */
    CLOSE_SUBSCRIPTION, /* never by itself: CANCELLED when the daemon stops (D) */
    CLOSE_MODE_COUNT,
};

enum close_state {
    CLOSE_OPENING,     /* nothing was sent yet: a failure is a protocol error */
    CLOSE_ESTABLISHED, /* frames flow */
    CLOSE_CLOSING,     /* the ending is decided; the last frame, if any, is still due */
    CLOSE_CLOSED,      /* nothing follows */
    CLOSE_STATE_COUNT,
};

enum close_cause {
    CAUSE_FINISHED, /* the work finished */
    CAUSE_FAILED,   /* the work failed */
    CAUSE_LEFT,     /* the peer reset or disconnected: nothing more can be sent */
    CAUSE_DEADLINE, /* the client's own deadline passed */
    CAUSE_STALLED,  /* the peer has not read for too long */
    CAUSE_STOPPING, /* the daemon is stopping and waits no longer */
    CAUSE_COUNT,
};

enum close_frame {
    FRAME_NONE,
    FRAME_DATA,     /* any frame but a last one */
    FRAME_REPLY,    /* the one reply of SINGLE */
    FRAME_DONE,     /* done = true */
    FRAME_TERMINAL, /* terminal state event */
    FRAME_EOF,      /* eof = true */
    FRAME_COUNT,
};

/* What the wire does to close: send the frame, then the status (ERR_NONE is OK). */
struct close_ending {
    enum close_frame last;
    enum err_code status;
};

struct close {
    enum close_mode mode;
    enum close_state state;
    struct close_ending ending; /* valid from CLOSE_CLOSING on */
};

void close_init(struct close *close, enum close_mode mode);

/* opening → established. */
void close_establish(struct close *close);

/* Call before sending a frame; asserts that it is legal now: FRAME_DATA while established; the
 * ending's last frame, once, while closing. */
void close_frame(struct close *close, enum close_frame frame);

/* Decide the ending. `code` is the failure's own code, used where the mode answers with a
 * status. While opening, any cause but FINISHED gives a status; FINISHED needs an established
 * stream. Only the first decision counts. A later one changes nothing and returns the first,
 * except that CAUSE_LEFT cancels a last frame that is still due. */
struct close_ending close_decide(struct close *close, enum close_cause cause,
                                 enum err_code code);

/* closing → closed: the last frame (if due) was sent and the transport has its status. */
void close_end(struct close *close);

/* Whether the cause is the peer no longer listening. */
bool close_is_by_peer(enum close_cause cause);

struct str close_mode_name(enum close_mode mode);

extern const struct state close_states[CLOSE_STATE_COUNT];

#endif
