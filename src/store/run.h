/* run: the table of runs, one entry each, with the places of a run's events in the log.
 *
 * `places` lists the rows that hold a section of the run, each as a varint
 *
 *     (row id - id of the place before) << 1 | shared
 *
 * in which shared means that the row has nothing of the run but streamed text. The list
 * stops at RUN_PLACES_MAX_BYTES. The other rows of a longer run are somewhere between its
 * last place and last_log, and are searched one by one.
 *
 * Memory   run_entry_done() ends an entry; its workspace and contract are borrowed: see
 *          run_find().
 * Threads  the store's.
 */
#ifndef WEIR_STORE_RUN_H
#define WEIR_STORE_RUN_H

#include "store/database.h"

#include "base/buf.h"

#define RUN_PLACES_MAX_BYTES (4 * KIB)
#define RUN_FEW_PLACES_BYTES 16

struct run_entry {
    uint64_t id;
    int64_t session;   /* 0: none */
    uint64_t previous; /* the run before it in its session, or 0 */
    uint64_t parent;
    int64_t state;                /* 0 while it runs, then the kind of its terminal event */
    int64_t started_ms, ended_ms; /* Unix time, or 0 */
    int64_t first_log, last_log;
    uint64_t last_seq;
    struct str workspace, contract;
    /* Read by run_entry_places_bytes(). Those of a short run need no block of their own: while
     * they fit they are in `few`, and `places` is empty. */
    struct buf places;
    char few[RUN_FEW_PLACES_BYTES];
    size_t few_len;
};

void run_entry_init(struct run_entry *entry, uint64_t id);
void run_entry_done(struct run_entry *entry);

/* Add a row that has a section of the run. It must not be older than the rows added before. */
void run_entry_add_place(struct run_entry *entry, int64_t row, bool shared);

/* The list as it is stored; valid until the entry changes. */
static inline struct str run_entry_places_bytes(const struct run_entry *entry) {
    return entry->few_len ? str_of(entry->few, entry->few_len) : buf_str(&entry->places);
}

/* Walk the places: start with *cursor = run_entry_places(). run_places_next() is false at the
 * end. */
struct run_places {
    struct str rest;
    int64_t row;
    bool shared;
};
struct run_places run_entry_places(const struct run_entry *entry);
bool run_places_next(struct run_places *cursor);

/* A session's runs from its newest one backwards: each began in an earlier row of the log than
 * the one after it, or in the same row, which holds RUN_CHAIN_MAX_EQUAL runs at most. Otherwise
 * the table is damaged, and the chain might have no end. */
#define RUN_CHAIN_MAX_EQUAL 8192 /* a part of a packed row has more than 4 bytes */
struct run_chain {
    int64_t before;
    size_t equal;
};
static inline struct run_chain run_chain(void) {
    return (struct run_chain){.before = INT64_MAX};
}
bool run_chain_follows(struct run_chain *chain, const struct run_entry *entry);

struct runs {
    struct database *db;
    struct prepared *find, *insert, *insert_many, *update; /* insert_many: may be NULL */
};

MUST_CHECK bool run_open(struct runs *runs, struct database *db, struct err *e);
void run_close(struct runs *runs);

/* Fill `ret`, made with run_entry_init(). *ret_found: there is such a run. Its workspace and
 * contract are borrowed until the next run_find() or run_release(). */
MUST_CHECK bool run_find(struct runs *runs, struct run_entry *ret, bool *ret_found,
                         struct err *e);
void run_release(struct runs *runs);

/* Within the caller's transaction. Inserting an existing run changes nothing. */
MUST_CHECK bool run_insert(struct runs *runs, const struct run_entry *entry, bool *ret_new,
                           struct err *e);

/* Insert RUN_MANY entries with one statement: half of what they cost one by one. *ret_new: all
 * were new. Otherwise those that were are inserted, and run_is() tells them.
 * Only while run_inserts_many(). */
#define RUN_MANY 16
static inline bool run_inserts_many(const struct runs *runs) {
    return runs->insert_many != NULL;
}
MUST_CHECK bool run_insert_many(struct runs *runs, const struct run_entry *const *entries,
                                bool *ret_new, struct err *e);

/* *ret: the stored run of this id is this one, which began in the same row of the log. */
MUST_CHECK bool run_is(struct runs *runs, const struct run_entry *entry, bool *ret,
                       struct err *e);
MUST_CHECK bool run_update(struct runs *runs, const struct run_entry *entry, struct err *e);

#endif
