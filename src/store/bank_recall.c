#include "base/clock.h"
#include "base/mem.h"
#include "store/bank_inner.h"
#include "store/words.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
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
    for (size_t i = 0; i < wanted->count; i++) {
        if (str_equal(bank_word_at(wanted, i), word)) return SQLITE_OK;
    }
    if (wanted->count == WORDS_MAX || !buf_append(&wanted->text, word)) return SQLITE_DONE;
    wanted->lens[wanted->count++] = word.len;
    return SQLITE_OK;
}

/* A word holds letters and digits only, so it needs no escaping within quotation marks. */
static void put_match(struct buf *out, struct str place, const struct wanted *wanted,
                      size_t first, size_t count) {
    buf_printf(out, "place : \"" STR_FMT "\" AND words : (", STR_ARG(place));
    for (size_t i = first; i < first + count; i++) {
        if (i > first) buf_append(out, STR(" OR "));
        buf_append_byte(out, '"');
        buf_append(out, bank_word_at(wanted, i));
        buf_append_byte(out, '"');
    }
    buf_append_byte(out, ')');
}

static struct prepared *match_prepare(struct database *db, const char *sql, struct str place,
                                      const struct wanted *wanted, size_t first, size_t count,
                                      struct err *e) {
    struct buf match;
    struct prepared *statement = NULL;
    buf_init(&match, 2 * BANK_QUERY_MAX_BYTES + KIB);
    put_match(&match, place, wanted, first, count);
    assert(buf_ok(&match));
    if (database_prepare(db, sql, &statement, e))
        sqlite3_bind_text(statement->sqlite, 1, match.at, (int)match.len, SQLITE_TRANSIENT);
    buf_done(&match);
    return statement;
}

/* --- the answer --------------------------------------------------------------------------- */

/* ?1 words, ?7 the last record that was looked at, ?8 average, ?9 idf. Only a query with filters
 * needs the rows of the records. */
#define SCORED(from, where)                                                                    \
    "SELECT bank_words.rowid, bank_score(bank_words, ?8, ?9) FROM bank_words" from             \
    " WHERE bank_words MATCH ?1 AND bank_words.rowid > ?7" where " ORDER BY bank_words.rowid"

static const char scored_sql[] = SCORED("", "");
static const char scored_some_sql[] =
    SCORED(" CROSS JOIN bank_record AS r ON r.id = bank_words.rowid", " AND" BANK_FITS);

static const char count_sql[] = "SELECT rowid FROM bank_words WHERE bank_words MATCH ?1"
                                " AND rowid > ?7 ORDER BY rowid";

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

