/* long_reader: a thread with a connection of its own, for questions that take long.
 *
 *     long_reader_ask() ─▶ queue ─▶ step ─▶ answered, as mail
 *                       ▲        └─▶ more: the end of the queue
 *
 * A question is answered in steps of LONG_READER_STEP_MS or so, and those of several take turns. A
 * step leaves no statement open, so that the write-ahead log never has an old reader. While the
 * store's thread needs the file for itself (it folds the log, or opens the store again) it
 * pauses the reader, which takes as long as a step.
 *
 * A step sees every commit that was acknowledged before it began. Two steps of a question may see
 * different moments.
 *
 * Memory   the thread and its connection are there while there are questions.
 * Threads  long_reader_ask(): any. The others: the store's. Steps: the reader's.
 */
#ifndef WEIR_STORE_LONG_READER_H
#define WEIR_STORE_LONG_READER_H

#include "loop/loop.h"
#include "store/database.h"

#define LONG_READER_STEP_MS 10

struct long_reader;
struct long_reader_task;
typedef void long_reader_done_fn(const struct err *failed, void *ctx);

/* The caller keeps the task until on_done has run on `home`. */
struct long_reader_task {
    struct long_reader_task *next; /* the reader's */
    struct mail mail;              /* the reader's */
    struct err failed;             /* the reader's */
    /* Go on for LONG_READER_STEP_MS. *ret_more: there is more to do.
     * False: the question failed with `e`. */
    bool (*step)(struct database *db, void *ctx, bool *ret_more, struct err *e);
    struct loop *home;
    long_reader_done_fn *on_done; /* failed is NULL on success */
    void *ctx;
};

/* Of the database in this file (copied). It is closed. */
struct long_reader *long_reader_new(struct str path);

/* Answer what is left with ERR_UNAVAILABLE, and end the thread. NULL is fine. */
void long_reader_free(struct long_reader *reader);

void long_reader_ask(struct long_reader *reader, struct long_reader_task *task);

enum long_reader_pause {
    LONG_READER_LOOKS_AWAY, /* it reads nothing */
    LONG_READER_CLOSED,     /* and has no connection: how it begins */
    LONG_READER_PAUSES,
};

/* Wait until the step that runs is over. Questions wait until there was a long_reader_resume() for
 * each kind of pause. NULL is fine. */
void long_reader_pause(struct long_reader *reader, enum long_reader_pause how);
void long_reader_resume(struct long_reader *reader, enum long_reader_pause how);

/* The file cannot be read: answer all questions with `why`, those to come too, until
 * it is not closed any more. */
void long_reader_refuse(struct long_reader *reader, const struct err *why);

struct store;

/* Whether the store is on a server. It has no reader: long questions are tasks there. */
bool store_is_server(const struct store *store);

/* The same as long_reader_ask(), of the reader of a store in a file. Any loop. */
void store_ask(struct store *store, struct long_reader_task *task);

#endif
