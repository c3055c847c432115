#include "store/audit.h"

#include "base/clock.h"
#include "base/log.h"

#include <assert.h>
#include <inttypes.h>
#include <nettle/sha2.h>

/* A block that is not closed yet, and one record more. */
#define BLOCK_ROOM_BYTES (AUDIT_BLOCK_BYTES + AUDIT_RECORD_ENCODED_BYTES)
#define PRUNE_BLOCKS 512 /* per transaction: about a millisecond */
#define SLACK 16         /* pruning begins when this part too much is kept */

_Static_assert(SHA256_DIGEST_SIZE == AUDIT_HASH_BYTES, "a hash is a SHA-256");

/* --- hashes ------------------------------------------------------------------------------- */

static void hash_number(struct sha256_ctx *hash, uint64_t number) {
    uint8_t bytes[8];
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (uint8_t)(number >> (8 * i));
    sha256_update(hash, sizeof(bytes), bytes);
}

static void hash_bytes(struct sha256_ctx *hash, struct str bytes) {
    if (bytes.len) sha256_update(hash, bytes.len, (const uint8_t *)bytes.at);
}

void audit_hash(const struct audit_block *block, uint8_t ret[AUDIT_HASH_BYTES]) {
    struct sha256_ctx hash;
    sha256_init(&hash);
    hash_bytes(&hash, STR("weir audit 1\n"));
    hash_bytes(&hash, block->previous);
    hash_number(&hash, block->first);
    hash_number(&hash, block->count);
    hash_number(&hash, (uint64_t)block->at_ms);
    hash_number(&hash, block->upto);
    hash_bytes(&hash, block->bytes);
    sha256_digest(&hash, AUDIT_HASH_BYTES, ret);
}

void audit_digest(const struct str *texts, size_t count, uint8_t ret[AUDIT_HASH_BYTES]) {
    struct sha256_ctx hash;
    sha256_init(&hash);
    for (size_t i = 0; i < count; i++) {
        hash_number(&hash, texts[i].len);
        hash_bytes(&hash, texts[i]);
    }
    sha256_digest(&hash, AUDIT_HASH_BYTES, ret);
}

struct audit_block audit_block_of(struct prepared *row) {
    return (struct audit_block){.first = (uint64_t)database_number_of(row, 0),
                                .count = (uint64_t)database_number_of(row, 1),
                                .at_ms = database_number_of(row, 2),
                                .upto = (uint64_t)database_number_of(row, 3),
                                .previous = database_bytes(row, 4),
                                .hash = database_bytes(row, 5),
                                .bytes = database_bytes(row, 6)};
}

/* --- opening ------------------------------------------------------------------------------ */

static void head_of(const struct audit_block *block, struct audit_head *ret) {
    *ret = (struct audit_head){.seq = block->first + block->count - 1, .upto = block->upto};
    memcpy(ret->hash, block->hash.at, AUDIT_HASH_BYTES);
}

static bool read_head(struct audit *audit, struct err *e) {
    struct database_rows last = database_ask(
        audit->db, "SELECT " AUDIT_BLOCK_COLUMNS " FROM audit ORDER BY first DESC LIMIT 1",
        (struct sql_values){0}, e);
    if (database_next(&last, e)) {
        struct audit_block block = audit_block_of(last.row);
        last.ok = block.hash.len == AUDIT_HASH_BYTES;
        if (last.ok)
            head_of(&block, &audit->head);
        else
            err_set(e, ERR_DATA_LOSS,
                    "store %s: the newest row of its audit log is damaged; restore it from a "
                    "backup, or move its folder away to begin anew",
                    audit->db->path);
    }
    return database_end(&last);
}

static bool check_length(struct audit *audit, struct err *e) {
    int64_t noted = 0;
    if (!database_number(audit->db, "SELECT value FROM meta WHERE name = 'audit'", &noted, e))
        return false;
    if (noted < 0 || (uint64_t)noted <= audit->head.seq) return true;
    log_error("store %s: its audit log ends with record %" PRIu64 ", and an earlier start saw "
              "record %" PRId64 ": records are gone; 'weir audit verify' says more",
              audit->db->path, audit->head.seq, noted);
    audit->head.seq = (uint64_t)noted;
    return true;
}

