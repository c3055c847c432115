/* posted: a human's answer on its way to the replica that has the run.
 *
 * An answer may reach any replica. One that does not have the run posts the answer, as a row of
 * the table `posted`; the replica that has the run hears of it, and gives it to the run:
 *
 *     post ─▶ row ─▶ read by the one that has the run ─▶ given (its number) ─▶ removed by the
 *                          │                                      │            sender, who sees
 *                          └─▶ refused (why) ─────────────────────┼──────────▶ the decision in
 *                                                                 │            the log
 *                     the run's next replica gives it again ◀── it dies
 *
 * An approval takes one answer, and a decision in the log is final; so an answer that is given a
 * second time finds that nobody waits.
 *
 * Memory   as each call says.
 * Threads  the caller's loop.
 */
#ifndef WEIR_STORE_POSTED_H
#define WEIR_STORE_POSTED_H

#include "store/task.h"

#define POSTED_WHY_BYTES 512

/* An answer to the approval `seq` of `run`. The caller's idempotency key, or empty, is as struct
 * pending_answer has it. */
struct posted_words {
    uint64_t run, seq;
    struct str text, key, key_user, print;
};

/* --- the sender --------------------------------------------------------------------------- */

struct posting;
typedef void posting_fn(struct posting *posting, const struct err *failed, void *ctx);

/* The caller keeps it and its texts until on_done has run. */
struct posting {
    struct store_task task;
    struct posted_words words;
    int64_t sender, number; /* its row; the number is the sender's own */
    posting_fn *on_done;
    void *ctx;
    /* The answer of posting_look(). */
    bool refused;
    char why[POSTED_WHY_BYTES];
};

void posting_send(struct store *store, struct loop *home, struct posting *posting);
void posting_look(struct store *store, struct loop *home, struct posting *posting);

/* Remove the row, wherever it stands. Frees itself. */
void posting_remove(struct store *store, struct loop *home, int64_t number);

/* --- the one that has the run ------------------------------------------------------------- */

struct posted {
    int64_t sender, number;
    struct posted_words words;
};

#define POSTED_MAX 64 /* read at a time */

struct posted_list;
typedef void posted_fn(struct posted_list *list, const struct err *failed, void *ctx);

/* The caller keeps it until on_done has run, then ends it with posted_list_done(). */
struct posted_list {
    struct store_task task;
    int64_t replica;
    posted_fn *on_done;
    void *ctx;
    /* The answer. */
    struct arena *arena; /* of the texts */
    struct posted all[POSTED_MAX];
    size_t count;
};

/* Those for runs of this replica that it has neither given nor refused, the oldest first. */
void posted_read(struct store *store, struct loop *home, struct posted_list *list);
void posted_list_done(struct posted_list *list);

/* Note that it was given to its run, or why not. Frees itself. */
void posted_note(struct store *store, struct loop *home, const struct posted *posted,
                 const char *refused);

#endif
