#include "store/bank_search.h"

#include "base/clock.h"
#include "base/mem.h"
#include "store/words.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#define LOOK_AT_CLOCK 64 /* rows */
#define GIVEN_UP "memory: the search was given up"

const struct state bank_search_phases[BANK_SEARCH_PHASE_COUNT] = {
    /* clang-format off */
    [BANK_FINDING]  = {"finding",  TO(BANK_WEIGHING) | TO(BANK_READING) | TO(BANK_OVER)},
    [BANK_WEIGHING] = {"weighing", TO(BANK_SCORING) | TO(BANK_READING)},
    [BANK_SCORING]  = {"scoring",  TO(BANK_FETCHING) | TO(BANK_OVER)},
    [BANK_READING]  = {"reading",  TO(BANK_MERGING)},
    [BANK_MERGING]  = {"merging",  TO(BANK_READING) | TO(BANK_FETCHING)},
    [BANK_FETCHING] = {"fetching", TO(BANK_OVER)},
    [BANK_OVER]     = {"over",     0},
    /* clang-format on */
};

void bank_search_move(struct bank_search *search, enum bank_search_phase next) {
    assert(states_allow(bank_search_phases, search->phase, next));
    search->phase = next;
}

void bank_search_free(struct bank_search *search) {
    if (!search) return;
    buf_done(&search->wanted.text);
    buf_done(&search->match);
    buf_done(&search->weights);
    bank_blend_free(search->blend);
    free(search);
}

/* --- the best ----------------------------------------------------------------------------- */

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

void bank_keep_best(struct bank_search *search, size_t max, struct best one) {
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

/* --- words in SQLite's index ---------------------------------------------------------------- */

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

/* ?1 words, ?7 the last record that was looked at, ?8 average, ?9 idf, ?10 the last that is to be.
 * Only a query with filters needs the rows of the records. */
#define SCORED(from, where)                                                                    \
    "SELECT bank_words.rowid, bank_score(bank_words, ?8, ?9) FROM bank_words" from             \
    " WHERE bank_words MATCH ?1 AND bank_words.rowid > ?7 AND bank_words.rowid <= ?10" where   \
    " ORDER BY bank_words.rowid"

static const char scored_sql[] = SCORED("", "");
static const char scored_some_sql[] =
    SCORED(" CROSS JOIN bank_record AS r ON r.id = bank_words.rowid", " AND" BANK_FITS);

static const char count_sql[] = "SELECT rowid FROM bank_words WHERE bank_words MATCH ?1"
                                " AND rowid > ?7 ORDER BY rowid";

double bank_average(const struct bank_sums *sums) {
    return (double)(sums->words ? sums->words : 1) / (double)sums->records;
}

struct prepared *bank_text_rows(struct database *db, struct bank_ask *ask, int64_t upto,
                                struct err *e) {
    struct bank_search *search = ask->search;
    if (database_is_postgres(db)) return bank_server_text_rows(db, ask, upto, e);
    const char *sql = bank_has_filters(&ask->query) ? scored_some_sql : scored_sql;
    char room[BANK_PLACE_BYTES];
    struct prepared *rows = match_prepare(db, sql, bank_place(search->sums.id, room),
                                          &search->wanted, 0, search->wanted.count, e);
    if (!rows) return NULL;
    bank_bind_query(rows, search->sums.id, &ask->query);
    database_bind_number(rows, 7, search->last_id);
    sqlite3_bind_double(rows->sqlite, 8, bank_average(&search->sums));
    database_bind(rows, 9, str_of(search->wanted.idf, search->wanted.count * sizeof(double)));
    database_bind_number(rows, 10, upto);
    return rows;
}

bool bank_pass_rows(struct database *db, struct bank_ask *ask, struct prepared *rows,
                    bank_row_fn *fn, uint64_t until_ms, bool *ret_end, struct err *e) {
    bool row = false, ok;
    size_t seen = 0;
    while ((ok = database_row(db, rows, &row, e)) && row) {
        ask->search->last_id = database_number_of(rows, 0);
        fn(ask, rows);
        if (++seen % LOOK_AT_CLOCK == 0 && clock_mono_ms() >= until_ms) return true;
    }
    *ret_end = ok && !(database_is_postgres(db) && seen == BANK_TEXT_ROWS);
    return ok;
}

/* --- the phases --------------------------------------------------------------------------- */

/* Whether the query's vector can be compared with the bank's. */
static bool vector_fits(const struct bank_query *query, const struct bank_sums *sums) {
    return query->vector && !query->by_words && sums->dimension > 0 &&
           query->space == sums->space && query->dimension == (size_t)sums->dimension;
}

static bool ask_for_vector(struct database *db, struct bank_ask *ask, struct err *e) {
    bool found = false;
    if (!bank_read(db, ask, &found, e)) return false;
    ask->answer.wants_vector = found;
    ask->answer.space = ask->search->sums.space;
    bank_search_move(ask->search, BANK_OVER);
    return true;
}

static void after_words(struct bank_search *search) {
    search->last_id = 0;
    bank_search_move(search, search->blend ? BANK_READING : BANK_SCORING);
}

static bool search_find(struct database *db, struct bank_ask *ask, struct err *e) {
    struct bank_search *search = ask->search;
    const struct bank_query *query = &ask->query;
    if (!bank_find(db, &ask->where, &search->sums, e)) return false;
    search->wanted.postgres = database_is_postgres(db);
    if (!words_each(db, query->words, bank_add_word, &search->wanted, e)) return false;
    if (search->sums.records == 0) {
        bank_search_move(search, BANK_OVER);
        return true;
    }
    if (search->sums.dimension && !query->vector && !query->by_words)
        return ask_for_vector(db, ask, e);
    if (vector_fits(query, &search->sums)) search->blend = bank_blend_new(query);
    if (search->wanted.count)
        bank_search_move(search, BANK_WEIGHING);
    else if (search->blend)
        after_words(search);
    else
        bank_search_move(search, BANK_OVER);
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
    if (search->word == search->wanted.count) after_words(search);
}

static bool search_weigh(struct database *db, struct bank_ask *ask, uint64_t until_ms,
                         struct err *e) {
    struct bank_search *search = ask->search;
    char room[BANK_PLACE_BYTES];
    bool end = false;
    if (database_is_postgres(db)) {
        if (!bank_server_weigh(db, search, e)) return false;
        after_words(search);
        return true;
    }
    struct prepared *rows = match_prepare(db, count_sql, bank_place(search->sums.id, room),
                                          &search->wanted, search->word, 1, e);
    if (rows) database_bind_number(rows, 7, search->last_id);
    bool ok = rows && bank_pass_rows(db, ask, rows, count_row, until_ms, &end, e);
    database_finalize(rows);
    if (ok && end) next_word(search);
    return ok;
}

static void score_row(struct bank_ask *ask, struct prepared *row) {
    bank_keep_best(
        ask->search, ask->query.limit + 1,
        (struct best){database_number_of(row, 0), database_real_of(row, 1), BANK_BY_WORDS});
}

static bool search_score(struct database *db, struct bank_ask *ask, uint64_t until_ms,
                         struct err *e) {
    bool end = false;
    if (database_is_postgres(db)) {
        bank_search_move(ask->search, BANK_OVER);
        return bank_server_recall(db, ask, e);
    }
    struct prepared *rows = bank_text_rows(db, ask, INT64_MAX, e);
    bool ok = rows && bank_pass_rows(db, ask, rows, score_row, until_ms, &end, e);
    database_finalize(rows);
    if (ok && end) bank_search_move(ask->search, BANK_FETCHING);
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
            if (answer->more) break;
            struct bank_item *item = &items[answer->count++];
            *item =
                (struct bank_item){.score = search->best[i].score, .by = search->best[i].by};
            ok = bank_take_row(ask, row, item, e);
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
        db, "SELECT name, body, at_us FROM bank_record WHERE id = ?1 AND bank = ?2", &row, e);
    ok = ok && fetch_rows(db, ask, row, e);
    database_finalize(row);
    bank_search_move(search, BANK_OVER);
    return ok;
}

