/* The audit log: a chain in which every change is found, that is pruned without losing that,
 * read page by page, and has what was acknowledged. */
#include "fixture.h"

#include "base/clock.h"
#include "store/audit_scan.h"
#include "store/audit_verify.h"
#include "store/audit_writer.h"
#include "store/task.h"
#include "store/varint.h"

/* --- helpers ------------------------------------------------------------------------------ */

static void open_file(const struct fixture *f, struct database *ret) {
    fixture_database(f, ret);
}

static void note_fault(uint64_t seq, const char *text, void *ctx) {
    buf_printf(ctx, "%llu: %s\n", (unsigned long long)seq, text);
}

/* The verdict on the closed store's file; its faults as text. */
static struct audit_verdict verify(const struct fixture *f, const struct audit_seen *seen,
                                   struct buf *faults) {
    struct database db;
    struct audit_verdict verdict;
    struct err e;
    buf_clear(faults);
    open_file(f, &db);
    if (!audit_verify(&db, seen, note_fault, faults, &verdict, &e)) fail_msg("%s", e.text);
    database_close(&db);
    assert_int_equal(verdict.faults > 0, faults->len > 0);
    return verdict;
}

static struct audit_verdict assert_whole(const struct fixture *f) {
    struct buf faults;
    buf_init(&faults, MIB);
    struct audit_verdict verdict = verify(f, NULL, &faults);
    if (verdict.faults) fail_msg("%.*s", STR_ARG(buf_str(&faults)));
    buf_done(&faults);
    return verdict;
}

/* Change the closed file with `sql`, see a fault that says `says`, and put the table back. */
static void assert_found(const struct fixture *f, const char *sql, const char *says) {
    struct buf faults;
    buf_init(&faults, MIB);
    fixture_sql(f, "CREATE TABLE aside AS SELECT * FROM audit");
    fixture_sql(f, sql);
    struct audit_verdict verdict = verify(f, NULL, &faults);
    fixture_sql(f,
                "DELETE FROM audit; INSERT INTO audit SELECT * FROM aside; DROP TABLE aside");
    if (!verdict.faults) fail_msg("'%s' is not found", sql);
    if (str_find(buf_str(&faults), str_from(says)) == faults.len)
        fail_msg("'%s' says: %.*s", sql, STR_ARG(buf_str(&faults)));
    buf_done(&faults);
}

static void write_runs(struct fixture *f, uint64_t from, uint64_t count) {
    for (uint64_t i = from; i < from + count; i++) fixture_write(f, whole_run(i, "s", "hi"));
}

/* "1 runtime.run start;2 ...": a page, in its order. */
struct listing {
    struct fixture *f;
    struct buf text;
    struct audit_scanned scanned;
};

static void on_page(const struct audit_page *page, const struct err *failed, void *ctx) {
    struct listing *listing = ctx;
    if (failed) fail_msg("%s", failed->text);
    for (size_t i = 0; i < page->count; i++) {
        const struct audit_record *record = &page->records[i];
        buf_printf(&listing->text, "%s%llu " STR_FMT " " STR_FMT, listing->text.len ? ";" : "",
                   (unsigned long long)record->seq, STR_ARG(record->texts[AUDIT_DOMAIN]),
                   STR_ARG(record->texts[AUDIT_OPERATION]));
        if (record->set[AUDIT_COUNT])
            buf_printf(&listing->text, " x%llu",
                       (unsigned long long)record->numbers[AUDIT_COUNT]);
    }
    listing->scanned = page->scanned;
    loop_stop(listing->f->loop);
}

static void list_page(struct fixture *f, const struct audit_query *query, struct listing *ret) {
    *ret = (struct listing){.f = f};
    buf_init(&ret->text, MIB);
    audit_page_start(f->store, f->loop, query, on_page, ret);
    loop_run(f->loop);
}

static void assert_page(struct fixture *f, struct audit_query query, const char *expected) {
    struct listing listing;
    list_page(f, &query, &listing);
    buf_append_byte(&listing.text, '\0');
    assert_string_equal(listing.text.at, expected);
    buf_done(&listing.text);
}

/* --- the records -------------------------------------------------------------------------- */

