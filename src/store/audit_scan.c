#include "store/audit_scan.h"

#include "base/arena.h"
#include "base/mem.h"
#include "store/audit.h"
#include "store/task.h"

#include <assert.h>
#include <stdlib.h>

#define BLOCK_MAX_RECORDS                                                                      \
    ((AUDIT_BLOCK_BYTES + AUDIT_RECORD_ENCODED_BYTES) / 2) /* two bytes each */

/* --- filters ------------------------------------------------------------------------------ */

static bool audit_filter_takes(const struct audit_filter *filter,
                               const struct audit_record *record) {
    if (record->at_ms < filter->from_ms) return false;
    if (filter->to_ms && record->at_ms >= filter->to_ms) return false;
    if (filter->went_well && audit_get(record, AUDIT_OUTCOME) != ERR_NONE) return false;
    for (size_t i = 0; i < AUDIT_TEXTS; i++) {
        if (filter->texts[i].at && !str_equal(filter->texts[i], record->texts[i])) return false;
    }
    return true;
}

/* --- one block ---------------------------------------------------------------------------- */

struct scan {
    const struct audit_query *query;
    audit_each_fn *each;
    void *ctx;
    struct audit_scanned *ret;
    struct audit_record *records; /* of a block, in order; they borrow its bytes */
    size_t room, taken, looked_bytes;
    bool stopped;
};

/* The records of a block; each may refer to those before it. */
static bool read_block(struct scan *scan, const struct audit_block *block, struct err *e) {
    struct str rest = block->bytes;
    struct audit_said said = {.some = false};
    size_t count = 0;
    if (block->count > BLOCK_MAX_RECORDS || block->first > INT64_MAX)
        return err_set(e, ERR_DATA_LOSS,
                       "audit: a block is damaged; 'weir audit verify' says "
                       "more");
    if (block->count > scan->room) {
        scan->room = (size_t)block->count;
        scan->records = mem_resize(scan->records, scan->room * sizeof(*scan->records));
    }
    while (rest.len && count < block->count) {
        struct audit_record *record = &scan->records[count];
        if (!audit_record_decode(&rest, &said, record, e)) return false;
        record->seq = block->first + count++;
    }
    if (count == block->count && rest.len == 0) return true;
    return err_set(e, ERR_DATA_LOSS,
                   "audit: a block has not the records that it counts; 'weir audit verify' "
                   "says more");
}

/* Whether the page goes on after this record. */
static bool scan_record(struct scan *scan, const struct audit_record *record) {
    const struct audit_query *query = scan->query;
    uint64_t seq = record->seq;
    bool newest_first = query->order == AUDIT_NEWEST_FIRST;
    if (newest_first ? query->cursor && seq >= query->cursor : seq <= query->cursor)
        return true;
    if (!newest_first && query->last && seq > query->last) {
        scan->ret->end = true;
        return false;
    }
    if (scan->taken == query->limit) return false;
    scan->ret->cursor = seq;
    if (!audit_filter_takes(&query->filter, record)) return true;
    scan->taken++;
    return scan->each(record, scan->ctx);
}

static bool scan_block(struct scan *scan, const struct audit_block *block, struct err *e) {
    if (!read_block(scan, block, e)) return false;
    for (size_t i = 0; i < block->count && !scan->stopped; i++) {
        size_t place =
            scan->query->order == AUDIT_NEWEST_FIRST ? (size_t)block->count - 1 - i : i;
        scan->stopped = !scan_record(scan, &scan->records[place]);
    }
    scan->looked_bytes += block->bytes.len;
    return true;
}

/* --- the scan ----------------------------------------------------------------------------- */

/* Newest first: the blocks that begin before the cursor. Oldest first: from the block that has
 * the record after the cursor; if that record is gone, from the first one there is. */
static const char *const blocks_sql[] = {
    [AUDIT_NEWEST_FIRST] =
        "SELECT " AUDIT_BLOCK_COLUMNS " FROM audit WHERE first < ? ORDER BY first DESC",
    [AUDIT_OLDEST_FIRST] = "SELECT " AUDIT_BLOCK_COLUMNS
                           " FROM audit WHERE first >= coalesce((SELECT max(first) FROM audit"
                           " WHERE first <= ?), 0) ORDER BY first",
};

static int64_t place_of(const struct audit_query *query) {
    if (query->order == AUDIT_OLDEST_FIRST) return (int64_t)query->cursor + 1;
    return query->cursor ? (int64_t)query->cursor : INT64_MAX;
}

/* Whether the records after the cursor begin later than they should. */
static bool misses_some(const struct audit_query *query, const struct audit_block *block,
                        bool first) {
    return first && query->order == AUDIT_OLDEST_FIRST && query->cursor &&
           (block->first > query->cursor + 1);
}

