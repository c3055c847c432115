/* A recall by a PostgreSQL server: it weighs and ranks words by itself, in the time of the store's
 * thread. */
#include "store/bank_search.h"
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

bool bank_server_weigh(struct database *db, struct bank_search *search, struct err *e) {
    char room[BANK_PLACE_BYTES];
    struct str place = bank_place(search->sums.id, room);
    struct wanted *wanted = &search->wanted;
    struct prepared *sum = NULL;
    bool ok =
        database_prepare(db, "SELECT count(*) FROM bank_words AS b WHERE" MATCHES, &sum, e);
    for (size_t i = 0; ok && i < wanted->count; i++)
        ok = weigh(db, sum, place, wanted, i, (double)search->sums.records, e);
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

/* The words and what they weigh, as the server gets them: as text. They stay in the search until
 * the statement is reset. */
static void bind_words(struct prepared *rows, struct bank_search *search) {
    struct buf *weights = &search->weights;
    char room[BANK_PLACE_BYTES];
    buf_clear(&search->match);
    put_list(&search->match, bank_place(search->sums.id, room), &search->wanted, 0,
             search->wanted.count);
    bind_match(rows, &search->match);
    buf_clear(weights);
    buf_printf(weights, "%.17g", bank_average(&search->sums));
    size_t end = weights->len;
    for (size_t i = 0; i < search->wanted.count; i++)
        buf_printf(weights, "%s%.17g", i ? " " : "", search->wanted.idf[i]);
    database_bind_text(rows, 8, str_head(buf_str(weights), end));
    database_bind_text(rows, 9, str_skip(buf_str(weights), end));
}

bool bank_server_recall(struct database *db, struct bank_ask *ask, struct err *e) {
    struct prepared *rows = NULL;
    bool ok = database_prepare(db, bank_has_filters(&ask->query) ? recall_some_sql : recall_sql,
                               &rows, e);
    if (ok) {
        bind_words(rows, ask->search);
        bank_bind_query(rows, ask->search->sums.id, &ask->query);
        database_bind_number(rows, 7, (int64_t)ask->query.limit + 1);
        ok = bank_read_rows(db, ask, rows, e);
    }
    database_finalize(rows);
    return ok;
}

/* --- for a search by vectors, too ------------------------------------------------------------ */

/* ?1, ?8 and ?9 as above, ?7 and ?10 the range, ?11 limit. */
#define SCORED(from, where)                                                                    \
    "SELECT b.id, bank_score(b.tokens, CAST(?8 AS FLOAT8), string_to_array(?1, ' '),"          \
    " CAST(string_to_array(?9, ' ') AS FLOAT8[])) FROM bank_words AS b" from " WHERE" MATCHES  \
    " AND b.id > ?7 AND b.id <= ?10" where " ORDER BY b.id LIMIT ?11"

static const char scored_sql[] = SCORED("", "");
static const char scored_some_sql[] =
    SCORED(" JOIN bank_record AS r ON r.id = b.id", " AND" BANK_FITS);

struct prepared *bank_server_text_rows(struct database *db, struct bank_ask *ask, int64_t upto,
                                       struct err *e) {
    struct prepared *rows = NULL;
    const char *sql = bank_has_filters(&ask->query) ? scored_some_sql : scored_sql;
    if (!database_prepare(db, sql, &rows, e)) return NULL;
    bind_words(rows, ask->search);
    bank_bind_query(rows, ask->search->sums.id, &ask->query);
    database_bind_number(rows, 7, ask->search->last_id);
    database_bind_number(rows, 10, upto);
    database_bind_number(rows, 11, BANK_TEXT_ROWS);
    return rows;
}