static bool search_go_on(struct database *db, struct bank_ask *ask, uint64_t until_ms,
                         struct err *e) {
    switch (ask->search->phase) {
    case BANK_FINDING: return search_find(db, ask, e);
    case BANK_WEIGHING: return search_weigh(db, ask, until_ms, e);
    case BANK_SCORING: return search_score(db, ask, until_ms, e);
    case BANK_READING: return bank_blend_read(db, ask, e);
    case BANK_MERGING: return bank_blend_merge(db, ask, until_ms, e);
    case BANK_FETCHING: return search_fetch(db, ask, e);
    case BANK_OVER:
    case BANK_SEARCH_PHASE_COUNT: break;
    }
    return true;
}

/* A server does the words in a few statements. */
static bool is_one_step(const struct database *db, const struct bank_search *search) {
    return database_is_postgres(db) && !search->blend;
}

static bool search_step(struct database *db, void *ctx, bool *ret_more, struct err *e) {
    struct bank_ask *ask = ctx;
    uint64_t until_ms = clock_mono_ms() + LONG_READER_STEP_MS;
    do {
        if (atomic_load(&ask->given_up)) return err_set(e, ERR_CANCELLED, GIVEN_UP);
        if (!search_go_on(db, ask, until_ms, e)) return false;
    } while (ask->search->phase != BANK_OVER &&
             (clock_mono_ms() < until_ms || is_one_step(db, ask->search)));
    *ret_more = ask->search->phase != BANK_OVER;
    return true;
}

/* --- on a server -------------------------------------------------------------------------- */

/* One step; the store's other work has its turn before the next one. */
static bool run_step(struct database *db, void *ctx, struct err *e) {
    bool more = false;
    return search_step(db, ctx, &more, e);
}

/* Who gives a search up may close the store next. */
static void on_step(const struct err *failed, void *ctx) {
    struct bank_ask *ask = ctx;
    struct err given_up;
    if (failed || ask->search->phase == BANK_OVER) {
        bank_ask_answer(failed, ask);
    } else if (atomic_load(&ask->given_up)) {
        err_set(&given_up, ERR_CANCELLED, GIVEN_UP);
        bank_ask_answer(&given_up, ask);
    } else {
        store_run(ask->store, ask->task.home, &ask->task, ask);
    }
}

struct bank_ask *bank_recall_start(struct store *store, struct loop *loop,
                                   const struct bank_where *where,
                                   const struct bank_query *query, bank_done_fn *done,
                                   void *ctx) {
    struct bank_ask *ask = bank_query_new(where, query, done, ctx, run_step);
    ask->search = MEM_NEW(struct bank_search);
    /* Folding can make a letter longer, at most by half. */
    buf_init(&ask->search->wanted.text, 2 * BANK_QUERY_MAX_BYTES);
    buf_init(&ask->search->match, 2 * BANK_QUERY_MAX_BYTES + KIB);
    buf_init(&ask->search->weights, 4 * KIB);
    bank_answer_begin(ask, 0, 0);
    if (store_is_server(store)) {
        ask->store = store;
        ask->task.on_done = on_step;
        store_run(store, loop, &ask->task, ask);
        return ask;
    }
    ask->reading = (struct long_reader_task){
        .step = search_step, .home = loop, .on_done = bank_ask_answer, .ctx = ask};
    store_ask(store, &ask->reading);
    return ask;
}
