/* feed: bytes that arrive all at once, passed on in pieces at their reader's pace.
 *
 * Audio comes from its provider all at once and may be 16 MiB; a reader takes it as fast as its
 * connection allows. A feed owns a journal in memory and appends the bytes to it piece by
 * piece, never further ahead of the reader than pace_max_bytes.
 *
 *     put ─▶ bytes that wait ─▶ EVENT_AUDIO, 32 KiB each ─▶ journal ─▶ the pacing cursor
 *              ▲                                                │ lags: stand still
 *              └────────────────────────────────────────────────┘
 *
 * Memory   owns the waiting bytes, and a reference to the journal.
 * Threads  belongs to one loop.
 * Source   checks.md K24 and B1; contracts/nimi.md 6.1 "whole audio synthesized first, then cut
 *          in 32 KiB pieces".
 */
#ifndef WEIR_JOURNAL_FEED_H
#define WEIR_JOURNAL_FEED_H

#include "journal/journal.h"

#define FEED_PIECE_BYTES (32 * KIB)

struct feed;

struct feed_options {
    struct loop *loop;
    size_t pace_max_bytes; /* the lag of the pacing cursor at which it stops */
    size_t put_max_bytes;  /* how much may wait */
    /* Everything put in is in the journal. Called at the end of a loop turn, never from inside
     * a call to this header. */
    void (*on_empty)(void *ctx);
    void *ctx;
};

struct feed *feed_new(const struct feed_options *options);
void feed_free(struct feed *feed); /* waiting bytes are dropped; NULL is fine */

struct journal *feed_journal(const struct feed *feed);

/* Copy `bytes`; their events carry `type`.
 * errors  ERR_TOO_LARGE more than put_max_bytes would wait */
MUST_CHECK bool feed_put(struct feed *feed, struct str type, struct str bytes, struct err *e);
bool feed_is_empty(const struct feed *feed);

/* Append `event` after what is in the journal already. A terminal event drops the waiting
 * bytes. */
void feed_append(struct feed *feed, const struct event *event);

#endif
