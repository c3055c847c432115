#include "base/mem.h"
#include "store/bank_search.h"
#include "store/bank_vector.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (512 * KIB)      /* of vectors */
#define SERVER_BLOCK_BYTES (4 * MIB) /* a server looks up the words once for each block */
#define BLOCK_MAX 4096
#define BLOCK_MIN 16

struct near {
    int64_t id;
    double score;
};

struct bank_blend {
    double query_norm;
    double text_full; /* the score of a record that is nothing but the words of the query */
    /* The block: the vectors up to `upto`. */
    struct near block[BLOCK_MAX];
    size_t count, at; /* those before `at` were kept */
    int64_t upto;
    bool last;                        /* there is no block after it */
    float values[BANK_DIMENSION_MAX]; /* a row's, aligned */
};

/* --- the nearness of two vectors ------------------------------------------------------------ */

/* In four lanes, so that the sums do not wait for each other. */
static double dot(const float *a, const float *b, size_t count) {
    double sums[4] = {0};
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        for (size_t lane = 0; lane < 4; lane++)
            sums[lane] += (double)a[i + lane] * (double)b[i + lane];
    }
    for (; i < count; i++) sums[0] += (double)a[i] * (double)b[i];
    return sums[0] + sums[1] + (sums[2] + sums[3]);
}

static double distance(const float *a, const float *b, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        double difference = (double)a[i] - (double)b[i];
        sum += difference * difference;
    }
    return sqrt(sum);
}

/* A vector of length 0 has no direction. */
static double nearness(const struct bank_blend *blend, const struct bank_query *query) {
    const float *values = blend->values;
    if (query->by_distance) return 1 / (1 + distance(query->vector, values, query->dimension));
    double norms = blend->query_norm * sqrt(dot(values, values, query->dimension));
    if (norms <= 0) return 0;
    double cosine = dot(query->vector, values, query->dimension) / norms;
    return fmax(-1, fmin(1, cosine));
}

struct bank_blend *bank_blend_new(const struct bank_query *query) {
    struct bank_blend *blend = MEM_NEW(struct bank_blend);
    assert(query->dimension <= BANK_DIMENSION_MAX);
    blend->query_norm = sqrt(dot(query->vector, query->vector, query->dimension));
    return blend;
}

void bank_blend_free(struct bank_blend *blend) {
    free(blend);
}

/* --- a block of vectors ----------------------------------------------------------------------- */

/* ?1 the place of the space's record 0, ?7 and ?8 the range, ?9 limit. Only a query with filters
 * needs the rows of the records; those that do not fit count as read all the same. */
#define VECTORS(fits, from)                                                                    \
    "SELECT v.place, v.bytes, " fits " FROM bank_vector AS v" from                             \
    " WHERE v.place > ?7 AND v.place < ?8 ORDER BY v.place LIMIT ?9"
#define FITS "CAST(CASE WHEN" BANK_FITS "THEN 1 ELSE 0 END AS BIGINT)"
#define RECORD " JOIN bank_record AS r ON r.id = v.place - ?1"

static const char vectors_sql[] = VECTORS("1", "");
static const char vectors_some_sql[] = VECTORS(FITS, " CROSS" RECORD);
static const char vectors_some_server_sql[] = VECTORS(FITS, RECORD);

static const char *vectors_of(const struct database *db, const struct bank_query *query) {
    if (!bank_has_filters(query)) return vectors_sql;
    return database_sql(db, vectors_some_sql, vectors_some_server_sql);
}

static size_t block_rows(const struct database *db, const struct bank_query *query) {
    size_t bytes = database_is_postgres(db) ? SERVER_BLOCK_BYTES : BLOCK_BYTES;
    size_t rows = bytes / (query->dimension * sizeof(float));
    if (rows > BLOCK_MAX) return BLOCK_MAX;
    return rows < BLOCK_MIN ? BLOCK_MIN : rows;
}