static struct audit_record full_record(void) {
    static const char *const words[] = {"zero", "one", "two",   "three", "four",
                                        "five", "six", "seven", "eight", "nine"};
    struct audit_record record = {.at_ms = 1700000000123};
    for (size_t i = 0; i < AUDIT_TEXTS; i++) record.texts[i] = str_from(words[i % 10]);
    for (size_t i = 0; i < AUDIT_NUMBERS; i++)
        audit_set(&record, (enum audit_number)i, UINT64_MAX - i);
    return record;
}

static void a_record_reads_back_as_it_was_written(void **state) {
    (void)state;
    struct audit_record record = full_record(), read;
    struct err e;
    struct buf bytes;
    buf_init(&bytes, 4 * KIB);
    assert_true(audit_record_encode(&record, NULL, &bytes));
    struct str rest = buf_str(&bytes);
    assert_true(audit_record_decode(&rest, NULL, &read, &e));
    assert_int_equal(rest.len, 0);
    assert_true(read.at_ms == record.at_ms);
    for (size_t i = 0; i < AUDIT_TEXTS; i++)
        assert_true(str_equal(read.texts[i], record.texts[i]));
    for (size_t i = 0; i < AUDIT_NUMBERS; i++)
        assert_true(read.set[i] && read.numbers[i] == record.numbers[i]);
    for (size_t cut = 0; cut < bytes.len; cut++) {
        rest = str_head(buf_str(&bytes), cut);
        assert_false(audit_record_decode(&rest, NULL, &read, &e));
        assert_int_equal(rest.len, cut);
    }
    buf_done(&bytes);
}

static void a_record_has_its_limits_and_no_secrets(void **state) {
    (void)state;
    char many[5000];
    struct audit_record record = {.at_ms = 1}, read;
    struct buf bytes;
    struct err e;
    memset(many, 'x', sizeof(many));
    for (size_t i = 0; i < AUDIT_TEXTS; i++) record.texts[i] = str_of(many, sizeof(many));
    for (size_t i = 0; i < AUDIT_NUMBERS; i++)
        audit_set(&record, (enum audit_number)i, UINT64_MAX);
    record.texts[AUDIT_DETAIL] = STR("the key sk-proj-Ab12Cd34Ef56Gh78Ij90Kl12 was refused");
    buf_init(&bytes, 16 * KIB);
    assert_true(audit_record_encode(&record, NULL, &bytes));
    assert_true(bytes.len <= AUDIT_RECORD_MAX_BYTES + 100);
    struct str rest = buf_str(&bytes);
    assert_true(audit_record_decode(&rest, NULL, &read, &e));
    assert_int_equal(read.texts[AUDIT_USER].len, AUDIT_TEXT_MAX_BYTES);
    assert_true(str_equal(read.texts[AUDIT_DETAIL], STR("the key *** was refused")));
    buf_done(&bytes);
}

/* --- records that refer to those before them ---------------------------------------------- */

#define BLOCK_RECORDS 40

/* Owners, times and runs that are now as before, now not. */
static struct audit_record nth_record(size_t n) {
    static const struct str users[] = {STR_INIT("ana"), STR_INIT("bo"), STR_INIT("")};
    static const struct str agents[] = {STR_INIT("manager"), STR_INIT("")};
    struct audit_record record = {
        .at_ms = 1700000000123 + (int64_t)(n / 3),
        .texts = {[AUDIT_DOMAIN] = STR_INIT("runtime.run"),
                  [AUDIT_OPERATION] = n % 2 ? STR("done") : STR("start"),
                  [AUDIT_WORKSPACE] = n % 5 ? STR("mill") : STR("sea"),
                  [AUDIT_USER] = users[n / 2 % ARRAY_LEN(users)],
                  [AUDIT_CAPABILITY] = agents[n % ARRAY_LEN(agents)],
                  [AUDIT_REASON] = n % 7 ? STR("") : STR("WHY"),
                  [AUDIT_DETAIL] = n % 7 ? STR("") : STR("twice the same words")}};
    if (n % 4) audit_set(&record, AUDIT_RUN, UINT64_MAX - n / 2);
    if (n % 2) audit_set(&record, AUDIT_OUTCOME, ERR_NONE);
    return record;
}

