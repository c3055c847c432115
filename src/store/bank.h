/* bank: memory banks of apps: named collections of records that can be searched.
 *
 * A bank belongs to an owner and is named by a locator, whose bytes are the contract's. Two
 * owners never see each other's banks, also under the same locator. A record is never changed:
 * it is retained, and perhaps deleted.
 *
 *     create ─▶ there ─▶ delete ─▶ deleted: cannot be found any more, its records go in steps
 *
 * Each change appends its event to the owner's log (event_log.h, EVENT_LOG_MEMORY) and a record
 * to the audit log, in the same transaction.
 *
 * Recall ranks by BM25 (Robertson, Zaragoza 2009; k1 = 1.2, b = 0.75) over the records of the bank
 * alone: how common a word is elsewhere changes no score. A record counts if it contains one of
 * the words, accents and case apart.
 *
 *     score = sum of idf(w) * f * (k1 + 1) / (f + k1 * (1 - b + b * words / average))
 *     idf(w) = ln(1 + (N - n + 0.5) / (n + 0.5))      f times in the record, in n of N records
 *
 * A bank with vectors (bank_vector.h) is searched by the vector of the query, too. Then each part
 * has half of the score, which is at most 1:
 *
 *     score = (nearness + text) / 2
 *     nearness = cosine of both vectors, or 1 / (1 + distance)      0: it has none yet
 *     text = BM25 / (sum of idf(w) * (k1 + 1))                      0: it has none of the words
 *
 * Memory   requests are copied. An answer is borrowed during the callback.
 * Threads  requests and answers are on the caller's loop; the work is on the store's thread, and
 *          of a recall on the reader's.
 * Source   contracts/nimi.md 1.11, 6.7; checks.md M1, M4, T8; SQLite FTS5.
 */
#ifndef WEIR_STORE_BANK_H
#define WEIR_STORE_BANK_H

#include "store/event_log.h"

#define BANK_OWNER_BANKS_MAX 100
#define BANK_LOCATOR_MAX_BYTES 640
#define BANK_NAME_MAX_BYTES 64 /* of a bank's id, or a record's */
#define BANK_BODY_MAX_BYTES (16 * KIB)
#define BANK_RECORD_MAX_BYTES (64 * KIB) /* body, and words */
#define BANK_RECORDS_MAX 1000000
#define BANK_MAX_BYTES (256 * MIB) /* bodies of its records */
#define BANK_RETAIN_MAX 100        /* records in one request */
#define BANK_FORGET_MAX 1000       /* names in one request */
#define BANK_QUERY_MAX_BYTES (4 * KIB)
#define BANK_ANSWER_MAX 200 /* records in one answer */

/* --- requests ----------------------------------------------------------------------------- */

/* What a recall found a record by: a set. */
enum { BANK_BY_WORDS = 1, BANK_BY_VECTOR = 2 };

/* One bank or record of an answer. */
struct bank_item {
    struct str name, body;
    int64_t at_us;
    double score; /* of a recall */
    unsigned by;  /* of a recall */
};

struct bank_answer {
    const struct bank_item *items;
    size_t count;
    bool more; /* there are more after the last one */
    bool made; /* by a create: it was not there before */
    /* Nothing was searched, because a vector is needed. The item is the bank. */
    bool wants_vector;
    int64_t space; /* then: of the bank's vectors */
};

/* Called once, on `loop`, never before the start function returns. failed is NULL on success,
 * else ERR_NOT_FOUND (the owner has no such bank), ERR_RESOURCE_EXHAUSTED (a limit above), or an
 * error of the store. */
typedef void bank_done_fn(const struct bank_answer *answer, const struct err *failed,
                          void *ctx);

struct bank_ask; /* a request on its way; freed after `done` was called */

struct bank_where {
    struct store_owner owner;
    struct str locator;
};

/* What a change appends to the owner's log: the body of the event is the bank's body, or the
 * record's, or the names of what was deleted, each followed by a newline. */
