#include "base/mem.h"
#include "store/bank_inner.h"
#include "store/words.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define K1 1.2
#define B 0.75

/* --- the score ---------------------------------------------------------------------------- */

/* bank_score(bank_words, average number of words, idf of each word): how well the current record
 * answers. The first phrase of the query is the bank's place, so a word's number is one more
 * than its place in the list. */
static void bank_score(const Fts5ExtensionApi *api, Fts5Context *fts, sqlite3_context *out,
                       int count, sqlite3_value **values) {
    double idf[WORDS_MAX], times[WORDS_MAX] = {0}, score = 0;
    int words = 0, found = 0, phrase, column, at;
    size_t known = (size_t)sqlite3_value_bytes(values[1]) / sizeof(double);
    assert(count == 2 && known <= WORDS_MAX);
    (void)count;
    memcpy(idf, sqlite3_value_blob(values[1]), known * sizeof(double));
    int result = api->xColumnSize(fts, 1, &words);
    if (result == SQLITE_OK) result = api->xInstCount(fts, &found);
    for (int i = 0; result == SQLITE_OK && i < found; i++) {
        result = api->xInst(fts, i, &phrase, &column, &at);
        if (phrase > 0 && (size_t)phrase <= known) times[phrase - 1]++;
    }
    if (result != SQLITE_OK) {
        sqlite3_result_error_code(out, result);
        return;
    }
    double norm = K1 * (1 - B + B * words / sqlite3_value_double(values[0]));
    for (size_t i = 0; i < known; i++)
        score += idf[i] * times[i] * (K1 + 1) / (times[i] + norm);
    sqlite3_result_double(out, score);
}

bool bank_open(struct database *db, struct err *e) {
    fts5_api *api;
    if (database_is_postgres(db)) return true; /* its schema has the function */
    if (!words_api(db, &api, e)) return false;
    if (api->xCreateFunction(api, "bank_score", NULL, bank_score, NULL) == SQLITE_OK)
        return true;
    return database_fail(db, e);
}

/* --- the words of a query ----------------------------------------------------------------- */

struct wanted {
    struct buf text; /* all of them, one after the other */
    size_t lens[WORDS_MAX], count;
    double idf[WORDS_MAX];
};

static struct str word_at(const struct wanted *wanted, size_t index) {
    size_t from = 0;
    for (size_t i = 0; i < index; i++) from += wanted->lens[i];
    return str_head(str_skip(buf_str(&wanted->text), from), wanted->lens[index]);
}

/* Each word counts once. */
static int add_wanted(void *ctx, int flags, const char *token, int len, int from, int to) {
    struct wanted *wanted = ctx;
    struct str word = str_of(token, (size_t)len);
    (void)flags, (void)from, (void)to;
    for (size_t i = 0; i < wanted->count; i++) {
        if (str_equal(word_at(wanted, i), word)) return SQLITE_OK;
    }
    if (wanted->count == WORDS_MAX || !buf_append(&wanted->text, word)) return SQLITE_DONE;
    wanted->lens[wanted->count++] = word.len;
    return SQLITE_OK;
}

/* The place, then the words, with a space between two of them. The sign makes the place
 * something that no text has. */
static void put_list(struct buf *out, struct str place, const struct wanted *wanted,
                     size_t first, size_t count) {
    buf_append_byte(out, '=');
    buf_append(out, place);
    for (size_t i = first; i < first + count; i++) {
        buf_append_byte(out, ' ');
        buf_append(out, word_at(wanted, i));
    }
}

/* A word holds letters and digits only, so it needs no escaping within quotation marks. */
static void put_match(struct database *db, struct buf *out, struct str place,
                      const struct wanted *wanted, size_t first, size_t count) {
    if (database_is_postgres(db)) {
        put_list(out, place, wanted, first, count);
        return;
    }
    buf_printf(out, "place : \"" STR_FMT "\" AND words : (", STR_ARG(place));
    for (size_t i = first; i < first + count; i++) {
        if (i > first) buf_append(out, STR(" OR "));
        buf_append_byte(out, '"');
        buf_append(out, word_at(wanted, i));
        buf_append_byte(out, '"');
    }
    buf_append_byte(out, ')');
}

static void bind_match(struct prepared *statement, const struct buf *match) {
    assert(buf_ok(match));
    database_bind_text(statement, 1, buf_str(match));
}

/* PostgreSQL: ?1 is the place and the words; a record's tokens begin with its place. */
#define MATCHES                                                                                \
    " b.tokens @> (string_to_array(?1, ' '))[1:1] AND b.tokens && (string_to_array(?1, ' "     \
    "'))[2:]"