static void assert_same(const struct audit_record *one, const struct audit_record *other) {
    assert_true(one->at_ms == other->at_ms);
    for (size_t i = 0; i < AUDIT_TEXTS; i++)
        assert_true(str_equal(one->texts[i], other->texts[i]));
    for (size_t i = 0; i < AUDIT_NUMBERS; i++)
        assert_true(audit_get(one, (enum audit_number)i) ==
                    audit_get(other, (enum audit_number)i));
}

static void a_record_refers_to_those_before_it_in_its_block(void **state) {
    (void)state;
    struct audit_said said = {.some = false};
    struct audit_record read;
    struct buf block, apart;
    struct err e;
    buf_init(&block, 64 * KIB);
    buf_init(&apart, 64 * KIB);
    assert_non_null(buf_room(&block, 64 * KIB));
    for (size_t i = 0; i < BLOCK_RECORDS; i++) {
        struct audit_record record = nth_record(i);
        assert_true(audit_record_encode(&record, &said, &block));
        assert_true(audit_record_encode(&record, NULL, &apart));
    }
    assert_true(block.len < apart.len * 3 / 4);
    said = (struct audit_said){.some = false};
    struct str rest = buf_str(&block);
    for (size_t i = 0; i < BLOCK_RECORDS; i++) {
        struct audit_record record = nth_record(i);
        assert_true(audit_record_decode(&rest, &said, &read, &e));
        assert_same(&read, &record);
    }
    assert_int_equal(rest.len, 0);
    buf_done(&block);
    buf_done(&apart);
}

/* length · time 0 · tag 71 · bits */
static void assert_refers_to_nothing(uint64_t bits, struct audit_said said) {
    char bytes[16] = {0, 0, 71};
    struct audit_record read;
    struct err e;
    size_t len = 3 + varint_put(bytes + 3, bits);
    bytes[0] = (char)(len - 1);
    struct str rest = str_of(bytes, len);
    assert_false(audit_record_decode(&rest, &said, &read, &e));
    assert_int_equal(e.code, ERR_DATA_LOSS);
    assert_int_equal(rest.len, len);
}

static void what_was_not_said_cannot_be_referred_to(void **state) {
    (void)state;
    struct audit_said nothing = {.some = false};
    struct audit_said little = {.some = true, .at_ms = 5, .texts = {[AUDIT_USER] = STR("ana")}};
    for (unsigned bit = 0; bit < 64; bit++) {
        assert_refers_to_nothing(UINT64_C(1) << bit, nothing);
        if (bit != 0 && bit != 4) assert_refers_to_nothing(UINT64_C(1) << bit, little);
    }
    assert_refers_to_nothing(0, little);
    /* By itself no record refers to anything. */
    struct str rest = STR("\x04\x00\x47\x01\x00");
    struct audit_record read;
    struct err e;
    assert_false(audit_record_decode(&rest, NULL, &read, &e));
}

static void a_record_is_one_json_object(void **state) {
    (void)state;
    struct audit_record record = {
        .seq = 7,
        .at_ms = 1700000000005,
        .texts = {
            [AUDIT_DOMAIN] = STR_INIT("runtime.run"), [AUDIT_DIGEST] = STR_INIT("\1\xAB")}};
    struct buf json;
    buf_init(&json, KIB);
    audit_set(&record, AUDIT_RUN, UINT64_MAX);
    audit_set(&record, AUDIT_OUTCOME, ERR_NOT_FOUND);
    assert_true(audit_record_json(&record, &json));
    buf_append_byte(&json, '\0');
    assert_string_equal(json.at, "{\"seq\":7,\"at\":\"2023-11-14T22:13:20.005Z\","
                                 "\"domain\":\"runtime.run\",\"digest\":\"01ab\","
                                 "\"run\":\"18446744073709551615\",\"outcome\":\"NOT_FOUND\"}");
    buf_done(&json);
}

/* --- what is in it ------------------------------------------------------------------------ */

static struct event asked(void) {
    return (struct event){.kind = EVENT_APPROVAL,
                          .agent = STR("manager"),
                          .approval = {.call_id = STR("approve-c1"),
                                       .question = STR("May it?"),
                                       .tool = STR("pay"),
                                       .guards = STR("c1")}};
}

static struct event result(const char *call_id, const char *json) {
    return (struct event){
        .kind = EVENT_TOOL_RESULT,
        .agent = STR("manager"),
        .tool_result = {.call_id = str_from(call_id), .result = str_from(json)}};
}

