#include "store/row.h"

#include "store/crc64.h"
#include "store/shorten.h"
#include "store/store.h"
#include "store/sum.h"
#include "store/varint.h"

#include <assert.h>
#include <inttypes.h>

#define ROW_MAX_BYTES (256 * MIB) /* more than any row written */
#define SCRATCH_BYTES (64 * KIB)  /* kept between rows */

#define APPEND "INSERT INTO log(id, run, sum, bytes) VALUES(?, ?, ?, ?)"
#define APPEND_OF_REPLICA "INSERT INTO log(id, run, sum, bytes, replica) VALUES(?, ?, ?, ?, ?)"

bool row_open(struct rows *rows, struct database *db, struct err *e) {
    *rows = (struct rows){.db = db};
    buf_init(&rows->scratch, ROW_MAX_BYTES);
    buf_init(&rows->packed, 2 * ROW_PACKED_BYTES);
    return database_prepare(db, database_sql(db, APPEND, APPEND_OF_REPLICA), &rows->append,
                            e) &&
           database_prepare(db, "SELECT id, run, sum, bytes FROM log WHERE id = ?", &rows->read,
                            e) &&
           database_prepare(db,
                            "SELECT id, run, sum, bytes FROM log WHERE id > ? AND id <= ? "
                            "AND run IN (0, -1, -2, ?) ORDER BY id",
                            &rows->range, e) &&
           database_prepare(
               db, "SELECT id, run, sum, bytes FROM log WHERE id > ? ORDER BY id LIMIT ?",
               &rows->from, e) &&
           database_number(db, "SELECT max(id) FROM log", &rows->newest, e);
}

void row_close(struct rows *rows) {
    buf_done(&rows->scratch);
    buf_done(&rows->packed);
    database_finalize(rows->append);
    database_finalize(rows->read);
    database_finalize(rows->range);
    database_finalize(rows->from);
}

static void clear_scratch(struct rows *rows) {
    buf_clear(&rows->scratch);
    if (rows->scratch.room > SCRATCH_BYTES) buf_release(&rows->scratch);
}

/* --- appending ---------------------------------------------------------------------------- */

#define PART_LENGTH_BYTES 4
#define PART_HEAD_BYTES (VARINT_MAX_BYTES + PART_LENGTH_BYTES)

static void put_length(char *at, size_t len) {
    for (size_t i = 0; i < PART_LENGTH_BYTES; i++) at[i] = (char)(len >> (8 * i));
}

static bool take_part(struct str *bytes, uint64_t *ret_run, struct str *ret) {
    struct str rest = *bytes;
    if (!varint_take(&rest, ret_run) || rest.len < PART_LENGTH_BYTES) return false;
    size_t len = 0;
    for (size_t i = 0; i < PART_LENGTH_BYTES; i++)
        len |= (size_t)(unsigned char)rest.at[i] << (8 * i);
    rest = str_skip(rest, PART_LENGTH_BYTES);
    if (len > rest.len) return false;
    *ret = str_head(rest, len);
    *bytes = str_skip(rest, len);
    return true;
}

/* `bytes` are in stored form. */
static bool put_part(struct buf *out, uint64_t run, struct str bytes) {
    char head[PART_HEAD_BYTES];
    size_t len = varint_put(head, run);
    put_length(head + len, bytes.len);
    buf_append(out, str_of(head, len + PART_LENGTH_BYTES));
    return buf_append(out, bytes);
}

static void pack(struct rows *rows, uint64_t run, struct str bytes,
                 const struct shorten_end *end) {
    struct buf *packed = &rows->packed;
    char head[PART_HEAD_BYTES];
    size_t len = varint_put(head, run);
    buf_append(packed, str_of(head, len + PART_LENGTH_BYTES));
    size_t begun = packed->len;
    if (!run || !shorten_row(bytes, end, packed)) buf_append(packed, bytes);
    put_length(packed->at + begun - PART_LENGTH_BYTES, packed->len - begun);
    rows->parts++;
    assert(buf_ok(packed)); /* any two rows that may be packed fit */
}

uint64_t row_sum(uint64_t run, struct str bytes) {
    return run == ROW_PACKED ? crc64_of(bytes) : sum_of(run, bytes);
}

static bool insert(struct rows *rows, uint64_t run, struct str bytes, struct err *e) {
    database_bind_number(rows->append, 1, rows->next++);
    database_bind_number(rows->append, 2, (int64_t)run);
    database_bind_number(rows->append, 3, (int64_t)row_sum(run, bytes));
    database_bind(rows->append, 4, bytes);
    if (database_is_postgres(rows->db))
        database_bind_number(rows->append, 5, rows->db->replica);
    return database_do(rows->db, rows->append, e);
}

