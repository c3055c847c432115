#include "store/bank_inner.h"
#include "store/words.h"

#include <assert.h>
#include <string.h>

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
    double norm = BANK_K1 * (1 - BANK_B + BANK_B * words / sqlite3_value_double(values[0]));
    for (size_t i = 0; i < known; i++)
        score += idf[i] * times[i] * (BANK_K1 + 1) / (times[i] + norm);
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

struct str bank_word_at(const struct wanted *wanted, size_t index) {
    size_t from = 0;
    for (size_t i = 0; i < index; i++) from += wanted->lens[i];
    return str_head(str_skip(buf_str(&wanted->text), from), wanted->lens[index]);
}

/* Each word counts once. */
int bank_add_word(void *ctx, int flags, const char *token, int len, int from, int to) {
    struct wanted *wanted = ctx;
    struct str word = str_of(token, (size_t)len);
    (void)flags, (void)from, (void)to;
    if (wanted->postgres) word = words_for_postgres(word);
    for (size_t i = 0; i < wanted->count; i++) {
        if (str_equal(bank_word_at(wanted, i), word)) return SQLITE_OK;
    }
    if (wanted->count == WORDS_MAX || !buf_append(&wanted->text, word)) return SQLITE_DONE;
    wanted->lens[wanted->count++] = word.len;
    return SQLITE_OK;
}

/* --- the answer --------------------------------------------------------------------------- */

bool bank_has_filters(const struct bank_query *query) {
    return query->kinds != BANK_ANY || query->classes != BANK_ANY ||
           query->from_us != INT64_MIN || query->to_us != INT64_MAX;
}

/* ?7 limit, ?8 and ?9 where to go on. */
static const char history_sql[] =
    "SELECT r.name, r.body, r.at_us, CAST(0 AS DOUBLE PRECISION) FROM bank_record AS r "
    "WHERE" BANK_FITS
    " AND NOT (r.at_us = ?8 AND r.name <= ?9) ORDER BY r.at_us DESC, r.name LIMIT ?7";

void bank_bind_query(struct prepared *statement, int64_t bank, const struct bank_query *query) {
    bool goes_on = query->after_name.len && query->after_us < query->to_us;
    database_bind_number(statement, 2, bank);
    database_bind_number(statement, 3, query->kinds);
    database_bind_number(statement, 4, query->classes);
    database_bind_number(statement, 5, query->from_us);
    database_bind_number(statement, 6, goes_on ? query->after_us : query->to_us);
}

bool bank_take_row(struct bank_ask *ask, struct prepared *row, struct bank_item *ret,
                   struct err *e) {
    ret->at_us = database_number_of(row, 2);
    return bank_take_named(ask, row, ret, e);
}

bool bank_read_rows(struct database *db, struct bank_ask *ask, struct prepared *rows,
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
        struct bank_item *item = &items[ask->answer.count++];
        *item = (struct bank_item){.score = database_real_of(rows, 3), .by = BANK_BY_WORDS};
        if (!bank_take_row(ask, rows, item, e)) return false;
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
        bank_bind_query(rows, sums.id, &ask->query);
        database_bind_number(rows, 7, (int64_t)ask->query.limit + 1);
        database_bind_number(rows, 8, ask->query.after_us);
        database_bind(rows, 9, ask->query.after_name);
        ok = bank_read_rows(db, ask, rows, e);
    }
    database_finalize(rows);
    return ok;
}

struct bank_ask *bank_query_new(const struct bank_where *where, const struct bank_query *query,
                                bank_done_fn *done, void *ctx,
                                bool (*fn)(struct database *, void *, struct err *)) {
    size_t vector_bytes = query->vector ? query->dimension * sizeof(float) : 0;
    assert(query->limit > 0 && query->limit <= BANK_ANSWER_MAX);
    assert(query->words.len <= BANK_QUERY_MAX_BYTES &&
           query->after_name.len <= BANK_NAME_MAX_BYTES);
    struct bank_ask *ask =
        bank_ask_new(where, BANK_QUERY_MAX_BYTES + vector_bytes, done, ctx, fn);
    ask->task.reads_only = true;
    ask->query = *query;
    if (query->vector) {
        float *vector = arena_alloc(ask->asked, vector_bytes);
        assert(vector);
        memcpy(vector, query->vector, vector_bytes);
        ask->query.vector = vector;
    }
    ask->query.words = bank_keep(ask, query->words);
    ask->query.after_name = bank_keep(ask, query->after_name);
    return ask;
}

struct bank_ask *bank_history_start(struct store *store, struct loop *loop,
                                    const struct bank_where *where,
                                    const struct bank_query *query, bank_done_fn *done,
                                    void *ctx) {
    struct bank_ask *ask = bank_query_new(where, query, done, ctx, run_history);
    store_run(store, loop, &ask->task, ask);
    return ask;
}
