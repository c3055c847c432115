/* journal: what happened in one run, in order.
 *
 * The owner appends events on its loop; readers on any loop follow with cursors and see the
 * same bytes. Three marks order everything:
 *
 *     appended ≥ visible     what the owner wrote; what readers may see
 *     durable                what is on disk
 *
 * An event that needs the disk (a tool call, an approval, the terminal one) is hidden, with all
 * that follows, until it is durable. All other events become visible at the end of the loop
 * turn that appended them and are written with the next commit. So a crash may lose the last
 * moments of text, but never an effect.
 *
 *     oldest chunk ─▶ chunk ─▶ chunk (appending)        chunk = immutable bytes + refs
 *        ▲              ▲
 *     window         cursor holds the chunk it reads; a chunk dies when both have left it
 *
 * Memory   the journal and its chunks are reference-counted; events lent by a cursor live until
 *          the cursor moves.
 * Threads  append and the options' callbacks: the owner's loop. A cursor belongs to the loop
 *          it was opened on; opening and closing are safe from any loop.
 * Source   design.md "The journal".
 */
#ifndef WEIR_JOURNAL_JOURNAL_H
#define WEIR_JOURNAL_JOURNAL_H

#include "loop/loop.h"
#include "wire/event.h"

struct journal;
struct keeper;
struct cursor;

struct journal_options {
    struct loop *loop;
    struct keeper *keeper;   /* writes it to the store; NULL: kept in memory only */
    uint64_t run;            /* its id in the store */
    uint64_t after_seq;      /* its first event is the one after this; 0: it begins the run */
    size_t window_max_bytes; /* kept for late readers; more only while readers hold it */
    size_t pace_max_bytes;   /* the lag of the pacing cursor at which the source stops */
    /* All are called on `loop`, never from inside a call to this header. Each may be NULL. */
    void (*on_durable)(uint64_t seq, void *ctx); /* everything up to seq is on disk */
    /* An event that needed the disk could not be written. No reader has seen what is still
     * hidden: journal_retract() it and append what is true instead. */
    void (*on_lost)(const struct err *why, void *ctx);
    void (*on_pace)(bool hold, void *ctx); /* stop the source, or let it continue */
    void *ctx;
};

/* One reference is the caller's. */
struct journal *journal_new(const struct journal_options *options);
struct journal *journal_ref(struct journal *journal);
void journal_unref(struct journal *journal); /* NULL is fine */

/* Whether there are references besides the owner's. Any thread. */
bool journal_is_shared(const struct journal *journal);

/* The owner leaves: no further callbacks. What waits is still written. */
void journal_leave(struct journal *journal);

/* Append a copy; returns its seq. Nothing may follow a terminal event. */
uint64_t journal_append(struct journal *journal, const struct event *event);

/* Append texts, at least one, each as an event of its own; *texts is used up. Returns the seq of
 * the first. */
uint64_t journal_append_texts(struct journal *journal, struct event_texts *texts);

/* Write what was appended at the end of this loop turn and not at the next tick: the owner
 * waits for on_durable. */
void journal_hurry(struct journal *journal);

/* Hide the event appended last, in this loop turn, and all that follow until it is on disk, as
 * if its kind needed the disk. */
void journal_gate(struct journal *journal);

/* Drop what no reader has seen and stop waiting for the disk. What follows is visible at once
 * and not written. Returns the newest seq that is left. */
uint64_t journal_retract(struct journal *journal);

/* The marks. appended: owner only; the others from any thread. */
uint64_t journal_appended(const struct journal *journal);
uint64_t journal_visible(const struct journal *journal);
uint64_t journal_durable(const struct journal *journal);
uint64_t journal_run(const struct journal *journal);

/* --- cursors ------------------------------------------------------------------------------ */

/* There is more to read: call cursor_next() until it returns false. Called at the end of a loop
 * turn on the cursor's loop, at most once a turn, never from inside a call to this header. */
typedef void cursor_ready_fn(void *ctx);

/* Read what comes after `after_seq` (0: from the first event). The first on_ready comes
 * unasked if anything is visible. Without on_ready the cursor only looks at what is there now,
 * and does not count as a reader.
 * errors  ERR_OUT_OF_RANGE events that old are only in the store */
MUST_CHECK bool cursor_open(struct journal *journal, uint64_t after_seq, struct loop *loop,
                            cursor_ready_fn *on_ready, void *ctx, struct cursor **ret,
                            struct err *e);
void cursor_close(struct cursor *cursor); /* no on_ready afterwards; NULL is fine */

/* The next visible event, or false when there is none now. */
bool cursor_next(struct cursor *cursor, struct event *ret);

/* Most events are text and come many at once. Read the next ones as one stretch of encoded events,
 * at most about `max_bytes` but at least one event; event_take_text() decodes them. They are
 * lent until the cursor moves. *ret_count: how many; 0 when the next event is of another kind,
 * or there is none. */
struct str cursor_texts(struct cursor *cursor, size_t max_bytes, size_t *ret_count);

/* Whether every visible event has been read. */
bool cursor_is_at_end(const struct cursor *cursor);

/* The seq of the last event read. */
uint64_t cursor_seq(const struct cursor *cursor);

/* How many cursors wait for more events. Any thread. *ret_left_ms: when the last one was
 * closed, by its loop's clock; 0: none ever was. */
size_t journal_readers(struct journal *journal, uint64_t *ret_left_ms);

/* This cursor paces the source: on_pace(true) is called at pace_max_bytes of unread events, and
 * on_pace(false) at half of that. Owner's loop only; one per journal. Closing the cursor lets
 * the source run. */
void cursor_pace(struct cursor *cursor);

#endif