bool audit_open(struct audit *audit, struct database *db, struct err *e) {
    *audit = (struct audit){.db = db, .limits = audit->limits, .oldest_ms = INT64_MAX};
    buf_init(&audit->records, BLOCK_ROOM_BYTES);
    audit_runs_init(&audit->runs);
    db->audit = audit;
    return read_head(audit, e) && check_length(audit, e) &&
           database_prepare(
               db, "INSERT INTO audit(" AUDIT_BLOCK_COLUMNS ") VALUES(?, ?, ?, ?, ?, ?, ?)",
               &audit->append, e) &&
           database_prepare(db,
                            "SELECT " AUDIT_BLOCK_COLUMNS " FROM audit ORDER BY first LIMIT ?",
                            &audit->oldest, e) &&
           database_prepare(db, "DELETE FROM audit WHERE first < ?", &audit->remove, e);
}

bool audit_reread(struct audit *audit, struct err *e) {
    audit->oldest_ms = INT64_MAX;
    return read_head(audit, e);
}

void audit_close(struct audit *audit) {
    if (!audit->db) return;
    database_finalize(audit->append);
    database_finalize(audit->oldest);
    database_finalize(audit->remove);
    buf_done(&audit->records);
    audit_runs_clear(&audit->runs);
    audit->db->audit = NULL;
    audit->db = NULL;
    audit->append = audit->oldest = audit->remove = NULL;
}

/* --- writing ------------------------------------------------------------------------------ */

static void begin_block(struct audit *audit) {
    audit->count = 0;
    audit->said = (struct audit_said){.some = false};
    buf_clear(&audit->records);
}

void audit_begin(struct audit *audit) {
    audit->next = audit->head;
    audit->now_ms = 0;
    begin_block(audit);
}

int64_t audit_now(struct audit *audit) {
    if (!audit->now_ms) audit->now_ms = clock_unix_ms();
    return audit->now_ms;
}

/* Write the gathered records as one block. */
static bool write_block(struct audit *audit, struct err *e) {
    uint8_t hash[AUDIT_HASH_BYTES];
    struct audit_head *next = &audit->next;
    const struct audit_block block = {.first = next->seq + 1,
                                      .count = audit->count,
                                      .at_ms = audit_now(audit),
                                      .upto = next->upto + audit->records.len,
                                      .previous = str_of(next->hash, AUDIT_HASH_BYTES),
                                      .bytes = buf_str(&audit->records)};
    audit_hash(&block, hash);
    database_bind_number(audit->append, 1, (int64_t)block.first);
    database_bind_number(audit->append, 2, (int64_t)block.count);
    database_bind_number(audit->append, 3, block.at_ms);
    database_bind_number(audit->append, 4, (int64_t)block.upto);
    database_bind(audit->append, 5, block.previous);
    database_bind(audit->append, 6, str_of(hash, AUDIT_HASH_BYTES));
    database_bind(audit->append, 7, block.bytes);
    if (!database_do(audit->db, audit->append, e)) return false;
    next->seq += audit->count;
    next->upto = block.upto;
    memcpy(next->hash, hash, AUDIT_HASH_BYTES);
    begin_block(audit);
    return true;
}

/* Room for the next record. A block has all of its room from the first one on, because its
 * records refer to those before them. */
static bool store_audit_make_room(struct audit *audit, struct err *e) {
    return audit->count || buf_room(&audit->records, BLOCK_ROOM_BYTES) ||
           err_set(e, ERR_RESOURCE_EXHAUSTED, "audit: a block has no room");
}

/* A record was appended to those of the next block. */
static bool audit_counted(struct audit *audit, bool fits, struct err *e) {
    assert(fits); /* a block is written before it is full */
    audit->count++;
    return audit->records.len < AUDIT_BLOCK_BYTES || write_block(audit, e);
}

static bool add_dated(struct audit *audit, const struct audit_record *record, struct err *e) {
    return store_audit_make_room(audit, e) &&
           audit_counted(audit, audit_record_encode(record, &audit->said, &audit->records), e);
}

bool audit_add(struct audit *audit, const struct audit_record *record, struct err *e) {
    if (record->at_ms) return add_dated(audit, record, e); /* it is large to copy */
    struct audit_record dated = *record;
    dated.at_ms = audit_now(audit);
    return add_dated(audit, &dated, e);
}

bool audit_note(struct database *db, const struct audit_record *record, struct err *e) {
    return !db->audit || audit_add(db->audit, record, e);
}

bool audit_note_all(struct database *db, struct str records, struct err *e) {
    struct audit *audit = db->audit;
    struct audit_record record;
    while (audit && records.len) {
        if (!audit_record_decode(&records, NULL, &record, e)) return false;
        if (!audit_add(audit, &record, e)) return false;
    }
    return true;
}