/* Records are written within seconds of their time, and clocks are set by less than this. So
 * what is further away is not looked at. */
#define TIME_SLACK_MS (INT64_C(60) * 60 * 1000)

static bool is_beyond(const struct audit_query *query, const struct audit_block *block) {
    const struct audit_filter *filter = &query->filter;
    if (query->order == AUDIT_NEWEST_FIRST)
        return filter->from_ms && block->at_ms < filter->from_ms - TIME_SLACK_MS;
    return filter->to_ms && block->at_ms > filter->to_ms + TIME_SLACK_MS;
}

static bool scan_blocks(struct scan *scan, struct database *db, struct err *e) {
    bool first = true, to_end = true;
    struct database_rows blocks = database_ask(db, blocks_sql[scan->query->order],
                                               VALUES(sql_number(place_of(scan->query))), e);
    while (to_end && database_next(&blocks, e)) {
        struct audit_block block = audit_block_of(blocks.row);
        scan->ret->gap = scan->ret->gap || misses_some(scan->query, &block, first);
        first = false;
        to_end = scan->looked_bytes < AUDIT_SCAN_BYTES; /* else it goes on */
        if (!to_end || is_beyond(scan->query, &block)) break;
        blocks.ok = scan_block(scan, &block, e);
        to_end = !scan->stopped;
    }
    scan->ret->end = scan->ret->end || (blocks.ok && to_end);
    return database_end(&blocks);
}

bool audit_scan(struct database *db, const struct audit_query *query, audit_each_fn *each,
                void *ctx, struct audit_scanned *ret, struct err *e) {
    struct scan scan = {.query = query, .each = each, .ctx = ctx, .ret = ret};
    int64_t newest = 0;
    assert(query->cursor < INT64_MAX);
    *ret = (struct audit_scanned){.cursor = query->cursor};
    bool ok =
        database_number(db, "SELECT " AUDIT_LENGTH, &newest, e) && scan_blocks(&scan, db, e);
    free(scan.records);
    ret->newest = (uint64_t)newest;
    return ok;
}

/* --- from a loop -------------------------------------------------------------------------- */

struct audit_ask {
    struct store_task task;
    struct buf texts; /* of the filter */
    struct audit_query query;
    struct arena *arena; /* of the answer */
    struct audit_record *records;
    struct audit_page page;
    audit_page_fn *done; /* NULL: cancelled */
    void *ctx;
};

/* The record lives on in the arena, in the encoded form. */
static bool keep_record(const struct audit_record *record, void *ctx) {
    struct audit_ask *ask = ctx;
    struct audit_record *kept = &ask->records[ask->page.count];
    *kept = *record;
    for (size_t i = 0; i < AUDIT_TEXTS; i++) {
        bool fits =
            !kept->texts[i].len || arena_str(ask->arena, record->texts[i], &kept->texts[i]);
        assert(fits);
        (void)fits;
    }
    ask->page.count++;
    return true;
}

static bool run_page(struct database *db, void *ctx, struct err *e) {
    struct audit_ask *ask = ctx;
    size_t limit = ask->query.limit;
    arena_free(ask->arena);
    ask->arena = arena_new(limit * (AUDIT_RECORD_MAX_BYTES + AUDIT_TEXTS * 64) + MIB);
    ask->page = (struct audit_page){.records = ask->records};
    return audit_scan(db, &ask->query, keep_record, ask, &ask->page.scanned, e);
}

static void audit_scan_on_done(const struct err *failed, void *ctx) {
    struct audit_ask *ask = ctx;
    if (ask->done) ask->done(&ask->page, failed, ask->ctx);
    buf_done(&ask->texts);
    arena_free(ask->arena);
    free(ask->records);
    free(ask);
}

struct audit_ask *audit_page_start(struct store *store, struct loop *loop,
                                   const struct audit_query *query, audit_page_fn *done,
                                   void *ctx) {
    struct audit_ask *ask = MEM_NEW(struct audit_ask);
    struct str *texts[AUDIT_TEXTS];
    assert(query->limit > 0 && query->limit <= AUDIT_PAGE_MAX);
    ask->query = *query;
    for (size_t i = 0; i < AUDIT_TEXTS; i++) texts[i] = &ask->query.filter.texts[i];
    buf_keep_texts(&ask->texts, texts, AUDIT_TEXTS);
    ask->records = mem_zero(query->limit, sizeof(*ask->records));
    ask->done = done;
    ask->ctx = ctx;
    ask->task =
        (struct store_task){.reads_only = true, .fn = run_page, .on_done = audit_scan_on_done};
    store_run(store, loop, &ask->task, ask);
    return ask;
}

void audit_forget(struct audit_ask *ask) {
    if (ask) ask->done = NULL;
}
