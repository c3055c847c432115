/* reader: a thread with a connection of its own, for questions that take long.
 *
 *     reader_ask() ─▶ queue ─▶ step ─▶ answered, as mail
 *                       ▲        └─▶ more: the end of the queue
 *
 * A question is answered in steps of READER_STEP_MS or so, and those of several take turns. A
 * step leaves no statement open, so that the write-ahead log never has an old reader. While the
 * store's thread needs the file for itself (it folds the log, or opens the store again) it
 * pauses the reader, which takes as long as a step.
 *
 * A step sees every commit that was acknowledged before it began. Two steps of a question may see
 * different moments.
 *
 * Memory   the thread and its connection are there while there are questions.
 * Threads  reader_ask(): any. The others: the store's. Steps: the reader's.
 */
#ifndef WEIR_STORE_READER_H
#define WEIR_STORE_READER_H

#include "loop/loop.h"
#include "store/database.h"

#define READER_STEP_MS 10

struct reader;
struct reader_task;
typedef void reader_done_fn(const struct err *failed, void *ctx);

/* The caller keeps the task until on_done has run on `home`. */
struct reader_task {
    struct reader_task *next; /* the reader's */
    struct mail mail;         /* the reader's */
    struct err failed;        /* the reader's */
    /* Go on for READER_STEP_MS. *ret_more: there is more to do.
     * False: the question failed with `e`. */
    bool (*step)(struct database *db, void *ctx, bool *ret_more, struct err *e);
    struct loop *home;
    reader_done_fn *on_done; /* failed is NULL on success */
    void *ctx;
};

/* Of the database in this file (copied). It is closed. */
struct reader *reader_new(struct str path);

/* Answer what is left with ERR_UNAVAILABLE, and end the thread. NULL is fine. */
void reader_free(struct reader *reader);

void reader_ask(struct reader *reader, struct reader_task *task);

enum reader_pause {
    READER_LOOKS_AWAY, /* it reads nothing */
    READER_CLOSED,     /* and has no connection: how it begins */
    READER_PAUSES,
};

/* Wait until the step that runs is over. Questions wait until there was a reader_resume() for
 * each kind of pause. NULL is fine. */
void reader_pause(struct reader *reader, enum reader_pause how);
void reader_resume(struct reader *reader, enum reader_pause how);

/* The file cannot be read: answer all questions with `why`, those to come too, until
 * it is not closed any more. */
void reader_refuse(struct reader *reader, const struct err *why);

struct store;

/* Whether the store is on a server. It has no reader: long questions are tasks there. */
bool store_is_server(const struct store *store);

/* The same as reader_ask(), of the reader of a store in a file. Any loop. */
void store_ask(struct store *store, struct reader_task *task);

#endif