static void write_asked(struct fixture *f) {
    struct row_text row;
    row_begin(&row);
    row_section(&row, 1, 1);
    row_event(&row, started("s"));
    row_event(&row, text("hm"));
    row_event(&row, asked());
    fixture_write(f, row_end(&row, 1));
}

static void write_answered(struct fixture *f) {
    struct row_text row;
    row_begin(&row);
    row_section(&row, 1, 4);
    row_event(&row, result("c0", "{\"answer\":\"of a tool\"}"));
    row_event(&row, result("approve-c1", "{\"decision\":\"refuse\",\"tool\":\"pay\"}"));
    row_event(&row, result("c1", "{}"));
    row_event(&row, done());
    fixture_write(f, row_end(&row, 1));
}

static void assert_asked_and_answered(struct fixture *f) {
    assert_page(f, (struct audit_query){.order = AUDIT_OLDEST_FIRST, .limit = 100},
                "1 runtime.run start;2 runtime.approval asked;3 runtime.approval decided;"
                "4 runtime.run done");
    struct audit_query query = {.limit = 100};
    query.filter.texts[AUDIT_USER] = STR("u");
    query.filter.texts[AUDIT_WORKSPACE] = STR("w");
    query.filter.texts[AUDIT_REASON] = STR("refuse");
    assert_page(f, query, "3 runtime.approval decided");
}

static void a_run_is_in_it_with_what_a_human_was_asked_and_said(void **state) {
    struct fixture *f = *state;
    write_asked(f);
    write_answered(f);
    assert_asked_and_answered(f);
}

/* A load fills the tables, so the run's owner leaves the memory of the audit log. */
static void a_run_that_waited_is_in_it_as_one_that_did_not(void **state) {
    struct fixture *f = *state;
    write_asked(f);
    arena_free(fixture_load(f, session_load("s")).arena);
    write_answered(f);
    assert_asked_and_answered(f);
}

/* The owner of a run that began before this process is looked up. */
static void the_end_of_an_older_run_names_its_owner(void **state) {
    struct fixture *f = *state;
    struct row_text row;
    row_begin(&row);
    row_section(&row, 1, 1);
    row_event(&row, started("s"));
    fixture_write(f, row_end(&row, 1));
    fixture_close(f);
    fixture_open(f);
    row_begin(&row);
    row_section(&row, 1, 2);
    row_event(&row, done());
    fixture_write(f, row_end(&row, 1));
    struct audit_query query = {.limit = 100};
    query.filter.texts[AUDIT_USER] = STR("u");
    assert_page(f, query, "2 runtime.run done;1 runtime.run start");
}

struct note {
    struct store_task task;
    bool fails;
    struct fixture *f;
    size_t *left;
};

static bool run_note(struct database *db, void *ctx, struct err *e) {
    const struct note *note = ctx;
    const struct audit_record record = {.texts = {[AUDIT_DOMAIN] = STR_INIT("test")}};
    if (!audit_note(db, &record, e)) return false;
    return !note->fails || err_set(e, ERR_ABORTED, "as asked");
}

static void on_noted(const struct err *failed, void *ctx) {
    struct note *note = ctx;
    assert_int_equal(failed != NULL, note->fails);
    if (--*note->left == 0) loop_stop(note->f->loop);
}

static void a_task_that_fails_leaves_no_record_and_its_neighbours_do(void **state) {
    struct fixture *f = *state;
    struct note notes[5];
    size_t left = ARRAY_LEN(notes);
    for (size_t i = 0; i < ARRAY_LEN(notes); i++) {
        notes[i] = (struct note){.fails = i == 2, .f = f, .left = &left};
        notes[i].task = (struct store_task){.fn = run_note, .on_done = on_noted};
        store_run(f->store, f->loop, &notes[i].task, &notes[i]);
    }
    loop_run(f->loop);
    assert_page(f, (struct audit_query){.limit = 100}, "4 test ;3 test ;2 test ;1 test ");
    fixture_close(f);
    assert_int_equal(assert_whole(f).last, 4);
    fixture_open(f);
}

/* --- the chain ---------------------------------------------------------------------------- */