/* --- pruning ------------------------------------------------------------------------------ */

/* Look at the first block, unless it is known. */
static bool learn_oldest(struct audit *audit, struct err *e) {
    bool row;
    if (audit->oldest_ms != INT64_MAX || audit->head.seq == 0) return true;
    database_bind_number(audit->oldest, 1, 1);
    if (!database_row(audit->db, audit->oldest, &row, e)) return false;
    if (row) {
        struct audit_block block = audit_block_of(audit->oldest);
        audit->oldest_ms = block.at_ms;
        audit->oldest_upto = block.upto - block.bytes.len;
    }
    database_reset(audit->oldest);
    return true;
}

/* Whether a block may go, of which nothing is kept after `upto` and `at_ms`. With `slack`,
 * pruning has not begun yet, and a little more is let be. */
static bool is_too_old(struct audit *audit, int64_t at_ms, uint64_t slack) {
    uint64_t keep_ms = audit->limits ? atomic_load(&audit->limits->keep_ms) : 0;
    int64_t age_ms = audit_now(audit) - at_ms;
    return keep_ms && age_ms > 0 && (uint64_t)age_ms > keep_ms + keep_ms / SLACK * slack;
}

static bool is_too_much(struct audit *audit, uint64_t upto, uint64_t slack) {
    uint64_t keep_bytes = audit->limits ? atomic_load(&audit->limits->keep_bytes) : 0;
    uint64_t bytes = audit->next.upto - upto;
    return keep_bytes && bytes > keep_bytes + keep_bytes / SLACK * slack;
}

struct pruned {
    uint64_t records, next; /* `next`: the first record that stays */
    uint8_t hash[AUDIT_HASH_BYTES];
};

/* Which blocks go. */
static bool find_prunable(struct audit *audit, struct pruned *ret, struct err *e) {
    bool row, ok;
    database_bind_number(audit->oldest, 1, PRUNE_BLOCKS);
    while ((ok = database_row(audit->db, audit->oldest, &row, e)) && row) {
        struct audit_block block = audit_block_of(audit->oldest);
        bool goes = is_too_old(audit, block.at_ms, 0) || is_too_much(audit, block.upto, 0);
        audit->oldest_ms = block.at_ms;
        audit->oldest_upto = block.upto - block.bytes.len;
        if (!goes || block.hash.len != AUDIT_HASH_BYTES) break;
        ret->records += block.count;
        ret->next = block.first + block.count;
        memcpy(ret->hash, block.hash.at, AUDIT_HASH_BYTES);
    }
    database_reset(audit->oldest);
    return ok;
}

static bool note_pruned(struct audit *audit, const struct pruned *pruned, struct err *e) {
    struct audit_record record = {
        .texts = {[AUDIT_DOMAIN] = STR_INIT("runtime.audit"),
                  [AUDIT_OPERATION] = STR_INIT("pruned"),
                  [AUDIT_DIGEST] = {(const char *)pruned->hash, AUDIT_HASH_BYTES}}};
    audit_set(&record, AUDIT_COUNT, pruned->records);
    audit_set(&record, AUDIT_OUTCOME, ERR_NONE);
    return audit_add(audit, &record, e);
}

/* Only in a transaction that writes a block, so that one is always left. */
static bool prune(struct audit *audit, struct err *e) {
    struct pruned pruned = {.records = 0};
    if (!learn_oldest(audit, e)) return false;
    if (audit->oldest_ms == INT64_MAX ||
        (!is_too_old(audit, audit->oldest_ms, 1) && !is_too_much(audit, audit->oldest_upto, 1)))
        return true;
    if (!find_prunable(audit, &pruned, e)) return false;
    if (pruned.records == 0) return true;
    database_bind_number(audit->remove, 1, (int64_t)pruned.next);
    audit->oldest_ms = INT64_MAX;
    return database_do(audit->db, audit->remove, e) && note_pruned(audit, &pruned, e);
}

bool audit_finish(struct audit *audit, struct err *e) {
    if (audit->count == 0 && audit->next.seq == audit->head.seq) return true;
    return prune(audit, e) && (audit->count == 0 || write_block(audit, e));
}

void audit_kept(struct audit *audit) {
    audit->head = audit->next;
}

void audit_undone(struct audit *audit) {
    audit_begin(audit);
    audit->oldest_ms = INT64_MAX; /* what was pruned is there again */
}
