/* A store that an earlier version wrote opens with all its data, also if its process died. Those of
 * test/store/earlier are such folders: their write-ahead logs are not folded in, and their tables
 * are behind. Schema 13 has one row per turn; 18 has packed rows and an audit log whose records
 * stand each by itself.
 *
 * `WEIR_MAKE_EARLIER=FOLDER store/earlier_test` makes such a folder with today's store, for a
 * later version. */
#include "fixture.h"

#include "store/audit_verify.h"

#define TURNS 60 /* of three sessions; every fifth streamed, and so shortened */

/* --- what is in it ------------------------------------------------------------------------ */

static const char *session_of(uint64_t run) {
    static const char *const names[] = {"mill", "weir", "sea"};
    return names[run % ARRAY_LEN(names)];
}

static const char piece[] = "and the water goes on over the weir ";

/* A reply in thirty pieces, and once more in its last event. */
static struct store_row streamed_run(uint64_t run) {
    struct row_text row;
    struct buf reply, replies;
    struct event end = done();
    buf_init(&reply, MIB);
    buf_init(&replies, MIB);
    row_begin(&row);
    row_section(&row, run, 1);
    row_event(&row, started(session_of(run)));
    for (int i = 0; i < 30; i++) {
        row_event(&row, text(piece));
        buf_append(&reply, str_from(piece));
    }
    row_event(&row, (struct event){.kind = EVENT_USAGE,
                                   .agent = STR("manager"),
                                   .usage = {.model = STR("m"), .prompt = 10, .total = 12}});
    event_turn_append(&replies, STR("manager"), buf_str(&reply));
    end.done.turns = buf_str(&replies);
    row_event(&row, end);
    buf_done(&reply);
    buf_done(&replies);
    return row_end(&row, run);
}

static struct store_row turn(uint64_t run) {
    return run % 5 ? whole_run(run, session_of(run), "short") : streamed_run(run);
}

/* A run that goes on: its first row, and text in a row with text of another. */
static void write_unfinished(struct fixture *f) {
    struct row_text row;
    for (uint64_t run = 101; run <= 102; run++) {
        row_begin(&row);
        row_section(&row, run, 1);
        row_event(&row, started("open"));
        fixture_write(f, row_end(&row, run));
    }
    row_begin(&row);
    row_section(&row, 101, 2);
    row_event(&row, text("a"));
    row_section(&row, 102, 2);
    row_event(&row, text("b"));
    row_section(&row, 101, 3);
    row_event(&row, text("c"));
    fixture_write(f, row_end(&row, 0));
}

static void write_all(struct fixture *f) {
    struct store_row together[4];
    for (uint64_t run = 1; run <= TURNS - 4; run++) fixture_write(f, turn(run));
    for (uint64_t i = 0; i < 4; i++) together[i] = turn(TURNS - 3 + i);
    assert_true(fixture_try_write(f, together, 4));
    write_unfinished(f);
}

static void assert_turn(struct fixture *f, uint64_t run) {
    struct store_row row = turn(run);
    struct str bytes = buf_str(&row.bytes);
    struct store_section expected;
    bool bad = false;
    assert_true(store_section_next(&bytes, &expected, &bad));
    struct store_load load = fixture_load(f, run_load(run, 0));
    assert_int_equal(load.section_count, 1);
    assert_int_equal(load.sections[0].first_seq, 1);
    assert_true(str_equal(load.sections[0].events, expected.events));
    arena_free(load.arena);
    buf_done(&row.bytes);
}

static void assert_session(struct fixture *f, const char *name, uint64_t first) {
    struct store_load load = fixture_load(f, session_load(name));
    assert_int_equal(load.section_count, TURNS / 3);
    for (size_t i = 0; i < load.section_count; i++)
        assert_int_equal(load.sections[i].run, first + 3 * i);
    arena_free(load.arena);
}

static void assert_all(struct fixture *f) {
    for (uint64_t run = 1; run <= TURNS; run++) assert_turn(f, run);
    assert_session(f, "weir", 1);
    assert_session(f, "sea", 2);
    assert_session(f, "mill", 3);
    assert_answer(f, run_load(101, 0), "101:1 started;101:2 a;101:3 c");
    assert_answer(f, run_load(102, 0), "102:1 started;102:2 b");
    assert_answer(f, (struct store_load){.question = STORE_UNFINISHED, .max_bytes = MIB},
                  "101:3;102:2");
}