static bool flip_column(sqlite3 *db, const char *column, bool blob, int64_t first, size_t bit) {
    char sql[256];
    sqlite3_stmt *read, *write;
    snprintf(sql, sizeof(sql), "SELECT %s FROM audit WHERE first = %lld", column,
             (long long)first);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &read, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(read), SQLITE_ROW);
    snprintf(sql, sizeof(sql), "UPDATE audit SET %s = ? WHERE first = %lld", column,
             (long long)first);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &write, NULL), SQLITE_OK);
    if (blob) {
        unsigned char bytes[4096];
        size_t len = (size_t)sqlite3_column_bytes(read, 0);
        assert_true(len <= sizeof(bytes));
        memcpy(bytes, sqlite3_column_blob(read, 0), len);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        sqlite3_bind_blob(write, 1, bytes, (int)len, SQLITE_TRANSIENT);
    } else {
        uint64_t number = (uint64_t)sqlite3_column_int64(read, 0);
        sqlite3_bind_int64(write, 1, (int64_t)(number ^ (UINT64_C(1) << bit)));
    }
    sqlite3_finalize(read);
    bool taken = sqlite3_step(write) == SQLITE_DONE; /* two blocks cannot have one number */
    assert_true(taken || sqlite3_errcode(db) == SQLITE_CONSTRAINT);
    sqlite3_finalize(write);
    return taken;
}

static size_t bits_of(sqlite3 *db, const char *column, bool blob, int64_t first) {
    char sql[256];
    sqlite3_stmt *read;
    snprintf(sql, sizeof(sql), "SELECT length(%s) FROM audit WHERE first = %lld", column,
             (long long)first);
    if (!blob) return 64;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &read, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(read), SQLITE_ROW);
    size_t bits = 8 * (size_t)sqlite3_column_int64(read, 0);
    sqlite3_finalize(read);
    return bits;
}

static void ignore_fault(uint64_t seq, const char *text, void *ctx) {
    (void)seq, (void)text, (void)ctx;
}

static void every_flipped_bit_is_found(void **state) {
    FIXTURE_SQLITE_ONLY();
    static const struct {
        const char *name;
        bool blob;
    } columns[] = {{"first", false},   {"count", false}, {"at_ms", false}, {"upto", false},
                   {"previous", true}, {"hash", true},   {"bytes", true}};
    struct fixture *f = *state;
    struct database db;
    struct err e;
    struct audit_verdict verdict;
    size_t flipped = 0;
    write_runs(f, 1, 3);
    fixture_close(f);
    assert_whole(f);
    open_file(f, &db);
    assert_true(database_run(&db, "BEGIN", &e)); /* rolled back after each bit */
    for (int64_t first = 1; first <= 5; first += 2) {
        for (size_t c = 0; c < ARRAY_LEN(columns); c++) {
            size_t bits = bits_of(db.handle, columns[c].name, columns[c].blob, first);
            for (size_t bit = 0; bit < bits; bit++, flipped++) {
                assert_true(database_run(&db, "SAVEPOINT one", &e));
                bool taken =
                    flip_column(db.handle, columns[c].name, columns[c].blob, first, bit);
                assert_true(audit_verify(&db, NULL, ignore_fault, NULL, &verdict, &e));
                if (taken && !verdict.faults)
                    fail_msg("bit %zu of %s of block %lld is not found", bit, columns[c].name,
                             (long long)first);
                assert_true(database_run(&db, "ROLLBACK TO one; RELEASE one", &e));
            }
        }
    }
    assert_true(flipped > 3000);
    assert_true(audit_verify(&db, NULL, ignore_fault, NULL, &verdict, &e));
    assert_int_equal(verdict.faults, 0);
    assert_true(database_run(&db, "ROLLBACK", &e));
    database_close(&db);
    fixture_open(f);
}

static void a_block_that_is_gone_or_in_another_place_is_found(void **state) {
    struct fixture *f = *state;
    write_runs(f, 1, 4);
    fixture_close(f);
    assert_found(f, "DELETE FROM audit WHERE first = 3", "records 3 to 4 are gone");
    assert_found(f, "DELETE FROM audit WHERE first = 1", "what came before is gone");
    assert_found(f,
                 "UPDATE audit SET first = -1 WHERE first = 3;"
                 "UPDATE audit SET first = 3 WHERE first = 5;"
                 "UPDATE audit SET first = 5 WHERE first = -1",
                 "does not follow the block before it");
    assert_found(f,
                 "INSERT INTO audit SELECT 9, count, at_ms, upto, previous, hash, bytes"
                 " FROM audit WHERE first = 7",
                 "is not what was written");
    assert_whole(f);
    fixture_open(f);
}

