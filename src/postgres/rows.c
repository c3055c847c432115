#include "postgres/libpq.h"
#include "postgres/postgres.h"

#include <assert.h>

static int64_t affected(const struct libpq *pq, const PGresult *result) {
    int64_t count;
    /* libpq takes it without const, and does not change it. */
    const char *text = pq->PQcmdTuples((PGresult *)(uintptr_t)result);
    return str_to_i64(str_from(text), &count) ? count : 0;
}

struct postgres_rows postgres_rows_of(const void *result) {
    const struct libpq *pq = libpq_loaded();
    return (struct postgres_rows){
        .result = result,
        .count = (size_t)pq->PQntuples(result),
        .affected = affected(pq, result),
    };
}

struct postgres_rows postgres_rows(const struct postgres_request *request, size_t step) {
    assert(step < request->step_count && request->results[step]);
    return postgres_rows_of(request->results[step]);
}

bool postgres_is_null(struct postgres_rows rows, size_t row, size_t column) {
    return libpq_loaded()->PQgetisnull(rows.result, (int)row, (int)column);
}

struct str postgres_content(struct postgres_rows rows, size_t row, size_t column) {
    const struct libpq *pq = libpq_loaded();
    assert(row < rows.count && column < (size_t)pq->PQnfields(rows.result));
    int len = pq->PQgetlength(rows.result, (int)row, (int)column);
    return str_of(pq->PQgetvalue(rows.result, (int)row, (int)column), (size_t)len);
}

/* The highest byte first, in two's complement. */
int64_t postgres_number(struct postgres_rows rows, size_t row, size_t column) {
    struct str bytes = postgres_content(rows, row, column);
    if (bytes.len == 0) return 0;
    assert(bytes.len <= sizeof(int64_t));
    bool negative = bytes.len > 1 && (bytes.at[0] & 0x80);
    uint64_t number = negative ? UINT64_MAX : 0;
    for (size_t i = 0; i < bytes.len; i++) number = number << 8 | (uint8_t)bytes.at[i];
    return (int64_t)number;
}
