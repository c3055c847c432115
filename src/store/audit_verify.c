#include "store/audit_verify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define VERIFY_BLOCKS 1000 /* read as of one moment */

struct verify {
    struct audit_verdict *ret;
    const struct audit_seen *seen;
    audit_fault_fn *fault;
    void *ctx;
    uint8_t beginning[AUDIT_HASH_BYTES]; /* `previous` of the first block */
    uint64_t beginning_upto;             /* bytes before it */
    bool begun, vouched, met;            /* met: `seen` was found */
};

PRINTF_LIKE(3, 4)
static void say(struct verify *verify, uint64_t seq, const char *format, ...) {
    char text[256];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    verify->ret->faults++;
    verify->fault(seq, text, verify->ctx);
}

static bool is_hash(struct str bytes, const uint8_t hash[AUDIT_HASH_BYTES]) {
    return str_equal(bytes, str_of(hash, AUDIT_HASH_BYTES));
}

/* A record of pruning has the hash that the first block left names as its predecessor. */
static void look_at_record(struct verify *verify, const struct audit_record *record) {
    if (str_equal(record->texts[AUDIT_DOMAIN], STR("runtime.audit")) &&
        str_equal(record->texts[AUDIT_OPERATION], STR("pruned")) &&
        is_hash(record->texts[AUDIT_DIGEST], verify->beginning))
        verify->vouched = true;
}

static void check_records(struct verify *verify, const struct audit_block *block) {
    struct str rest = block->bytes;
    struct audit_said said = {.some = false};
    struct audit_record record;
    struct err e;
    uint64_t count = 0;
    while (rest.len && audit_record_decode(&rest, &said, &record, &e)) {
        count++;
        look_at_record(verify, &record);
    }
    if (rest.len)
        say(verify, block->first + count, "this record cannot be read");
    else if (count != block->count)
        say(verify, block->first, "its block counts %" PRIu64 " records and has %" PRIu64,
            block->count, count);
}

/* The number that comes after the newest record. */
static void check_order(struct verify *verify, const struct audit_block *block) {
    const struct audit_head *head = &verify->ret->head;
    uint64_t next = head->seq + 1;
    if (block->first > next)
        say(verify, next, "records %" PRIu64 " to %" PRIu64 " are gone", next,
            block->first - 1);
    else if (block->first < next)
        say(verify, block->first, "records from %" PRIu64 " on are there twice", block->first);
    if (!is_hash(block->previous, head->hash))
        say(verify, block->first, "its block does not follow the block before it");
    if (block->upto != head->upto + block->bytes.len)
        say(verify, block->first, "its block counts bytes that are not there");
}

static void begin(struct verify *verify, const struct audit_block *block) {
    verify->begun = true;
    verify->ret->first = block->first;
    verify->beginning_upto = block->upto - block->bytes.len;
    if (block->previous.len == AUDIT_HASH_BYTES)
        memcpy(verify->beginning, block->previous.at, AUDIT_HASH_BYTES);
    else
        say(verify, block->first, "its block does not name the block before it");
}

static void check_block(struct verify *verify, const struct audit_block *block) {
    uint8_t hash[AUDIT_HASH_BYTES];
    struct audit_verdict *ret = verify->ret;
    if (verify->begun)
        check_order(verify, block);
    else
        begin(verify, block);
    audit_hash(block, hash);
    if (!is_hash(block->hash, hash))
        say(verify, block->first, "its block is not what was written");
    check_records(verify, block);
    ret->blocks++;
    ret->bytes += block->bytes.len;
    ret->head =
        (struct audit_head){.seq = block->first + block->count - 1, .upto = block->upto};
    if (block->hash.len == AUDIT_HASH_BYTES)
        memcpy(ret->head.hash, block->hash.at, AUDIT_HASH_BYTES);
    if (verify->seen && verify->seen->seq == ret->head.seq &&
        is_hash(block->hash, verify->seen->hash))
        verify->met = true;
}

/* The first block of all has no predecessor and no bytes before it. */
static void check_beginning(struct verify *verify) {
    static const uint8_t none[AUDIT_HASH_BYTES] = {0};
    struct audit_verdict *ret = verify->ret;
    bool whole = ret->first == 1 && verify->beginning_upto == 0 &&
                 is_hash(str_of(none, sizeof(none)), verify->beginning);
    if (verify->begun && !whole && !verify->vouched)
        say(verify, ret->first,
            "what came before is gone, and no record says that it was "
            "pruned");
}

static void check_end(struct verify *verify, int64_t noted) {
    struct audit_verdict *ret = verify->ret;
    ret->last = verify->begun ? ret->head.seq : 0;
    if (noted > 0 && (uint64_t)noted > ret->last)
        say(verify, ret->last + 1,
            "the log ends here, and a start of weir has seen record %" PRId64, noted);
    if (!verify->seen || verify->met) return;
    if (verify->begun && verify->seen->seq < ret->first)
        say(verify, ret->first, "record %" PRIu64 ", which was noted, has been pruned since",
            verify->seen->seq);
    else
        say(verify, verify->seen->seq, "this record is not there with the hash that was noted");
}

/* Some blocks after `*after`, as of one moment. */
static bool check_blocks(struct verify *verify, struct database *db, struct prepared *blocks,
                         int64_t *after, size_t *ret_found, struct err *e) {
    bool row, ok;
    *ret_found = 0;
    database_bind_number(blocks, 1, *after);
    database_bind_number(blocks, 2, VERIFY_BLOCKS);
    while ((ok = database_row(db, blocks, &row, e)) && row) {
        const struct audit_block block = audit_block_of(blocks);
        *after = (int64_t)block.first;
        check_block(verify, &block);
        ++*ret_found;
    }
    database_reset(blocks);
    return ok;
}

bool audit_verify(struct database *db, const struct audit_seen *seen, audit_fault_fn *fault,
                  void *ctx, struct audit_verdict *ret, struct err *e) {
    struct verify verify = {.ret = ret, .seen = seen, .fault = fault, .ctx = ctx};
    struct prepared *blocks = NULL;
    int64_t noted = 0, after = INT64_MIN;
    size_t found = VERIFY_BLOCKS;
    *ret = (struct audit_verdict){.first = 0};
    /* The note first: a daemon that runs may add records meanwhile, and takes none from the
     * end. */
    bool ok = database_number(db, "SELECT value FROM meta WHERE name = 'audit'", &noted, e) &&
              database_prepare(db,
                               "SELECT " AUDIT_BLOCK_COLUMNS
                               " FROM audit WHERE first > ? ORDER BY first"
                               " LIMIT ?",
                               &blocks, e);
    while (ok && found == VERIFY_BLOCKS)
        ok = check_blocks(&verify, db, blocks, &after, &found, e);
    database_finalize(blocks);
    if (!ok) return false;
    check_beginning(&verify);
    check_end(&verify, noted);
    return true;
}