/* The chain alone cannot know of an end that was never seen. A start notes how long it is, and
 * so may a person. */
static void an_end_that_is_gone_is_found_if_it_was_seen(void **state) {
    struct fixture *f = *state;
    struct buf faults;
    buf_init(&faults, MIB);
    write_runs(f, 1, 3);
    fixture_close(f);
    fixture_open(f); /* notes 6 records */
    write_runs(f, 4, 1);
    fixture_close(f);
    struct audit_verdict before = assert_whole(f);
    struct audit_seen seen = {.seq = before.last};
    memcpy(seen.hash, before.head.hash, sizeof(seen.hash));
    assert_int_equal(before.last, 8);
    assert_int_equal(verify(f, &seen, &faults).faults, 0);

    fixture_sql(f, "DELETE FROM audit WHERE first = 7");
    assert_int_equal(verify(f, NULL, &faults).faults, 0); /* the end was not seen */
    assert_int_equal(verify(f, &seen, &faults).faults, 1);
    fixture_sql(f, "DELETE FROM audit WHERE first = 5");
    assert_int_equal(verify(f, NULL, &faults).faults, 1);
    assert_true(str_find(buf_str(&faults), STR("a start of weir has seen record 6")) <
                faults.len);

    fixture_open(f); /* goes on after the gap, which stays to be seen */
    write_runs(f, 9, 1);
    fixture_close(f);
    verify(f, NULL, &faults);
    assert_true(str_find(buf_str(&faults), STR("records 5 to 6 are gone")) < faults.len);
    buf_done(&faults);
    fixture_open(f);
}

/* --- pruning ------------------------------------------------------------------------------ */

static void a_pruned_chain_still_has_a_beginning_that_is_vouched_for(void **state) {
    struct fixture *f = *state;
    store_keep_audit(f->store, 0, 4000);
    for (uint64_t i = 1; i <= 300; i++) {
        fixture_write(f, whole_run(i, "s", "hi"));
        if (i == 150) {
            fixture_close(f);
            fixture_open(f);
            store_keep_audit(f->store, 0, 4000);
        }
    }
    fixture_close(f);
    struct audit_verdict verdict = assert_whole(f);
    assert_true(verdict.first > 100);
    assert_true(verdict.last > 600);
    assert_true(verdict.bytes <= 4000 + 4000 / 16 + 500);
    assert_found(f, "DELETE FROM audit WHERE first = (SELECT min(first) FROM audit)",
                 "no record says that it was pruned");
    fixture_open(f);
    struct audit_query query = {.order = AUDIT_OLDEST_FIRST, .cursor = 5, .limit = 1};
    struct listing listing;
    list_page(f, &query, &listing);
    assert_true(listing.scanned.gap);
    buf_done(&listing.text);
}

static void age_alone_prunes_too(void **state) {
    struct fixture *f = *state;
    write_runs(f, 1, 10);
    int64_t began_ms = clock_unix_ms();
    while (clock_unix_ms() < began_ms + 5) usleep(1000);
    store_keep_audit(f->store, 2, 0);
    write_runs(f, 11, 1);
    assert_page(f, (struct audit_query){.order = AUDIT_OLDEST_FIRST, .limit = 100},
                "21 runtime.run start;22 runtime.run done;23 runtime.audit pruned x20");
    fixture_close(f);
    assert_whole(f);
    fixture_open(f);
}

/* --- reading ------------------------------------------------------------------------------ */