/* How many records of the bank contain the word, and what that makes of it. */
static bool weigh(struct database *db, struct prepared *sum, struct str place,
                  struct wanted *wanted, size_t index, double records, struct err *e) {
    struct buf match;
    bool row = false;
    buf_init(&match, 2 * BANK_QUERY_MAX_BYTES + KIB);
    put_match(db, &match, place, wanted, index, 1);
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
        database_prepare(db,
                         database_sql(db,
                                      "SELECT count(*) FROM bank_words"
                                      " WHERE bank_words MATCH ?1",
                                      "SELECT count(*) FROM bank_words AS b WHERE" MATCHES),
                         &sum, e);
    for (size_t i = 0; ok && i < wanted->count; i++)
        ok = weigh(db, sum, place, wanted, i, records, e);
    database_finalize(sum);
    return ok;
}

/* --- the answer --------------------------------------------------------------------------- */

#define FITS                                                                                   \
    " r.bank = ?2 AND (?3 >> CAST(r.kind AS INTEGER)) & 1 = 1"                                 \
    " AND (?4 >> CAST(r.class AS INTEGER)) & 1 = 1 AND r.at_us BETWEEN ?5 AND ?6 "

/* ?1 words, ?7 limit, ?8 average, ?9 idf. Rows of records are read of the best alone; only a query
 * with filters needs those of all that match. */
#define BEST(from, where)                                                                      \
    "SELECT r.name, r.body, r.at_us, best.score FROM"                                          \
    " (SELECT bank_words.rowid AS id, bank_score(bank_words, ?8, ?9) AS score"                 \
    "  FROM bank_words" from " WHERE bank_words MATCH ?1" where                                \
    "  ORDER BY score DESC, id DESC LIMIT ?7) AS best"                                         \
    " JOIN bank_record AS r ON r.id = best.id ORDER BY best.score DESC, best.id DESC"

static const char recall_sql[] = BEST("", "");
static const char recall_some_sql[] =
    BEST(" CROSS JOIN bank_record AS r ON r.id = bank_words.rowid", " AND" FITS);

#define BEST_OF_POSTGRES(from, where)                                                          \
    "SELECT r.name, r.body, r.at_us, best.score FROM"                                          \
    " (SELECT b.id, bank_score(b.tokens, CAST(?8 AS FLOAT8), string_to_array(?1, ' '),"        \
    "  CAST(string_to_array(?9, ' ') AS FLOAT8[])) AS score"                                   \
    "  FROM bank_words AS b" from " WHERE" MATCHES where                                       \
    "  ORDER BY score DESC, id DESC LIMIT ?7) AS best"                                         \
    " JOIN bank_record AS r ON r.id = best.id ORDER BY best.score DESC, best.id DESC"

static const char recall_postgres_sql[] = BEST_OF_POSTGRES("", "");
static const char recall_some_postgres_sql[] =
    BEST_OF_POSTGRES(" JOIN bank_record AS r ON r.id = b.id", " AND" FITS);

static bool has_filters(const struct bank_query *query) {
    return query->kinds != BANK_ANY || query->classes != BANK_ANY ||
           query->from_us != INT64_MIN || query->to_us != INT64_MAX;
}

/* ?7 limit, ?8 and ?9 where to go on. */
static const char history_sql[] =
    "SELECT r.name, r.body, r.at_us, CAST(0 AS DOUBLE PRECISION) FROM bank_record AS r "
    "WHERE" FITS
    " AND NOT (r.at_us = ?8 AND r.name <= ?9) ORDER BY r.at_us DESC, r.name LIMIT ?7";

static void bind_query(struct prepared *statement, int64_t bank,
                       const struct bank_query *query) {
    bool goes_on = query->after_name.len && query->after_us < query->to_us;
    database_bind_number(statement, 2, bank);
    database_bind_number(statement, 3, query->kinds);
    database_bind_number(statement, 4, query->classes);
    database_bind_number(statement, 5, query->from_us);
    database_bind_number(statement, 6, goes_on ? query->after_us : query->to_us);
    database_bind_number(statement, 7, (int64_t)query->limit + 1);
}

static bool take_row(struct bank_ask *ask, struct prepared *row, struct bank_item *ret,
                     struct err *e) {
    ret->at_us = database_number_of(row, 2);
    ret->score = database_real_of(row, 3);
    return bank_find_text(ask, database_bytes(row, 0), &ret->name, e) &&
           bank_find_text(ask, database_bytes(row, 1), &ret->body, e);
}

