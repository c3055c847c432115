/* fact: what replicas tell each other of state that each of them keeps in memory.
 *
 * A fact with a name replaces the earlier one of that name: a reader needs no more.
 *
 * A fact is a few bytes of its teller's, under a number that only grows: transactions that write
 * follow one another (core_replica.h), so a reader that has read up to a number never finds another
 * fact below it. A fact is kept until its time is over, so that a replica that starts learns all
 * that still counts. Which kinds there are is the users' business.
 *
 * Memory   the caller keeps each request until on_done has run.
 * Threads  the caller's loop.
 */
#ifndef WEIR_STORE_FACT_H
#define WEIR_STORE_FACT_H

#include "store/once_reply.h"
#include "store/share.h"
#include "store/task.h"

#define FACT_MAX_BYTES (256 * KIB)
#define FACT_NAME_MAX_BYTES (4 * KIB)

/* Shares. What ends something has no caller, and is bounded by what it ends. */
#define FACT_APP_MAX 2500
#define FACT_APP_MAX_BYTES (4 * MIB)
#define FACT_CALLER_MAX 5000
#define FACT_CALLER_MAX_BYTES (8 * MIB)
#define FACT_ALL_MAX 20000
#define FACT_ALL_MAX_BYTES (32 * MIB)

#define FACT_SWEPT_MAX 64 /* at a time, so that they go faster than they come */

/* Kept in the table: never change a number. */
enum fact_kind { FACT_NIMI = 1 };

/* --- telling ------------------------------------------------------------------------------ */

struct fact_put;
typedef void fact_put_fn(struct fact_put *put, const struct err *failed, void *ctx);

struct fact_put {
    struct store_task task;
    enum fact_kind kind;
    struct str bytes;              /* FACT_MAX_BYTES at most */
    struct str name;               /* FACT_NAME_MAX_BYTES at most; empty: none */
    struct share_owner owner;      /* no caller: it is not refused */
    int64_t until_ms;              /* Unix time */
    int64_t unix_ms;               /* now: some of those that are over are removed */
    const struct kept_reply *made; /* a reply that is kept with it; NULL: none */
    fact_put_fn *on_done;
    void *ctx;
};

/* errors  ERR_RESOURCE_EXHAUSTED a share is full */
void fact_tell(struct store *store, struct loop *home, struct fact_put *put);

/* --- reading ------------------------------------------------------------------------------ */

#define FACT_READ_MAX 256 /* at a time */

struct fact {
    int64_t number;
    struct str bytes;
};

struct fact_list;
typedef void fact_list_fn(struct fact_list *list, const struct err *failed, void *ctx);

/* The caller ends it with fact_list_done() after on_done. */
struct fact_list {
    struct store_task task;
    enum fact_kind kind;
    int64_t after; /* the number of the last one that is known; 0: none */
    fact_list_fn *on_done;
    void *ctx;
    /* The answer, in the order of their numbers. */
    struct arena *arena;
    struct fact all[FACT_READ_MAX];
    size_t count;
    bool more;
};

/* All that were committed before this call are read, or `more` follow. */
void fact_read(struct store *store, struct loop *home, struct fact_list *list);
void fact_list_done(struct fact_list *list);

#endif
