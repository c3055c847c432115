/* pages: the wire bytes of runs, encoded once for all their readers.
 *
 * A page holds the encoded events of a stretch of one run, in one wire format. The first reader
 * of an event puts it; all other readers, on any loop, copy the same bytes. Pages of a run
 * never overlap, and gaps between them are normal: a reader that finds a gap reads the events
 * from the journal or from the store and puts them.
 *
 *     run 77:   [1 ... 104]   gap   [310 ... 420][421 ... 533 ▶ live]
 *                                                    ▲
 *                                   place: seq of the last whole event, bytes of the next one
 *
 * A reader holds no page, only a place, so any page may be dropped at any time. The least
 * recently read ones go when the cache exceeds its limit, whichever stripe they are in.
 *
 * Memory   owns the pages: max_bytes, and for each thread that puts one page beyond that.
 * Threads  any; striped locks inside.
 * Source   the lesson "encode once" of systems with many readers of one stream.
 */
#ifndef WEIR_STREAM_PAGES_H
#define WEIR_STREAM_PAGES_H

#include "base/buf.h"
#include "base/err.h"

#define PAGE_BYTES (32 * KIB) /* a longer event has a page of its own */

struct pages;
struct pages_run;

struct pages *pages_new(size_t max_bytes);
void pages_free(struct pages *pages); /* every run must have been closed; NULL is fine */

/* The pages of one run, open until pages_close(). They may outlive it in the cache. */
struct pages_run *pages_open(struct pages *pages, uint64_t run);
void pages_close(struct pages_run *run); /* NULL is fine */

/* What the last event of a run means. */
enum pages_end { PAGES_GOES_ON, PAGES_FINISHED, PAGES_FAILED };

/* One encoded event. Empty `bytes` stand for an event that is not sent. */
struct pages_event {
    uint64_t seq;
    struct str bytes;
    enum pages_end end;
    enum err_code code; /* why it failed */
};

/* Counts what was dropped by pages_drop_all(). Read it before the events are read from the store,
 * and pass it to pages_put(). */
uint64_t pages_generation(const struct pages *pages);

/* Whether the event is there now. */
bool pages_has(struct pages_run *run, uint64_t seq);

/* Copy the event, unless it is there already. False when `generation` is over: the event may no
 * longer exist. */
bool pages_put(struct pages_run *run, uint64_t generation, const struct pages_event *event);

/* Where a reader stands: `seq` was passed on whole, and `skip` bytes of the event after it. */
struct pages_place {
    uint64_t seq;
    size_t skip;
};

/* Copy at most `max_bytes` of what follows `place` to `out`, and move `place` past them. False when
 * the next event is not there. *ret_end and *ret_code are set once the last event was copied to
 * its end. */
bool pages_read(struct pages_run *run, struct pages_place *place, size_t max_bytes,
                struct buf *out, enum pages_end *ret_end, enum err_code *ret_code);

/* Drop all pages: a session was erased. Call it after the store has erased it. */
void pages_drop_all(struct pages *pages);

/* Drop pages, least recently read first, until at most `bytes` are held. */
void pages_shrink(struct pages *pages, size_t bytes);

/* Bytes held now, and the limit. Putting more than a part of the limit at once drops the events
 * that were put first. */
size_t pages_held(const struct pages *pages);
size_t pages_max(const struct pages *pages);

#endif
