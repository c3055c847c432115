/* audit_scan: read the audit log, page by page.
 *
 * A scan looks at AUDIT_SCAN_BYTES of records at most, so it never keeps the store's thread for
 * long. A page can therefore be short, or empty, and still not be the last.
 *
 * Memory   a record is borrowed during the callback.
 * Threads  audit_scan(): the database's. audit_page_start(): any loop, where the answer comes.
 */
#ifndef WEIR_STORE_AUDIT_SCAN_H
#define WEIR_STORE_AUDIT_SCAN_H

#include "store/audit_record.h"
#include "store/store.h"

#define AUDIT_SCAN_BYTES (256 * KIB)
#define AUDIT_PAGE_MAX 1000

enum audit_order { AUDIT_NEWEST_FIRST, AUDIT_OLDEST_FIRST };

struct audit_filter {
    struct str texts[AUDIT_TEXTS]; /* what a record must have; at == NULL: anything */
    bool went_well;                /* its outcome must be OK */
    int64_t from_ms, to_ms;        /* from_ms <= at_ms < to_ms; to_ms 0: no end */
};

struct audit_query {
    struct audit_filter filter;
    enum audit_order order;
    uint64_t cursor; /* newest first: records before this one, 0: from the newest on;
                        oldest first: records after this one, 0: from the oldest on */
    uint64_t last;   /* oldest first: up to this one; 0: up to the newest */
    size_t limit;    /* of records in the answer, 1 to AUDIT_PAGE_MAX */
};

struct audit_scanned {
    uint64_t cursor; /* of the next page */
    bool end;        /* there is no next page */
    bool gap;        /* oldest first, with a cursor: the record after it is gone */
    uint64_t newest; /* number of the newest record of all, 0: there is none */
};

struct database;

/* `each` is called for every record of the page, until it returns false. */
typedef bool audit_each_fn(const struct audit_record *record, void *ctx);
MUST_CHECK bool audit_scan(struct database *db, const struct audit_query *query,
                           audit_each_fn *each, void *ctx, struct audit_scanned *ret,
                           struct err *e);

/* --- from a loop -------------------------------------------------------------------------- */

struct audit_page {
    const struct audit_record *records;
    size_t count;
    struct audit_scanned scanned;
};

/* Called once, on `loop`, never before audit_page_start() returns. failed is NULL on success. */
typedef void audit_page_fn(const struct audit_page *page, const struct err *failed, void *ctx);

struct audit_ask; /* a request on its way; freed after `done` was called */

/* The query is copied. */
struct audit_ask *audit_page_start(struct store *store, struct loop *loop,
                                   const struct audit_query *query, audit_page_fn *done,
                                   void *ctx);

/* Stop waiting: `done` will not be called. NULL is fine. */
void audit_forget(struct audit_ask *ask);

#endif