static void pages_give_every_record_once_in_both_orders(void **state) {
    struct fixture *f = *state;
    write_runs(f, 1, 20);
    for (int order = AUDIT_NEWEST_FIRST; order <= AUDIT_OLDEST_FIRST; order++) {
        for (size_t limit = 1; limit <= 41; limit += 4) {
            struct audit_query query = {.order = (enum audit_order)order, .limit = limit};
            uint64_t seen = 0;
            for (bool end = false; !end;) {
                struct listing listing;
                list_page(f, &query, &listing);
                struct str rest = buf_str(&listing.text);
                while (rest.len) {
                    struct str line = str_split(rest, ';', &rest), tail;
                    uint64_t seq;
                    assert_true(str_to_u64(str_split(line, ' ', &tail), &seq));
                    seen++;
                    assert_int_equal(seq, order == AUDIT_OLDEST_FIRST ? seen : 41 - seen);
                }
                end = listing.scanned.end;
                query.cursor = listing.scanned.cursor;
                assert_int_equal(listing.scanned.newest, 40);
                buf_done(&listing.text);
            }
            assert_int_equal(seen, 40);
        }
    }
    struct audit_query some = {.order = AUDIT_OLDEST_FIRST, .cursor = 3, .last = 5, .limit = 9};
    assert_page(f, some, "4 runtime.run done;5 runtime.run start");
}

/* --- a loop's own records ----------------------------------------------------------------- */

static void stop_loop(void *ctx) {
    loop_stop(ctx);
}

static void a_flood_of_refused_callers_is_one_record_of_each_kind(void **state) {
    struct fixture *f = *state;
    struct audit_writer *writer = audit_writer_new(f->loop, f->store);
    char place[16];
    for (size_t i = 0; i < 100000; i++) {
        struct audit_record record = {
            .texts = {
                [AUDIT_CONTRACT] = STR_INIT("crawbl"), [AUDIT_REASON] = STR_INIT("BAD_TOKEN")}};
        snprintf(place, sizeof(place), "/place/%zu", i < 50000 ? 0 : i % 100);
        record.texts[AUDIT_CAPABILITY] = str_from(place);
        audit_set(&record, AUDIT_OUTCOME, ERR_UNAUTHENTICATED);
        audit_writer_refused(writer, &record);
    }
    audit_writer_stop(writer, stop_loop, f->loop);
    loop_run(f->loop);
    audit_writer_free(writer);
    struct audit_query query = {.limit = 100};
    query.filter.texts[AUDIT_CAPABILITY] = STR("/place/0");
    assert_page(f, query, "1 runtime.auth refused x50500");
    struct listing listing;
    list_page(f, &(struct audit_query){.limit = 100}, &listing);
    assert_int_equal(listing.scanned.newest, AUDIT_REFUSED_KINDS);
    buf_done(&listing.text);
}

static void records_without_room_are_counted(void **state) {
    struct fixture *f = *state;
    struct audit_writer *writer = audit_writer_new(f->loop, f->store);
    for (size_t i = 0; i < 20000; i++)
        audit_writer_tell(writer, STR("test"), STR("told"), ERR_NONE, STR("a few words"));
    audit_writer_stop(writer, stop_loop, f->loop);
    loop_run(f->loop);
    audit_writer_free(writer);
    fixture_close(f);
    struct audit_verdict verdict = assert_whole(f);
    assert_true(verdict.last > 5000 && verdict.last < 20000);
    assert_true(verdict.blocks > 3); /* none much larger than AUDIT_BLOCK_BYTES */
    fixture_open(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup_open, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_reads_back_as_it_was_written),
        cmocka_unit_test(a_record_has_its_limits_and_no_secrets),
        cmocka_unit_test(a_record_refers_to_those_before_it_in_its_block),
        cmocka_unit_test(what_was_not_said_cannot_be_referred_to),
        cmocka_unit_test(a_record_is_one_json_object),
        TEST(a_run_is_in_it_with_what_a_human_was_asked_and_said),
        TEST(a_run_that_waited_is_in_it_as_one_that_did_not),
        TEST(the_end_of_an_older_run_names_its_owner),
        TEST(a_task_that_fails_leaves_no_record_and_its_neighbours_do),
        TEST(every_flipped_bit_is_found),
        TEST(a_block_that_is_gone_or_in_another_place_is_found),
        TEST(an_end_that_is_gone_is_found_if_it_was_seen),
        TEST(a_pruned_chain_still_has_a_beginning_that_is_vouched_for),
        TEST(age_alone_prunes_too),
        TEST(pages_give_every_record_once_in_both_orders),
        TEST(a_flood_of_refused_callers_is_one_record_of_each_kind),
        TEST(records_without_room_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