/* --- opening it --------------------------------------------------------------------------- */

static void unpack(struct fixture *f, const char *schema) {
    char command[256];
    snprintf(command, sizeof(command), "tar -xzf test/store/earlier/%s.tar.gz -C %s", schema,
             f->folder);
    assert_int_equal(system(command), 0);
}

static void opens_with_all_its_data(struct fixture *f, const char *schema) {
    unpack(f, schema);
    for (int life = 0; life < 2; life++) {
        fixture_open(f);
        assert_all(f);
        fixture_close(f);
    }
}

static void note_fault(uint64_t seq, const char *what, void *ctx) {
    (void)ctx;
    fail_msg("record %llu: %s", (unsigned long long)seq, what);
}

/* At least this many runs are in it, each with its start and its end. */
static void assert_audit_whole(const struct fixture *f, uint64_t runs) {
    struct audit_verdict verdict;
    struct database db;
    struct err e;
    fixture_database(f, &db);
    if (!audit_verify(&db, NULL, note_fault, NULL, &verdict, &e)) fail_msg("%s", e.text);
    assert_int_equal(verdict.faults, 0);
    assert_true(verdict.head.seq >= 2 * runs);
    database_close(&db);
}

/* What this version adds stands beside it, in one chain of runs. */
static void is_written_on(struct fixture *f, const char *schema) {
    unpack(f, schema);
    fixture_open(f);
    struct store_row rows[6];
    for (uint64_t i = 0; i < 6; i++) rows[i] = whole_run(201 + i, session_of(i), "new");
    assert_true(fixture_try_write(f, rows, 6));
    assert_turn(f, 1);
    fixture_close(f);
    fixture_open(f);
    for (uint64_t run = 1; run <= TURNS; run++) assert_turn(f, run);
    struct store_load load = fixture_load(f, session_load("mill"));
    assert_int_equal(load.section_count, TURNS / 3 + 2);
    assert_int_equal(load.sections[0].run, 3);
    assert_int_equal(load.sections[TURNS / 3].run, 201);
    assert_int_equal(load.sections[TURNS / 3 + 1].run, 204);
    arena_free(load.arena);
    fixture_close(f);
    assert_audit_whole(f, 6);
}

/* The tables can be filled anew from both kinds of rows. */
static void tables_can_be_filled_anew(struct fixture *f, const char *schema) {
    unpack(f, schema);
    fixture_open(f);
    fixture_close(f);
    fixture_sql(f, "DELETE FROM run; DELETE FROM session; DELETE FROM usage; DELETE FROM keyed;"
                   "UPDATE meta SET value = 0 WHERE name = 'projected'");
    fixture_open(f);
    assert_all(f);
}

static void a_store_of_schema_13_opens_with_all_its_data(void **state) {
    opens_with_all_its_data(*state, "schema13");
}

static void a_store_of_schema_18_opens_with_all_its_data(void **state) {
    opens_with_all_its_data(*state, "schema18");
    assert_audit_whole(*state, TURNS);
}

static void a_store_of_schema_13_is_written_on(void **state) {
    is_written_on(*state, "schema13");
}

static void a_store_of_schema_18_is_written_on(void **state) {
    is_written_on(*state, "schema18");
    assert_audit_whole(*state, TURNS + 6);
}

static void the_tables_of_schema_13_can_be_filled_anew(void **state) {
    tables_can_be_filled_anew(*state, "schema13");
}

static void the_tables_of_schema_18_can_be_filled_anew(void **state) {
    tables_can_be_filled_anew(*state, "schema18");
}

/* --- making it ---------------------------------------------------------------------------- */

/* As after a kill. */
static int make(const char *folder) {
    struct fixture f;
    fixture_init(&f);
    rmdir(f.folder);
    snprintf(f.folder, sizeof(f.folder), "%s", folder);
    fixture_open(&f);
    write_all(&f);
    _exit(0);
}

int main(void) {
    const char *folder = getenv("WEIR_MAKE_EARLIER");
    if (folder) return make(folder);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_store_of_schema_13_opens_with_all_its_data,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_store_of_schema_18_opens_with_all_its_data,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_store_of_schema_13_is_written_on, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_store_of_schema_18_is_written_on, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(the_tables_of_schema_13_can_be_filled_anew,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(the_tables_of_schema_18_can_be_filled_anew,
                                        fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
