/* posted: a human's answer on its way to the replica that has the run.
 *
 * An answer may reach any replica. One that does not have the run posts the answer, as a row of
 * the table `posted`; the replica that has the run hears of it, takes it, and gives it to the run:
 *
 *             ┌──────────── released: its run cannot be answered now, or its taker died
 *             ▼           │
 *     post ─▶ open ─▶ taken ─▶ the log goes on: decided ─▶ removed by the sender
 *             │  │        └──▶ refused (why) ────────────▶ removed by the sender
 *             │  └───────────▶ refused (why)
 *             └─▶ withdrawn by the sender: the row is gone
 *
 * Taking and withdrawing compete for the row, and exactly one of them wins. So an answer that was
 * withdrawn is never given, and one that was taken is reported by what the log says. Each step is
 * one statement with the state before it in its condition.
 *
 * Memory   as each call says.
 * Threads  the caller's loop.
 */
#ifndef WEIR_STORE_POSTED_H
#define WEIR_STORE_POSTED_H

#include "store/task.h"

#define POSTED_WHY_BYTES 512

/* An answer to the approval `seq` of `run`. The caller's idempotency key, or empty, is as struct
 * pending_answer has it. With a print, which tells the request from others, words that decide nothing
 * are kept for the model; a request without a key has one of its own for that. */
struct posted_words {
    uint64_t run, seq;
    struct str text, key, key_user, print;
};

/* Why an answer was refused. Kept in the table: never change a number. */
enum posted_refusal {
    POSTED_ACCEPTED = 0,
    POSTED_MISFIT = 1,    /* it does not fit the question */
    POSTED_KEY_TAKEN = 2, /* another request has its idempotency key */
    POSTED_UNDECIDED = 3, /* it decides nothing */
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
    enum posted_refusal refused;
    char why[POSTED_WHY_BYTES];
    /* The answer of posting_withdraw(). */
    bool withdrawn;
};

void posting_send(struct store *store, struct loop *home, struct posting *posting);
void posting_look(struct store *store, struct loop *home, struct posting *posting);

/* Take it back, unless it was taken or refused: look then. A row that was never written counts as
 * withdrawn. */
void posting_withdraw(struct store *store, struct loop *home, struct posting *posting);

/* Remove the row, wherever it stands. Frees itself. */
void posting_remove(struct store *store, struct loop *home, int64_t number);

/* --- the one that has the run ------------------------------------------------------------- */

struct posted_id {
    int64_t sender, number;
};

struct posted {
    struct posted_id id;
    struct posted_words words;
};

#define POSTED_MAX 64 /* read at a time */

struct posted_list;
typedef void posted_fn(struct posted_list *list, const struct err *failed, void *ctx);

/* The caller keeps it until on_done has run, then ends it with posted_list_done(). */
struct posted_list {
    struct store_task task;
    struct posted_id after; /* only those that follow this one; zero: all */
    posted_fn *on_done;
    void *ctx;
    /* The answer. */
    struct arena *arena; /* of the texts */
    struct posted all[POSTED_MAX];
    size_t count;
    bool more; /* others may follow the last one */
};

/* Those for runs of this replica that are open, or that it has taken itself, in the order of
 * their ids. */
void posted_read(struct store *store, struct loop *home, struct posted_list *list);
void posted_list_done(struct posted_list *list);

struct posted_take;
typedef void posted_take_fn(struct posted_take *take, const struct err *failed, void *ctx);

/* The caller keeps it until on_done has run. */
struct posted_take {
    struct store_task task;
    struct posted_id id;
    posted_take_fn *on_done;
    void *ctx;
    bool taken; /* the answer: it is this replica's to give; harmless if it was before */
};

void posted_take(struct store *store, struct loop *home, struct posted_take *take);

/* What this replica has taken cannot be given now: it is open again. Frees itself. */
void posted_release(struct store *store, struct loop *home, struct posted_id id);

/* It will never be given: say why, unless another replica has taken it. Frees itself. */
void posted_refuse(struct store *store, struct loop *home, struct posted_id id,
                   enum posted_refusal refusal, const char *why);

#endif