static bool bank_read_rows(struct database *db, struct bank_ask *ask, struct prepared *rows,
                           struct err *e) {
    const struct bank_query *query = &ask->query;
    struct bank_item *items = bank_answer_begin(
        ask, query->limit, query->max_bytes + BANK_RECORD_MAX_BYTES + BANK_NAME_MAX_BYTES);
    bool row = false, ok;
    size_t used = 0;
    while ((ok = database_row(db, rows, &row, e)) && row) {
        used += database_bytes(rows, 0).len + database_bytes(rows, 1).len;
        ask->answer.more =
            ask->answer.count == query->limit || (ask->answer.count && used > query->max_bytes);
        if (ask->answer.more) return true;
        if (!take_row(ask, rows, &items[ask->answer.count++], e)) return false;
    }
    return ok;
}

/* --- history ------------------------------------------------------------------------------ */

static bool run_history(struct database *db, void *ctx, struct err *e) {
    struct bank_ask *ask = ctx;
    struct bank_sums sums;
    struct prepared *rows = NULL;
    if (!bank_find(db, &ask->where, &sums, e)) return false;
    bool ok = database_prepare(db, history_sql, &rows, e);
    if (ok) {
        bind_query(rows, sums.id, &ask->query);
        database_bind_number(rows, 8, ask->query.after_us);
        database_bind(rows, 9, ask->query.after_name);
        ok = bank_read_rows(db, ask, rows, e);
    }
    database_finalize(rows);
    return ok;
}

static struct bank_ask *query_new(struct loop *loop, const struct bank_where *where,
                                  const struct bank_query *query, bank_done_fn *done, void *ctx,
                                  bool (*fn)(struct database *, void *, struct err *)) {
    assert(query->limit > 0 && query->limit <= BANK_ANSWER_MAX);
    assert(query->words.len <= BANK_QUERY_MAX_BYTES &&
           query->after_name.len <= BANK_NAME_MAX_BYTES);
    struct bank_ask *ask = bank_ask_new(loop, where, BANK_QUERY_MAX_BYTES, done, ctx, fn);
    ask->task.reads_only = true;
    ask->query = *query;
    ask->query.words = bank_keep(ask, query->words);
    ask->query.after_name = bank_keep(ask, query->after_name);
    return ask;
}

struct bank_ask *bank_history_start(struct store *store, struct loop *loop,
                                    const struct bank_where *where,
                                    const struct bank_query *query, bank_done_fn *done,
                                    void *ctx) {
    struct bank_ask *ask = query_new(loop, where, query, done, ctx, run_history);
    store_run(store, &ask->task);
    return ask;
}

/* --- recall ------------------------------------------------------------------------------- */

static const char *recall_text(const struct database *db, const struct bank_query *query) {
    if (has_filters(query)) return database_sql(db, recall_some_sql, recall_some_postgres_sql);
    return database_sql(db, recall_sql, recall_postgres_sql);
}

/* PostgreSQL gets the numbers as text. `room` stays until the statement is reset. */
static void bind_weights(struct database *db, struct prepared *rows, double average,
                         const struct wanted *wanted, struct buf *room) {
    if (!database_is_postgres(db)) {
        sqlite3_bind_double(rows->sqlite, 8, average);
        database_bind(rows, 9, str_of(wanted->idf, wanted->count * sizeof(double)));
        return;
    }
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
    put_match(db, &match, place, wanted, 0, wanted->count);
    struct buf weights;
    buf_init(&weights, 4 * KIB);
    bool ok = database_prepare(db, recall_text(db, &ask->query), &rows, e);
    if (ok) {
        double average = (double)(sums->words ? sums->words : 1) / (double)sums->records;
        bind_match(rows, &match);
        bind_query(rows, sums->id, &ask->query);
        bind_weights(db, rows, average, wanted, &weights);
        ok = bank_read_rows(db, ask, rows, e);
    }
    database_finalize(rows);
    buf_done(&weights);
    buf_done(&match);
    return ok;
}

static bool run_recall(struct database *db, void *ctx, struct err *e) {
    struct bank_ask *ask = ctx;
    struct wanted wanted = {.count = 0};
    struct bank_sums sums;
    bank_answer_begin(ask, 0, 0);
    if (!bank_find(db, &ask->where, &sums, e)) return false;
    /* Folding can make a letter longer, at most by half. */
    buf_init(&wanted.text, 2 * BANK_QUERY_MAX_BYTES);
    bool ok = words_each(db, ask->query.words, add_wanted, &wanted, e);
    if (ok && sums.records && wanted.count) ok = recall(db, ask, &sums, &wanted, e);
    buf_done(&wanted.text);
    return ok;
}

struct bank_ask *bank_recall_start(struct store *store, struct loop *loop,
                                   const struct bank_where *where,
                                   const struct bank_query *query, bank_done_fn *done,
                                   void *ctx) {
    struct bank_ask *ask = query_new(loop, where, query, done, ctx, run_recall);
    store_run(store, &ask->task);
    return ask;
}