static void bind_vectors(struct prepared *rows, const struct bank_ask *ask, size_t limit) {
    const struct bank_search *search = ask->search;
    int64_t first = bank_vector_place(search->sums.space, 0);
    bank_bind_query(rows, search->sums.id, &ask->query);
    database_bind_number(rows, 1, first);
    database_bind_number(rows, 7, first + search->last_id);
    database_bind_number(rows, 8, bank_vector_place(search->sums.space + 1, 0));
    database_bind_number(rows, 9, (int64_t)limit);
}

/* Another length than the bank's cannot come from our own code. */
static void read_row(struct bank_ask *ask, struct prepared *row) {
    struct bank_blend *blend = ask->search->blend;
    struct str bytes = database_bytes(row, 1);
    blend->upto = database_number_of(row, 0) - bank_vector_place(ask->search->sums.space, 0);
    if (!database_number_of(row, 2) || bytes.len != ask->query.dimension * sizeof(float))
        return;
    memcpy(blend->values, bytes.at, bytes.len);
    blend->block[blend->count++] = (struct near){blend->upto, nearness(blend, &ask->query)};
}

static double sum_of(const double *idf, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += idf[i];
    return sum;
}

bool bank_blend_read(struct database *db, struct bank_ask *ask, struct err *e) {
    struct bank_search *search = ask->search;
    struct bank_blend *blend = search->blend;
    struct prepared *rows = NULL;
    size_t limit = block_rows(db, &ask->query), seen = 0;
    bool row = false;
    blend->count = blend->at = 0;
    blend->text_full = (BANK_K1 + 1) * sum_of(search->wanted.idf, search->wanted.count);
    bool ok = database_prepare(db, vectors_of(db, &ask->query), &rows, e);
    if (ok) bind_vectors(rows, ask, limit);
    while (ok && (ok = database_row(db, rows, &row, e)) && row) {
        read_row(ask, rows);
        seen++;
    }
    database_finalize(rows);
    blend->last = seen < limit;
    if (blend->last) blend->upto = INT64_MAX;
    if (ok) bank_search_move(search, BANK_MERGING);
    return ok;
}

/* --- both parts of a score ------------------------------------------------------------------------ */

static void keep(struct bank_ask *ask, int64_t id, double near, double text, unsigned by) {
    double score = (near + text) / 2;
    if (score > 0)
        bank_keep_best(ask->search, ask->query.limit + 1, (struct best){id, score, by});
}

/* Keep those of the block before the record `id`, which have none of the words. */
static void keep_until(struct bank_ask *ask, int64_t id) {
    struct bank_blend *blend = ask->search->blend;
    for (; blend->at < blend->count && blend->block[blend->at].id < id; blend->at++)
        keep(ask, blend->block[blend->at].id, blend->block[blend->at].score, 0, BANK_BY_VECTOR);
}

static void merge_row(struct bank_ask *ask, struct prepared *row) {
    struct bank_blend *blend = ask->search->blend;
    int64_t id = database_number_of(row, 0);
    double text = database_real_of(row, 1) / blend->text_full;
    keep_until(ask, id);
    if (blend->at < blend->count && blend->block[blend->at].id == id) {
        keep(ask, id, blend->block[blend->at++].score, text, BANK_BY_WORDS | BANK_BY_VECTOR);
    } else {
        keep(ask, id, 0, text, BANK_BY_WORDS);
    }
}

static bool merge_words(struct database *db, struct bank_ask *ask, uint64_t until_ms,
                        bool *ret_end, struct err *e) {
    struct prepared *rows = bank_text_rows(db, ask, ask->search->blend->upto, e);
    bool ok = rows && bank_pass_rows(db, ask, rows, merge_row, until_ms, ret_end, e);
    database_finalize(rows);
    return ok;
}

bool bank_blend_merge(struct database *db, struct bank_ask *ask, uint64_t until_ms,
                      struct err *e) {
    struct bank_search *search = ask->search;
    bool end = search->wanted.count == 0;
    if (!end && !merge_words(db, ask, until_ms, &end, e)) return false;
    if (!end) return true;
    keep_until(ask, INT64_MAX);
    search->last_id = search->blend->upto;
    bank_search_move(search, search->blend->last ? BANK_FETCHING : BANK_READING);
    return true;
}