static bool take_row(struct bank_ask *ask, struct prepared *row, struct bank_item *ret,
                     struct err *e) {
    ret->at_us = database_number_of(row, 2);
    ret->score = database_real_of(row, 3);
    return bank_find_text(ask, database_bytes(row, 0), &ret->name, e) &&
           bank_find_text(ask, database_bytes(row, 1), &ret->body, e);
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
        bank_bind_query(rows, sums.id, &ask->query);
        database_bind_number(rows, 7, (int64_t)ask->query.limit + 1);
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

/* --- a recall from a file, in steps ------------------------------------------------------------------- */

/*     finding ─▶ weighing each word ─▶ scoring ─▶ fetching ─▶ over
 *
 * Weighing and scoring go through the records that match in the order of their ids, and stop when
 * the time of a step is over. */
enum search_phase { FINDING, WEIGHING, SCORING, FETCHING, OVER };

#define LOOK_AT_CLOCK 64 /* rows */

struct best {
    int64_t id;
    double score;
};

struct bank_search {
    enum search_phase phase;
    struct bank_sums sums;
    struct wanted wanted;
    size_t word;     /* that is weighed */
    int64_t with;    /* records that contain it */
    int64_t last_id; /* of the pass that goes on */
    /* One more than the limit; a heap with the worst on top. */
    struct best best[BANK_ANSWER_MAX + 1];
    size_t best_count;
};

void bank_search_free(struct bank_search *search) {
    if (!search) return;
    buf_done(&search->wanted.text);
    free(search);
}

static bool is_worse(const struct best *a, const struct best *b) {
    return a->score < b->score || (!(b->score < a->score) && a->id < b->id);
}

static void sink(struct best *heap, size_t count, size_t at) {
    for (;;) {
        size_t least = at, left = 2 * at + 1, right = left + 1;
        if (left < count && is_worse(&heap[left], &heap[least])) least = left;
        if (right < count && is_worse(&heap[right], &heap[least])) least = right;
        if (least == at) return;
        struct best moved = heap[at];
        heap[at] = heap[least];
        heap[least] = moved;
        at = least;
    }
}

static void keep_best(struct bank_search *search, size_t max, struct best one) {
    struct best *heap = search->best;
    if (search->best_count == max) {
        if (is_worse(&one, &heap[0])) return;
        heap[0] = one;
        sink(heap, max, 0);
        return;
    }
    heap[search->best_count++] = one;
    for (size_t at = search->best_count - 1; at > 0; at = (at - 1) / 2) {
        struct best *parent = &heap[(at - 1) / 2];
        if (!is_worse(&heap[at], parent)) return;
        struct best moved = heap[at];
        heap[at] = *parent;
        *parent = moved;
    }
}

/* Call for each row. *ret_end: the last one was; it stays false when the time is over. */
typedef void row_fn(struct bank_ask *ask, struct prepared *row);

static bool pass_rows(struct database *db, struct bank_ask *ask, struct prepared *rows,
                      row_fn *fn, uint64_t until_ms, bool *ret_end, struct err *e) {
    bool row = false, ok;
    size_t seen = 0;
    database_bind_number(rows, 7, ask->search->last_id);
    while ((ok = database_row(db, rows, &row, e)) && row) {
        ask->search->last_id = database_number_of(rows, 0);
        fn(ask, rows);
        if (++seen % LOOK_AT_CLOCK == 0 && clock_mono_ms() >= until_ms) return true;
    }
    *ret_end = ok;
    return ok;
}

static bool search_find(struct database *db, struct bank_ask *ask, struct err *e) {
    struct bank_search *search = ask->search;
    if (!bank_find(db, &ask->where, &search->sums, e)) return false;
    if (!words_each(db, ask->query.words, bank_add_word, &search->wanted, e)) return false;
    search->phase = search->sums.records && search->wanted.count ? WEIGHING : OVER;
    return true;
}

static void count_row(struct bank_ask *ask, struct prepared *row) {
    (void)row;
    ask->search->with++;
}

static void next_word(struct bank_search *search) {
    double records = (double)search->sums.records, with = (double)search->with;
    if (with > records) with = records; /* some came meanwhile */
    search->wanted.idf[search->word++] = log(1 + (records - with + 0.5) / (with + 0.5));
    search->with = search->last_id = 0;
    if (search->word == search->wanted.count) search->phase = SCORING;
}

static bool search_weigh(struct database *db, struct bank_ask *ask, uint64_t until_ms,
                         struct err *e) {
    struct bank_search *search = ask->search;
    char room[BANK_PLACE_BYTES];
    bool end = false;
    struct prepared *rows = match_prepare(db, count_sql, bank_place(search->sums.id, room),
                                          &search->wanted, search->word, 1, e);
    bool ok = rows && pass_rows(db, ask, rows, count_row, until_ms, &end, e);
    database_finalize(rows);
    if (ok && end) next_word(search);
    return ok;
}

static void score_row(struct bank_ask *ask, struct prepared *row) {
    keep_best(ask->search, ask->query.limit + 1,
              (struct best){database_number_of(row, 0), database_real_of(row, 1)});
}

static bool search_score(struct database *db, struct bank_ask *ask, uint64_t until_ms,
                         struct err *e) {
    struct bank_search *search = ask->search;
    const struct bank_sums *sums = &search->sums;
    const char *sql = bank_has_filters(&ask->query) ? scored_some_sql : scored_sql;
    char room[BANK_PLACE_BYTES];
    bool end = false, ok = false;
    struct prepared *rows = match_prepare(db, sql, bank_place(sums->id, room), &search->wanted,
                                          0, search->wanted.count, e);
    if (rows) {
        bank_bind_query(rows, sums->id, &ask->query);
        sqlite3_bind_double(rows->sqlite, 8,
                            (double)(sums->words ? sums->words : 1) / (double)sums->records);
        database_bind(rows, 9,
                      str_of(search->wanted.idf, search->wanted.count * sizeof(double)));
        ok = pass_rows(db, ask, rows, score_row, until_ms, &end, e);
    }
    database_finalize(rows);
    if (ok && end) search->phase = FETCHING;
    return ok;
}

/* --- its answer --------------------------------------------------------------------------- */

static int by_rank(const void *a, const void *b) {
    return is_worse(a, b) ? 1 : -1;
}

/* *ret_found: the record is still there. */
static bool fetch_one(struct database *db, struct bank_ask *ask, struct prepared *row,
                      const struct best *best, bool *ret_found, struct err *e) {
    database_bind_number(row, 1, best->id);
    database_bind_number(row, 2, ask->search->sums.id);
    sqlite3_bind_double(row->sqlite, 3, best->score);
    return database_row(db, row, ret_found, e);
}

static bool fetch_rows(struct database *db, struct bank_ask *ask, struct prepared *row,
                       struct err *e) {
    const struct bank_search *search = ask->search;
    const struct bank_query *query = &ask->query;
    struct bank_item *items = bank_answer_begin(
        ask, query->limit, query->max_bytes + BANK_RECORD_MAX_BYTES + BANK_NAME_MAX_BYTES);
    struct bank_answer *answer = &ask->answer;
    size_t used = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < search->best_count && !answer->more; i++) {
        bool found = false;
        ok = fetch_one(db, ask, row, &search->best[i], &found, e);
        if (ok && found) {
            used += database_bytes(row, 0).len + database_bytes(row, 1).len;
            answer->more =
                answer->count == query->limit || (answer->count && used > query->max_bytes);
            if (!answer->more) ok = take_row(ask, row, &items[answer->count++], e);
        }
        database_reset(row);
    }
    return ok;
}

