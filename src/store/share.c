#include "store/share.h"

#include "metrics/metrics.h"

#include <inttypes.h>
#include <stdio.h>

static const struct {
    struct str name;
    const char *where;
    size_t values; /* of its parameters */
    const char *whose;
} shares[SHARE_COUNT] = {
    [SHARE_OF_APP] = {STR_INIT("app"), "caller = ?2 AND app = ?3 AND", 3,
                      "this app of this caller"},
    [SHARE_OF_CALLER] = {STR_INIT("caller"), "caller = ?2 AND", 2, "this caller"},
    [SHARE_OF_ALL] = {STR_INIT("all"), "", 1, "all callers together"},
};

static bool share_sum(struct database *db, const char *sql, size_t count,
                      const struct share_owner *owner, int64_t unix_ms, int64_t *ret_rows,
                      int64_t *ret_bytes, struct err *e) {
    const struct sql_value values[] = {sql_number(unix_ms), sql_bytes(owner->caller),
                                       sql_bytes(owner->app)};
    struct database_rows rows = database_ask(db, sql, (struct sql_values){values, count}, e);
    if (database_next(&rows, e)) {
        *ret_rows = database_number_of(rows.row, 0);
        *ret_bytes = database_number_of(rows.row, 1);
    }
    return database_end(&rows);
}

bool share_look(struct database *db, const struct share_table *table,
                const struct share_owner *owner, int64_t unix_ms, enum share_of *ret,
                struct err *e) {
    char sql[256];
    *ret = SHARE_COUNT;
    for (size_t i = 0; i < SHARE_COUNT; i++) {
        int64_t rows = 0, bytes = 0;
        snprintf(sql, sizeof(sql),
                 "SELECT count(*), CAST(coalesce(sum(size), 0) AS BIGINT) FROM %s"
                 " WHERE %s until_ms > ?1",
                 table->name, shares[i].where);
        if (!share_sum(db, sql, shares[i].values, owner, unix_ms, &rows, &bytes, e))
            return false;
        if (rows <= table->max[i].rows && bytes <= table->max[i].bytes) continue;
        *ret = (enum share_of)i;
        return true;
    }
    return true;
}

struct str share_name(enum share_of share) {
    return shares[share].name;
}

bool share_refuse(const struct share_table *table, enum share_of full, struct err *e) {
    metrics_report(METRIC_STORE_REFUSED, 1,
                   (struct str[]){str_from(table->name), shares[full].name});
    return err_set(e, ERR_RESOURCE_EXHAUSTED,
                   "%s may have %" PRId64 " %s in the store, or %" PRId64
                   " bytes of them, and has; ask again when the time of some is over",
                   shares[full].whose, table->max[full].rows, table->what,
                   table->max[full].bytes);
}
