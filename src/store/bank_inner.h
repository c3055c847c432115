/* bank_inner: what the files of bank.h and bank_vector.h share. Private to them, and to core.c and
 * long_reader.c for bank_open(). */
#ifndef WEIR_STORE_BANK_INNER_H
#define WEIR_STORE_BANK_INNER_H

#include "store/bank.h"
#include "store/long_reader.h"
#include "store/once_reply.h"
#include "store/task.h"
#include "store/words.h"

struct bank_search; /* a recall on its way: bank_search.h */
struct bank_vector;

struct bank_ask {
    struct store_task task;
    struct long_reader_task reading; /* of a recall, instead of `task` */
    struct bank_search *search;      /* NULL: none */
    struct store *store;             /* of a recall in steps of `task` */
    _Atomic bool given_up;
    struct arena *asked; /* the request's texts */
    struct arena *found; /* the answer's; each run of the task makes it again */
    struct bank_where where;
    struct str name, body, label;
    struct bank_event event;
    struct bank_record *records; /* to be retained */
    struct kept_reply made;      /* with them, if has_made */
    bool has_made;
    struct str *names;           /* to be deleted */
    struct bank_vector *vectors; /* to be kept */
    size_t count;                /* of either */
    size_t dimension;            /* of a bank that is created */
    int64_t bank, space, upto;   /* of vectors */
    struct bank_query query;
    struct bank_answer answer;
    bank_done_fn *done; /* NULL: cancelled */
    void *ctx;
};

/* A request whose texts have at most `texts_max` bytes in all. */
struct bank_ask *bank_ask_new(const struct bank_where *where, size_t texts_max,
                              bank_done_fn *done, void *ctx,
                              bool (*fn)(struct database *, void *, struct err *));
struct str bank_keep(struct bank_ask *ask, struct str text); /* until the request ends */
struct bank_event bank_keep_event(struct bank_ask *ask, const struct bank_event *event);

/* Begin an answer of at most `count` items with `max_bytes` of texts. */
struct bank_item *bank_answer_begin(struct bank_ask *ask, size_t count, size_t max_bytes);

/* Copy into the answer.
 * errors  ERR_RESOURCE_EXHAUSTED */
MUST_CHECK bool bank_find_text(struct bank_ask *ask, struct str text, struct str *ret,
                               struct err *e);

/* Take a row that begins with name and body. */
MUST_CHECK bool bank_take_named(struct bank_ask *ask, struct prepared *row,
                                struct bank_item *ret, struct err *e);

/* The sums of a bank. */
struct bank_sums {
    int64_t id, records, words, bytes;
    int64_t dimension, space; /* 0: no vectors */
    int64_t newest;           /* record */
};

/* errors  ERR_NOT_FOUND the owner has no such bank */
MUST_CHECK bool bank_find(struct database *db, const struct bank_where *where,
                          struct bank_sums *ret, struct err *e);
MUST_CHECK bool bank_note_sums(struct database *db, const struct bank_sums *sums,
                               struct err *e);

/* *ret_found: there is such a bank, and it is the answer. */
MUST_CHECK bool bank_read(struct database *db, struct bank_ask *ask, bool *ret_found,
                          struct err *e);

MUST_CHECK bool bank_append_events(struct database *db, const struct bank_ask *ask,
                                   const struct event_log_entry *entries, size_t count,
                                   struct err *e);
MUST_CHECK bool bank_audit(struct database *db, const struct bank_ask *ask,
                           struct str operation, size_t count, struct err *e);

/* The word that stands for a bank in the index. */
#define BANK_PLACE_BYTES 24
struct str bank_place(int64_t bank, char room[static BANK_PLACE_BYTES]);

/* --- vectors: bank_vector.c ------------------------------------------------------------------ */

/* The place of a record's vector. */
#define BANK_SPACE_SHIFT 39
static inline int64_t bank_vector_place(int64_t space, int64_t record) {
    return space << BANK_SPACE_SHIFT | record;
}

MUST_CHECK bool bank_space_new(struct database *db, int64_t *ret, struct err *e);

/* The vectors of this space are not needed any more; 0: there is no such space. */
MUST_CHECK bool bank_space_end(struct database *db, int64_t space, struct err *e);

/* Delete some vectors of ended spaces. *ret_any: there was such a space. */
MUST_CHECK bool bank_space_prune(struct database *db, bool *ret_any, struct err *e);

/* --- records --------------------------------------------------------------------------------- */

/* Take one record, of which the row `statement` has (id, word_count, length of body, words), out of
 * the index and the table. */
MUST_CHECK bool bank_drop_record(struct database *db, struct prepared *statement,
                                 struct bank_sums *sums, struct err *e);

/* --- a recall: bank_recall.c, bank_search.c, and bank_recall_postgres.c ---------------------- */

#define BANK_K1 1.2
#define BANK_B 0.75

/* The words of a query, and what each weighs. */
struct wanted {
    struct buf text; /* all of them, one after the other */
    size_t lens[WORDS_MAX], count;
    double idf[WORDS_MAX];
    bool postgres; /* the words are as its index has them */
};

struct str bank_word_at(const struct wanted *wanted, size_t index);

/* A words_fn for words_each(): each word counts once. ctx: a struct wanted. */
int bank_add_word(void *ctx, int flags, const char *token, int len, int from, int to);

/* What bank_bind_query() binds: ?2 bank, ?3 kinds, ?4 classes, ?5 and ?6 time. */
#define BANK_FITS                                                                              \
    " r.bank = ?2 AND (?3 >> CAST(r.kind AS INTEGER)) & 1 = 1"                                 \
    " AND (?4 >> CAST(r.class AS INTEGER)) & 1 = 1 AND r.at_us BETWEEN ?5 AND ?6 "

void bank_bind_query(struct prepared *statement, int64_t bank, const struct bank_query *query);
bool bank_has_filters(const struct bank_query *query);

/* Take one row of name, body, at_us. */
MUST_CHECK bool bank_take_row(struct bank_ask *ask, struct prepared *row, struct bank_item *ret,
                              struct err *e);

/* Take rows of name, body, at_us, score into the answer. */
MUST_CHECK bool bank_read_rows(struct database *db, struct bank_ask *ask, struct prepared *rows,
                               struct err *e);

/* A request with this query. */
struct bank_ask *bank_query_new(const struct bank_where *where, const struct bank_query *query,
                                bank_done_fn *done, void *ctx,
                                bool (*fn)(struct database *, void *, struct err *));

/* NULL is fine. */
void bank_search_free(struct bank_search *search);

/* Answer, and free the request. */
void bank_ask_answer(const struct err *failed, void *ctx);

/* Give the connection the function that scores. Call it once. */
MUST_CHECK bool bank_open(struct database *db, struct err *e);

#endif