/* The bank may have been deleted meanwhile. */
static bool search_fetch(struct database *db, struct bank_ask *ask, struct err *e) {
    struct bank_search *search = ask->search;
    struct bank_sums now;
    struct prepared *row = NULL;
    if (!bank_find(db, &ask->where, &now, e)) return false;
    qsort(search->best, search->best_count, sizeof(struct best), by_rank);
    bool ok = database_prepare(
        db, "SELECT name, body, at_us, ?3 FROM bank_record WHERE id = ?1 AND bank = ?2", &row,
        e);
    ok = ok && fetch_rows(db, ask, row, e);
    database_finalize(row);
    search->phase = OVER;
    return ok;
}

static bool search_go_on(struct database *db, struct bank_ask *ask, uint64_t until_ms,
                         struct err *e) {
    switch (ask->search->phase) {
    case FINDING: return search_find(db, ask, e);
    case WEIGHING: return search_weigh(db, ask, until_ms, e);
    case SCORING: return search_score(db, ask, until_ms, e);
    case FETCHING: return search_fetch(db, ask, e);
    case OVER: break;
    }
    return true;
}

static bool search_step(struct database *db, void *ctx, bool *ret_more, struct err *e) {
    struct bank_ask *ask = ctx;
    uint64_t until_ms = clock_mono_ms() + READER_STEP_MS;
    do {
        if (atomic_load(&ask->given_up))
            return err_set(e, ERR_CANCELLED, "memory: the search was given up");
        if (!search_go_on(db, ask, until_ms, e)) return false;
    } while (ask->search->phase != OVER && clock_mono_ms() < until_ms);
    *ret_more = ask->search->phase != OVER;
    return true;
}

static void search_on_done(struct reader_task *task, const struct err *failed, void *ctx) {
    (void)task;
    bank_ask_answer(ctx, failed);
}

struct bank_ask *bank_recall_start(struct store *store, struct loop *loop,
                                   const struct bank_where *where,
                                   const struct bank_query *query, bank_done_fn *done,
                                   void *ctx) {
    struct bank_ask *ask = query_new(loop, where, query, done, ctx, bank_recall_at_server);
    if (store_is_server(store)) {
        store_run(store, &ask->task);
        return ask;
    }
    ask->search = MEM_NEW(struct bank_search);
    /* Folding can make a letter longer, at most by half. */
    buf_init(&ask->search->wanted.text, 2 * BANK_QUERY_MAX_BYTES);
    bank_answer_begin(ask, 0, 0);
    ask->reading = (struct reader_task){
        .step = search_step, .home = loop, .on_done = search_on_done, .ctx = ask};
    store_ask(store, &ask->reading);
    return ask;
}