static void unpack_all(struct rows *rows) {
    buf_clear(&rows->packed);
    rows->parts = 0;
}

void row_start(struct rows *rows) {
    unpack_all(rows);
    rows->next = rows->newest + 1;
}

/* A single part is written as a plain row. */
static bool write_packed(struct rows *rows, struct err *e) {
    uint64_t run = ROW_PACKED;
    struct str bytes = buf_str(&rows->packed), part = STR_EMPTY;
    if (rows->parts == 0) return true;
    if (rows->parts == 1) {
        bool whole = take_part(&bytes, &run, &part);
        assert(whole);
        (void)whole;
        bytes = part;
    }
    bool ok = insert(rows, run, bytes, e);
    unpack_all(rows);
    return ok;
}

static bool append_alone(struct rows *rows, uint64_t run, struct str bytes,
                         const struct shorten_end *end, struct err *e) {
    clear_scratch(rows);
    if (run && shorten_row(bytes, end, &rows->scratch)) bytes = buf_str(&rows->scratch);
    return insert(rows, run, bytes, e);
}

static bool is_large(size_t len) {
    return PART_HEAD_BYTES + len > ROW_PACKED_BYTES;
}

bool row_place(struct rows *rows, size_t len, int64_t *ret_id, struct err *e) {
    bool full = rows->packed.len + PART_HEAD_BYTES + len > ROW_PACKED_BYTES;
    if ((is_large(len) || full) && !write_packed(rows, e)) return false;
    *ret_id = rows->next;
    return true;
}

bool row_put(struct rows *rows, uint64_t run, struct str bytes, const struct shorten_end *end,
             struct err *e) {
    assert(!row_is_packed(run));
    if (is_large(bytes.len)) return append_alone(rows, run, bytes, end, e);
    pack(rows, run, bytes, end);
    return true;
}

bool row_finish(struct rows *rows, int64_t *ret_newest, struct err *e) {
    bool ok = write_packed(rows, e);
    *ret_newest = rows->next - 1;
    return ok;
}

/* --- reading ------------------------------------------------------------------------------ */

static bool damaged(struct rows *rows, int64_t id, struct err *e) {
    return err_set(e, ERR_DATA_LOSS,
                   "store %s: row %" PRId64 " of the log is damaged; restore the file from a "
                   "backup, or move its folder away to begin anew",
                   rows->db->path, id);
}

/* A row in stored form. */
struct stored {
    int64_t id;
    uint64_t run;
    struct str bytes;
};

static bool take_stored(struct rows *rows, struct prepared *statement, struct stored *ret,
                        struct err *e) {
    ret->id = database_number_of(statement, 0);
    ret->run = (uint64_t)database_number_of(statement, 1);
    ret->bytes = database_bytes(statement, 3);
    if ((int64_t)row_sum(ret->run, ret->bytes) == database_number_of(statement, 2)) return true;
    bool no_memory = sqlite3_errcode(rows->db->handle) == SQLITE_NOMEM;
    return no_memory ? database_fail(rows->db, e) : damaged(rows, ret->id, e);
}

/* Cut the next part off the rest of a stored row. A row that is not packed has one part. */
static bool next_part(struct rows *rows, struct stored *left, uint64_t *ret_run,
                      struct str *ret, struct err *e) {
    if (row_is_packed(left->run))
        return take_part(&left->bytes, ret_run, ret) || damaged(rows, left->id, e);
    *ret_run = left->run;
    *ret = left->bytes;
    left->bytes = STR_EMPTY;
    return true;
}

static bool expand(struct rows *rows, int64_t id, struct str *bytes, struct err *e) {
    struct err cause;
    if (!shorten_did(*bytes)) return true;
    clear_scratch(rows);
    if (!shorten_undo(*bytes, &rows->scratch, &cause)) return damaged(rows, id, e);
    *bytes = buf_str(&rows->scratch);
    return true;
}

#define ORDER_PARTS 8192 /* more than can fit: a part has more than 4 bytes */
static_assert(ROW_PACKED_BYTES / (PART_LENGTH_BYTES + 1) < ORDER_PARTS, "parts of a row");

struct walk {
    struct rows *rows;
    bool all; /* also parts that are neither shared nor of `run` */
    uint64_t run;
    row_fn *each;
    void *ctx;
};

static bool walk_stored(const struct walk *walk, struct stored left, struct err *e) {
    bool packed = row_is_packed(left.run);
    int64_t order = left.id * ORDER_PARTS;
    do {
        struct row row = {.id = left.id, .order = order};
        order++;
        if (!next_part(walk->rows, &left, &row.run, &row.bytes, e)) return false;
        row.last = left.bytes.len == 0;
        if (packed && !walk->all && row.run && row.run != walk->run) continue;
        if (!expand(walk->rows, row.id, &row.bytes, e)) return false;
        if (!walk->each(&row, walk->ctx, e)) return false;
    } while (left.bytes.len);
    return true;
}

