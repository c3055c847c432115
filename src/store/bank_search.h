/* bank_search: a recall on its way.
 *
 *     finding ─▶ weighing each word ─▶ scoring ──────────────┬─▶ fetching ─▶ over
 *        │           └──▶ reading vectors ⇄ merging words ───┘                ▲
 *        └─ a vector is needed, or there is nothing to find ──────────────────┘
 *
 * Weighing, scoring, reading and merging go through the records in the order of their ids, and
 * stop when the time of a step is over. A step leaves no statement open. Reading scores a block of
 * vectors; merging goes through the records of the same range that have a word of the query, so
 * that each record gets both parts of its score with no more memory than a block.
 *
 * In a file all this is done by SQLite on the reader's thread. A server weighs all words at once,
 * and scores and fetches without vectors by itself.
 *
 * Private to bank_search.c, bank_blend.c and bank_recall_postgres.c.
 *
 * Memory   part of its request.
 * Threads  the reader's; with a server the store's.
 */
#ifndef WEIR_STORE_BANK_SEARCH_H
#define WEIR_STORE_BANK_SEARCH_H

#include "base/states.h"
#include "store/bank_inner.h"

enum bank_search_phase {
    BANK_FINDING,
    BANK_WEIGHING,
    BANK_SCORING,
    BANK_READING,
    BANK_MERGING,
    BANK_FETCHING,
    BANK_OVER,
    BANK_SEARCH_PHASE_COUNT,
};

extern const struct state bank_search_phases[BANK_SEARCH_PHASE_COUNT];

struct best {
    int64_t id;
    double score;
    unsigned by;
};

struct bank_blend; /* bank_blend.c */

struct bank_search {
    enum bank_search_phase phase; /* written by bank_search_move() only */
    struct bank_sums sums;
    struct wanted wanted;
    struct buf match, weights; /* what a statement of a server refers to */
    size_t word;               /* that is weighed */
    int64_t with;              /* records that contain it */
    int64_t last_id;           /* of the pass that goes on */
    struct bank_blend *blend;  /* NULL: words alone */
    /* One more than the limit; a heap with the worst on top. */
    struct best best[BANK_ANSWER_MAX + 1];
    size_t best_count;
};

void bank_search_move(struct bank_search *search, enum bank_search_phase next);

void bank_keep_best(struct bank_search *search, size_t max, struct best one);

/* The average number of words of a record. */
double bank_average(const struct bank_sums *sums);

#define BANK_TEXT_ROWS 8192 /* at most so many come at once from a server */

/* Records with a word of the query, after search->last_id and up to `upto`: id, score. */
struct prepared *bank_text_rows(struct database *db, struct bank_ask *ask, int64_t upto,
                                struct err *e);

/* Call for each row, and keep search->last_id. *ret_end: the last one was; it stays false when the
 * time is over. */
typedef void bank_row_fn(struct bank_ask *ask, struct prepared *row);
MUST_CHECK bool bank_pass_rows(struct database *db, struct bank_ask *ask, struct prepared *rows,
                               bank_row_fn *fn, uint64_t until_ms, bool *ret_end,
                               struct err *e);

/* --- with vectors: bank_blend.c -------------------------------------------------------------- */

struct bank_blend *bank_blend_new(const struct bank_query *query);
void bank_blend_free(struct bank_blend *blend); /* NULL is fine */

/* Score the next block of vectors. */
MUST_CHECK bool bank_blend_read(struct database *db, struct bank_ask *ask, struct err *e);

/* Go through the words of the block. */
MUST_CHECK bool bank_blend_merge(struct database *db, struct bank_ask *ask, uint64_t until_ms,
                                 struct err *e);

/* --- by a server: bank_recall_postgres.c ------------------------------------------------------- */

MUST_CHECK bool bank_server_weigh(struct database *db, struct bank_search *search,
                                  struct err *e);

/* Score and fetch, by words alone. */
MUST_CHECK bool bank_server_recall(struct database *db, struct bank_ask *ask, struct err *e);
struct prepared *bank_server_text_rows(struct database *db, struct bank_ask *ask, int64_t upto,
                                       struct err *e);

#endif
