/* A recall by a PostgreSQL server: it weighs and ranks by itself, in the time of the store's thread. */
#include "store/bank_inner.h"
#include "store/words.h"

#include <assert.h>
#include <math.h>

/* The place, then the words, with a space between two of them. The sign makes the place
 * something that no text has. */
static void put_list(struct buf *out, struct str place, const struct wanted *wanted,
                     size_t first, size_t count) {
    buf_append_byte(out, '=');
    buf_append(out, place);
    for (size_t i = first; i < first + count; i++) {
        buf_append_byte(out, ' ');
        buf_append(out, bank_word_at(wanted, i));
    }
}

static void bind_match(struct prepared *statement, const struct buf *match) {
    assert(buf_ok(match));
    database_bind_text(statement, 1, buf_str(match));
}

/* ?1 is the place and the words; a record's tokens begin with its place. */
#define MATCHES                                                                                \
    " b.tokens @> (string_to_array(?1, ' '))[1:1] AND b.tokens && (string_to_array(?1, ' "     \
    "'))[2:]"

/* How many records of the bank contain the word, and what that makes of it. */
static bool weigh(struct database *db, struct prepared *sum, struct str place,
                  struct wanted *wanted, size_t index, double records, struct err *e) {
    struct buf match;
    bool row = false;
    buf_init(&match, 2 * BANK_QUERY_MAX_BYTES + KIB);
    put_list(&match, place, wanted, index, 1);
    bind_match(sum, &match);
    bool ok = database_row(db, sum, &row, e);
    double with = ok && row ? (double)database_number_of(sum, 0) : 0;
    wanted->idf[index] = log(1 + (records - with + 0.5) / (with + 0.5));
    database_reset(sum);
    buf_done(&match);
    return ok;
}

static bool weigh_all(struct database *db, struct str place, struct wanted *wanted,
                      double records, struct err *e) {
    struct prepared *sum = NULL;
    bool ok =
        database_prepare(db, "SELECT count(*) FROM bank_words AS b WHERE" MATCHES, &sum, e);
    for (size_t i = 0; ok && i < wanted->count; i++)
        ok = weigh(db, sum, place, wanted, i, records, e);
    database_finalize(sum);
    return ok;
}

/* --- the answer --------------------------------------------------------------------------- */

/* ?1 words, ?7 limit, ?8 average, ?9 idf. Rows of records are read of the best alone; only a query
 * with filters needs those of all that match. */
#define BEST(from, where)                                                                      \
    "SELECT r.name, r.body, r.at_us, best.score FROM"                                          \
    " (SELECT b.id, bank_score(b.tokens, CAST(?8 AS FLOAT8), string_to_array(?1, ' '),"        \
    "  CAST(string_to_array(?9, ' ') AS FLOAT8[])) AS score"                                   \
    "  FROM bank_words AS b" from " WHERE" MATCHES where                                       \
    "  ORDER BY score DESC, id DESC LIMIT ?7) AS best"                                         \
    " JOIN bank_record AS r ON r.id = best.id ORDER BY best.score DESC, best.id DESC"

static const char recall_sql[] = BEST("", "");
static const char recall_some_sql[] =
    BEST(" JOIN bank_record AS r ON r.id = b.id", " AND" BANK_FITS);

/* The server gets the numbers as text. `room` stays until the statement is reset. */
static void bind_weights(struct prepared *rows, double average, const struct wanted *wanted,
                         struct buf *room) {
    buf_printf(room, "%.17g", average);
    size_t end = room->len;
    for (size_t i = 0; i < wanted->count; i++)
        buf_printf(room, "%s%.17g", i ? " " : "", wanted->idf[i]);
    database_bind_text(rows, 8, str_head(buf_str(room), end));
    database_bind_text(rows, 9, str_skip(buf_str(room), end));
}

static bool recall(struct database *db, struct bank_ask *ask, const struct bank_sums *sums,
                   struct wanted *wanted, struct err *e) {
    char room[BANK_PLACE_BYTES];
    struct str place = bank_place(sums->id, room);
    struct buf match;
    struct prepared *rows = NULL;
    if (!weigh_all(db, place, wanted, (double)sums->records, e)) return false;
    buf_init(&match, 2 * BANK_QUERY_MAX_BYTES + KIB);
    put_list(&match, place, wanted, 0, wanted->count);
    struct buf weights;
    buf_init(&weights, 4 * KIB);
    bool ok = database_prepare(db, bank_has_filters(&ask->query) ? recall_some_sql : recall_sql,
                               &rows, e);
    if (ok) {
        double average = (double)(sums->words ? sums->words : 1) / (double)sums->records;
        bind_match(rows, &match);
        bank_bind_query(rows, sums->id, &ask->query);
        database_bind_number(rows, 7, (int64_t)ask->query.limit + 1);
        bind_weights(rows, average, wanted, &weights);
        ok = bank_read_rows(db, ask, rows, e);
    }
    database_finalize(rows);
    buf_done(&weights);
    buf_done(&match);
    return ok;
}

bool bank_recall_at_server(struct database *db, void *ctx, struct err *e) {
    struct bank_ask *ask = ctx;
    struct wanted wanted = {.count = 0};
    struct bank_sums sums;
    bank_answer_begin(ask, 0, 0);
    if (!bank_find(db, &ask->where, &sums, e)) return false;
    /* Folding can make a letter longer, at most by half. */
    buf_init(&wanted.text, 2 * BANK_QUERY_MAX_BYTES);
    bool ok = words_each(db, ask->query.words, bank_add_word, &wanted, e);
    if (ok && sums.records && wanted.count) ok = recall(db, ask, &sums, &wanted, e);
    buf_done(&wanted.text);
    return ok;
}