static bool walk_all(const struct walk *walk, struct prepared *statement, struct err *e) {
    bool found, ok = true;
    while ((ok = database_row(walk->rows->db, statement, &found, e)) && found) {
        struct stored stored;
        if (!(ok = take_stored(walk->rows, statement, &stored, e))) break;
        if (!(ok = walk_stored(walk, stored, e))) break;
    }
    database_reset(statement);
    return ok;
}

/* The result is valid until the statement is reset. */
static bool find_stored(struct rows *rows, int64_t id, struct stored *ret, struct err *e) {
    bool found;
    database_bind_number(rows->read, 1, id);
    if (!database_row(rows->db, rows->read, &found, e)) return false;
    if (found) return take_stored(rows, rows->read, ret, e);
    return err_set(e, ERR_DATA_LOSS,
                   "store %s: row %" PRId64 " of the log is missing; restore the file from a "
                   "backup, or move its folder away to begin anew",
                   rows->db->path, id);
}

bool row_each_in(struct rows *rows, int64_t id, uint64_t run, row_fn *each, void *ctx,
                 struct err *e) {
    struct walk walk = {.rows = rows, .run = run, .each = each, .ctx = ctx};
    struct stored stored;
    bool ok = find_stored(rows, id, &stored, e) && walk_stored(&walk, stored, e);
    database_reset(rows->read);
    return ok;
}

bool row_each(struct rows *rows, int64_t after, size_t count, row_fn *each, void *ctx,
              struct err *e) {
    struct walk walk = {.rows = rows, .all = true, .each = each, .ctx = ctx};
    database_bind_number(rows->from, 1, after);
    database_bind_number(rows->from, 2, (int64_t)count);
    return walk_all(&walk, rows->from, e);
}

bool row_each_of(struct rows *rows, uint64_t run, int64_t after, int64_t last, row_fn *each,
                 void *ctx, struct err *e) {
    struct walk walk = {.rows = rows, .run = run, .each = each, .ctx = ctx};
    database_bind_number(rows->range, 1, after);
    database_bind_number(rows->range, 2, last);
    database_bind_number(rows->range, 3, (int64_t)run);
    return walk_all(&walk, rows->range, e);
}

bool row_each_found(struct rows *rows, struct prepared *statement, row_fn *each, void *ctx,
                    struct err *e) {
    struct walk walk = {.rows = rows, .all = true, .each = each, .ctx = ctx};
    return walk_all(&walk, statement, e);
}

/* --- rewriting ---------------------------------------------------------------------------- */

/* Copy the sections of `bytes`, except those of `run`. *ret_had: there were some. */
static bool filter(struct str bytes, uint64_t run, struct buf *out, bool *ret_had) {
    struct store_section section;
    bool bad = false, ok = true;
    while (ok && store_section_next(&bytes, &section, &bad)) {
        *ret_had = *ret_had || section.run == run;
        if (section.run != run)
            ok = store_section_append(out, section.run, section.first_seq, section.events);
    }
    return ok;
}

/* Keep a part. One without sections of the run is copied in its stored form. */
static bool keep_part(struct rows *rows, int64_t id, uint64_t owner, struct str stored,
                      uint64_t run, bool packed, struct buf *kept, bool *changed,
                      struct err *e) {
    struct str bytes = stored;
    struct buf rest;
    bool had = false;
    buf_init(&rest, ROW_MAX_BYTES);
    bool ok = expand(rows, id, &bytes, e);
    if (ok && !filter(bytes, run, &rest, &had))
        ok = err_set(e, ERR_RESOURCE_EXHAUSTED, "store: a row is too large to be rewritten");
    *changed = *changed || had;
    struct str left = had ? buf_str(&rest) : stored;
    if (ok && packed && !(had && left.len == 0)) ok = put_part(kept, owner, left);
    if (ok && !packed) ok = buf_append(kept, left);
    buf_done(&rest);
    return ok;
}

bool row_without(struct rows *rows, int64_t id, uint64_t run, struct buf *kept,
                 uint64_t *ret_owner, bool *ret_changed, struct err *e) {
    struct stored left;
    *ret_changed = false;
    bool ok = find_stored(rows, id, &left, e);
    if (ok) *ret_owner = left.run;
    while (ok && left.bytes.len) {
        uint64_t owner;
        struct str part = {0};
        ok = next_part(rows, &left, &owner, &part, e) &&
             keep_part(rows, id, owner, part, run, row_is_packed(*ret_owner), kept, ret_changed,
                       e);
    }
    database_reset(rows->read);
    return ok;
}