struct bank_event {
    struct str label, bytes;
};

/* A bank that exists already is the answer, unchanged and without an event.
 * dimension  of its vectors; 0: it has none */
struct bank_ask *bank_create_start(struct store *store, struct loop *loop,
                                   const struct bank_where *where, struct str name,
                                   struct str body, size_t dimension,
                                   const struct bank_event *event, bank_done_fn *done,
                                   void *ctx);
struct bank_ask *bank_get_start(struct store *store, struct loop *loop,
                                const struct bank_where *where, bank_done_fn *done, void *ctx);

/* All banks of the owner, the oldest first. */
struct bank_ask *bank_list_start(struct store *store, struct loop *loop,
                                 const struct store_owner *owner, bank_done_fn *done,
                                 void *ctx);
struct bank_ask *bank_delete_start(struct store *store, struct loop *loop,
                                   const struct bank_where *where,
                                   const struct bank_event *event, bank_done_fn *done,
                                   void *ctx);

/* Delete some records of deleted banks, or vectors that no bank has any more; answer->more: there
 * may be some left. */
struct bank_ask *bank_prune_start(struct store *store, struct loop *loop, bank_done_fn *done,
                                  void *ctx);

/* --- records ------------------------------------------------------------------------------ */

struct bank_record {
    struct str name, body;
    struct str words; /* what a recall looks at */
    int kind, class;  /* 0 to 31 */
    int64_t at_us;    /* Unix time of what it tells of */
    struct str event; /* bytes of its event */
};

struct kept_reply;

/* All or none. The answer has no items.
 * made  a reply that is kept in the same transaction (once_reply.h), copied; NULL: none */
struct bank_ask *bank_retain_start(struct store *store, struct loop *loop,
                                   const struct bank_where *where,
                                   const struct bank_record *records, size_t count,
                                   struct str label, const struct kept_reply *made,
                                   bank_done_fn *done, void *ctx);

/* The answer has the names of those that were there. If there was none, nothing happened. */
struct bank_ask *bank_forget_start(struct store *store, struct loop *loop,
                                   const struct bank_where *where, const struct str *names,
                                   size_t count, const struct bank_event *event,
                                   bank_done_fn *done, void *ctx);

#define BANK_ANY UINT32_MAX /* of a set of 1 << kind: all */

struct bank_query {
    uint32_t kinds, classes; /* sets */
    int64_t from_us, to_us;  /* both included */
    size_t limit;            /* 1 to BANK_ANSWER_MAX */
    size_t max_bytes;        /* of names and bodies in the answer; one record always fits */
    struct str words;        /* of a recall */
    /* Of a recall in a bank with vectors. */
    bool by_words;       /* alone */
    const float *vector; /* NULL: the answer says if one is needed (wants_vector) */
    size_t dimension;
    int64_t space; /* as the answer said. If the bank has another one now, words alone count */
    bool by_distance; /* Euclidean; else by the angle */
    /* A history goes on after this record. */
    int64_t after_us;
    struct str after_name; /* empty: it begins */
};

/* The newest first. */
struct bank_ask *bank_history_start(struct store *store, struct loop *loop,
                                    const struct bank_where *where,
                                    const struct bank_query *query, bank_done_fn *done,
                                    void *ctx);

/* The best first; of equals the one that was retained last. It runs beside the store's thread, on
 * the reader's, in steps (long_reader.h); on a server the words are its own work, and vectors are
 * read in steps of the store's thread. Records that come or go meanwhile may be missing from the
 * answer. */
struct bank_ask *bank_recall_start(struct store *store, struct loop *loop,
                                   const struct bank_where *where,
                                   const struct bank_query *query, bank_done_fn *done,
                                   void *ctx);

/* The answer is not needed any more: end a recall soon, with ERR_CANCELLED if it was not at its
 * end. */
void bank_give_up(struct bank_ask *ask);

/* Stop waiting: `done` will not be called. The request is still carried out. NULL is fine. */
void bank_leave(struct bank_ask *ask);

#endif
