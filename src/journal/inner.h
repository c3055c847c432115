/* inner: the parts of a journal that journal.c and keeper.c share. Private to journal/. */
#ifndef WEIR_JOURNAL_INNER_H
#define WEIR_JOURNAL_INNER_H

#include "journal/chunk.h"
#include "journal/journal.h"

#include <pthread.h>

/* A position between two events. */
struct journal_position {
    struct chunk *chunk;
    size_t offset;
    uint64_t seq; /* of the event before it */
};

struct journal {
    atomic_uint refs;
    struct journal_options options;
    bool in_memory; /* it is not written, or no longer */
    bool ended;     /* a terminal event was appended */

    struct chunk *oldest, *tail; /* oldest holds a reference; each chunk holds its next */
    struct chunk *dropped;       /* by a retract; a reader may still use its head */
    size_t window_bytes;
    uint64_t appended, appended_bytes;
    _Atomic uint64_t visible, durable;

    /* The disk. */
    uint64_t gate;       /* the first event that needs the disk and is not there yet; 0: none */
    uint64_t last_gate;  /* the last such event */
    uint64_t asked_gate; /* the last one gated by journal_gate() */
    uint64_t last_own;   /* the last event that must not be in a shared row */
    struct journal_position kept; /* after what is on disk */
    bool writing;                 /* a write is on its way */
    struct list link;             /* in the keeper's list of urgent or of dirty journals */

    /* Readers on other loops join and leave under the lock; it guards `oldest` too. */
    pthread_mutex_t lock;
    struct list wakers;
    size_t readers;   /* cursors that wait for more */
    uint64_t left_ms; /* when the last one was closed, by its loop's clock */
    struct task publish;

    struct cursor *pacer;
    bool held;
};

/* --- journal.c, for the keeper ------------------------------------------------------------ */

/* Everything up to `position` is on disk. */
void journal_kept(struct journal *journal, struct journal_position position);

/* A write failed. */
void journal_lost(struct journal *journal, const struct err *why);

/* --- keeper.c, for the journal ------------------------------------------------------------ */

/* There is more to write, at once (`urgent`) or at the tick. */
void keeper_note(struct keeper *keeper, struct journal *journal, bool urgent, size_t bytes);

/* Stop writing this journal. */
void keeper_forget(struct keeper *keeper, struct journal *journal);

#endif
