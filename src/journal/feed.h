/* feed: bytes that are there whole, handed on in pieces at the pace of their reader.
 *
 * Audio comes from its maker all at once and may be 16 MiB; a reader takes it as fast as its
 * connection does. A feed owns a journal in memory and appends to it what was put in, piece by
 * piece, no further ahead of the reader than agreed.
 *
 *     put ─▶ bytes that wait ─▶ EVENT_AUDIO, 32 KiB each ─▶ journal ─▶ the pacing cursor
 *              ▲                                                │ lags: stand still
 *              └────────────────────────────────────────────────┘
 *
 * Memory   owns what waits, and a reference to the journal.
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
    size_t pace_max_bytes; /* lag of the pacing cursor that stops it */
    size_t put_max_bytes;  /* what may wait */
    /* All that was put is in the journal; at the end of a turn, never inside a call to this
     * header. */
    void (*on_empty)(void *ctx);
    void *ctx;
};

struct feed *feed_new(const struct feed_options *options);
void feed_free(struct feed *feed); /* what waits is dropped; NULL is fine */

struct journal *feed_journal(const struct feed *feed);

/* Copy `bytes`; their events say `type`.
 * errors  ERR_TOO_LARGE more would wait than may */
MUST_CHECK bool feed_put(struct feed *feed, struct str type, struct str bytes, struct err *e);
bool feed_is_empty(const struct feed *feed);

/* Append `event` behind what is in the journal already. A terminal one drops what waits. */
void feed_append(struct feed *feed, const struct event *event);

#endif
