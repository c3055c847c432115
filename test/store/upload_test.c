/* Uploads on a real store: found when they are whole, by their owner, for half an hour. */
#include "store/upload.h"

#include "fixture.h"
#include "helper/assert_str.h"
#include "store/database.h"

#define NOW INT64_C(1700000000000)
#define ID STR("artifact_1")

static struct fixture f;
static struct upload seen;
static struct buf bytes; /* of the last answer */
static int64_t next_ms;
static int answers;
static char *much; /* UPLOAD_MAX_BYTES that differ */

static int setup(void **state) {
    (void)state;
    fixture_init(&f);
    f.durability = STORE_NORMAL;
    fixture_open(&f);
    buf_init(&bytes, UPLOAD_MAX_BYTES);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    buf_done(&bytes);
    fixture_done(&f);
    return 0;
}

static void on_done(const struct upload *upload, const struct err *failed, void *ctx) {
    assert_ptr_equal(ctx, &seen);
    answers++;
    f.failed.code = ERR_NONE;
    if (failed) f.failed = *failed;
    seen = *upload;
    buf_clear(&bytes);
    if (!failed) buf_append(&bytes, upload->bytes);
    loop_stop(f.loop);
}

static struct upload upload_of(struct str id, size_t size) {
    static const char sum[UPLOAD_SUM_BYTES] = "of the whole";
    return (struct upload){.id = id,
                           .app = STR("app"),
                           .subject = STR("anna"),
                           .content_type = STR("audio/wav"),
                           .name = STR("a song"),
                           .sum = str_of(sum, sizeof(sum)),
                           .size = size};
}

static void put_piece(struct str id, size_t size, size_t place, enum upload_piece piece,
                      int64_t now_ms) {
    struct upload upload = upload_of(id, size);
    size_t len = piece == UPLOAD_LAST ? size - place : UPLOAD_PIECE_BYTES;
    upload.bytes = str_of(much + place, len);
    upload_put_start(f.store, f.loop, &upload, place, piece, now_ms, on_done, &seen);
    loop_run(f.loop);
}

static void put(struct str id, size_t size, int64_t now_ms) {
    size_t place = 0;
    for (; size - place > UPLOAD_PIECE_BYTES; place += UPLOAD_PIECE_BYTES) {
        put_piece(id, size, place, UPLOAD_GOES_ON, now_ms);
        assert_int_equal(f.failed.code, ERR_NONE);
    }
    put_piece(id, size, place, UPLOAD_LAST, now_ms);
    assert_int_equal(f.failed.code, ERR_NONE);
}

static enum err_code get_of(const char *app, const char *subject, struct str id, size_t offset,
                            size_t limit, int64_t now_ms) {
    upload_get_start(f.store, f.loop, str_from(app), str_from(subject), id, offset, limit,
                     now_ms, on_done, &seen);
    loop_run(f.loop);
    return f.failed.code;
}

static enum err_code get(struct str id, int64_t now_ms) {
    return get_of("app", "anna", id, 0, SIZE_MAX, now_ms);
}

static bool more;

static void on_pruned(bool is_more, int64_t next, const struct err *failed, void *ctx) {
    assert_ptr_equal(ctx, &next_ms);
    answers++;
    assert_null(failed);
    more = is_more;
    next_ms = next;
    loop_stop(f.loop);
}

/* Until nothing is left to delete; returns how many commits that took. */
static int prune(int64_t now_ms) {
    int asked = 0;
    do {
        upload_prune_start(f.store, f.loop, now_ms, on_pruned, &next_ms);
        loop_run(f.loop);
        asked++;
    } while (more);
    return asked;
}

static int64_t count(const char *sql) {
    struct database db = {.handle = NULL};
    struct err e;
    int64_t number = -1;
    fixture_database(&f, &db);
    assert_true(database_number(&db, sql, &number, &e));
    database_close(&db);
    return number;
}

static void one_is_found_whole_and_in_parts(void **state) {
    (void)state;
    size_t size = 2 * UPLOAD_PIECE_BYTES + 5;
    put(ID, size, NOW);
    assert_int_equal(get(ID, NOW), ERR_NONE);
    assert_int_equal(seen.size, size);
    assert_int_equal(seen.created_ms, NOW);
    assert_true(str_equal(buf_str(&bytes), str_of(much, size)));
    static const size_t offsets[] = {0,
                                     1,
                                     UPLOAD_PIECE_BYTES - 1,
                                     UPLOAD_PIECE_BYTES,
                                     2 * UPLOAD_PIECE_BYTES - 1,
                                     2 * UPLOAD_PIECE_BYTES + 4,
                                     2 * UPLOAD_PIECE_BYTES + 5,
                                     SIZE_MAX};
    static const size_t limits[] = {0, 1, 2, UPLOAD_PIECE_BYTES + 1, SIZE_MAX};
    for (size_t i = 0; i < ARRAY_LEN(offsets); i++) {
        for (size_t l = 0; l < ARRAY_LEN(limits); l++) {
            assert_int_equal(get_of("app", "anna", ID, offsets[i], limits[l], NOW), ERR_NONE);
            struct str all = str_of(much, size);
            struct str wanted = str_head(str_skip(all, offsets[i]), limits[l]);
            assert_true(str_equal(buf_str(&bytes), wanted));
        }
    }
}

static void sizes_on_the_edge_of_a_piece_are_kept(void **state) {
    (void)state;
    static const size_t sizes[] = {1, UPLOAD_PIECE_BYTES - 1, UPLOAD_PIECE_BYTES,
                                   UPLOAD_PIECE_BYTES + 1, UPLOAD_MAX_BYTES};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        char id[8];
        snprintf(id, sizeof(id), "%zu", i);
        put(str_from(id), sizes[i], NOW);
        assert_int_equal(get(str_from(id), NOW), ERR_NONE);
        assert_true(str_equal(buf_str(&bytes), str_of(much, sizes[i])));
    }
}

/* The last piece may be empty: all had come before it was known to be the end. */
static void an_empty_last_piece_makes_it_whole(void **state) {
    (void)state;
    put_piece(ID, UPLOAD_PIECE_BYTES, 0, UPLOAD_GOES_ON, NOW);
    assert_int_equal(get(ID, NOW), ERR_NOT_FOUND);
    put_piece(ID, UPLOAD_PIECE_BYTES, UPLOAD_PIECE_BYTES, UPLOAD_LAST, NOW);
    assert_int_equal(get(ID, NOW), ERR_NONE);
    assert_int_equal(bytes.len, UPLOAD_PIECE_BYTES);
}

/* M1 */
static void only_its_app_and_subject_find_it(void **state) {
    (void)state;
    put(ID, 5, NOW);
    assert_int_equal(get_of("app", "anna", ID, 0, 1, NOW), ERR_NONE);
    assert_int_equal(get_of("other", "anna", ID, 0, 1, NOW), ERR_NOT_FOUND);
    assert_int_equal(get_of("app", "bob", ID, 0, 1, NOW), ERR_NOT_FOUND);
    assert_int_equal(get_of("app", "", ID, 0, 1, NOW), ERR_NOT_FOUND);
    assert_int_equal(get_of("", "anna", ID, 0, 1, NOW), ERR_NOT_FOUND);
    assert_int_equal(get_of("app", "anna", STR("artifact_2"), 0, 1, NOW), ERR_NOT_FOUND);
    assert_true(str_find(err_text(&f.failed), STR("30 minutes")) < 200);
}

/* M1: whatever fifty owners put, drop and ask for, each finds its own and no other's. */
static void fifty_owners_never_find_anothers(void **state) {
    (void)state;
    enum { OWNERS = 50, ROUNDS = 1500 };
    static char apps[OWNERS][8], subjects[OWNERS][8]; /* one of an app has none */
    int newest[OWNERS]; /* whose id is "round"; -1: dropped, or none yet */
    unsigned noise = 7;
    for (int i = 0; i < OWNERS; i++) {
        snprintf(apps[i], sizeof(apps[i]), "a%d", i / 5); /* five subjects an app */
        if (i % 5) snprintf(subjects[i], sizeof(subjects[i]), "s%d", i % 5);
        newest[i] = -1;
    }
    for (int round = 0; round < ROUNDS; round++) {
        char id[16];
        noise = noise * 1103515245u + 12345u;
        int owner = (int)(noise >> 16) % OWNERS, asker = (int)(noise >> 8 & 0xFF) % OWNERS;
        if (newest[owner] < 0) {
            newest[owner] = round;
            snprintf(id, sizeof(id), "%d", round);
            struct upload upload = upload_of(str_from(id), strlen(apps[owner]));
            upload.app = str_from(apps[owner]);
            upload.subject = str_from(subjects[owner]);
            upload.bytes = str_from(apps[owner]);
            upload_put_start(f.store, f.loop, &upload, 0, UPLOAD_LAST, NOW, on_done, &seen);
            loop_run(f.loop);
            assert_int_equal(f.failed.code, ERR_NONE);
        } else if (noise >> 28 == 0) {
            snprintf(id, sizeof(id), "%d", newest[owner]);
            upload_drop(f.store, f.loop, str_from(id));
            newest[owner] = -1;
        } else {
            snprintf(id, sizeof(id), "%d", newest[owner]);
            enum err_code code = get_of(apps[asker], subjects[asker], str_from(id), 0, 9, NOW);
            assert_int_equal(code, asker == owner ? ERR_NONE : ERR_NOT_FOUND);
            assert_int_equal(bytes.len, asker == owner ? strlen(apps[owner]) : 0);
        }
    }
}

static void its_half_hour_outlives_a_restart_and_then_it_is_gone(void **state) {
    (void)state;
    put(ID, 3 * UPLOAD_PIECE_BYTES, NOW);
    fixture_close(&f);
    fixture_open(&f);
    assert_int_equal(get(ID, NOW + UPLOAD_KEPT_MS - 1), ERR_NONE);
    assert_int_equal(get(ID, NOW + UPLOAD_KEPT_MS), ERR_NOT_FOUND);
    prune(NOW + UPLOAD_KEPT_MS - 1);
    assert_int_equal(next_ms, NOW + UPLOAD_KEPT_MS);
    assert_int_equal(get(ID, NOW), ERR_NONE);
    prune(NOW + UPLOAD_KEPT_MS);
    assert_int_equal(next_ms, 0);
    fixture_close(&f);
    assert_int_equal(count("SELECT count(*) FROM upload"), 0);
    assert_int_equal(count("SELECT count(*) FROM upload_piece"), 0);
}

/* L6 */
static void a_large_one_is_deleted_a_few_pieces_at_a_time(void **state) {
    (void)state;
    put(ID, UPLOAD_MAX_BYTES, NOW);
    upload_drop(f.store, f.loop, ID);
    assert_int_equal(prune(NOW), UPLOAD_MAX_BYTES / UPLOAD_PIECE_BYTES / 4);
    assert_int_equal(get(ID, NOW), ERR_NOT_FOUND);
}

static void nothing_is_written_when_nothing_is_over(void **state) {
    (void)state;
    put(ID, 5, NOW);
    fixture_close(&f);
    int64_t rows = count("SELECT max(id) FROM log");
    fixture_open(&f);
    assert_int_equal(prune(NOW), 1);
    fixture_close(&f);
    assert_int_equal(count("SELECT max(id) FROM log"), rows);
}

/* A process that dies in the middle leaves nothing. */
static void what_an_earlier_start_left_half_sent_is_over(void **state) {
    (void)state;
    put_piece(STR("half"), 2 * UPLOAD_PIECE_BYTES, 0, UPLOAD_GOES_ON, NOW);
    put(ID, 5, NOW);
    prune(NOW);
    put_piece(STR("half"), 3 * UPLOAD_PIECE_BYTES, UPLOAD_PIECE_BYTES, UPLOAD_GOES_ON, NOW);
    assert_int_equal(f.failed.code, ERR_NONE); /* of this start: it goes on */
    fixture_close(&f);
    fixture_open(&f);
    prune(NOW);
    assert_int_equal(get(ID, NOW), ERR_NONE);
    put_piece(STR("half"), 3 * UPLOAD_PIECE_BYTES, 2 * UPLOAD_PIECE_BYTES, UPLOAD_LAST, NOW);
    assert_int_equal(f.failed.code, ERR_NOT_FOUND);
    fixture_close(&f);
    assert_int_equal(count("SELECT count(*) FROM upload"), 1);
    assert_int_equal(count("SELECT count(*) FROM upload_piece"), 1);
}

static void one_that_is_dropped_is_over(void **state) {
    (void)state;
    put_piece(ID, 2 * UPLOAD_PIECE_BYTES, 0, UPLOAD_GOES_ON, NOW);
    upload_drop(f.store, f.loop, ID);
    upload_drop(f.store, f.loop, STR("never there"));
    put_piece(ID, 2 * UPLOAD_PIECE_BYTES, UPLOAD_PIECE_BYTES, UPLOAD_LAST, NOW);
    assert_int_equal(f.failed.code, ERR_NOT_FOUND);
    prune(NOW);
    fixture_close(&f);
    assert_int_equal(count("SELECT count(*) FROM upload"), 0);
}

static void the_oldest_of_too_many_make_room(void **state) {
    (void)state;
    char id[16];
    for (int i = 0; i <= UPLOAD_KEPT_MAX; i++) {
        snprintf(id, sizeof(id), "artifact_%d", i);
        put(str_from(id), 1, NOW);
    }
    assert_int_equal(get(STR("artifact_0"), NOW), ERR_NOT_FOUND);
    assert_int_equal(get(STR("artifact_1"), NOW), ERR_NONE);
    prune(NOW);
    fixture_close(&f);
    assert_int_equal(count("SELECT count(*) FROM upload"), UPLOAD_KEPT_MAX);
    assert_int_equal(count("SELECT count(*) FROM upload_piece"), UPLOAD_KEPT_MAX);
}

/* A deleted upload is not found in the files either. */
static bool is_in_file(const char *name, struct str text) {
    char path[96];
    struct buf all;
    bool found = false;
    snprintf(path, sizeof(path), "%s/%s", f.folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    buf_init(&all, 64 * MIB);
    for (size_t got = 1; got;) {
        char *at = buf_room(&all, 64 * KIB);
        assert_non_null(at);
        got = fread(at, 1, 64 * KIB, file);
        buf_grew(&all, got);
    }
    found = str_find(buf_str(&all), text) < all.len;
    fclose(file);
    buf_done(&all);
    return found;
}

static void what_is_gone_is_in_no_file(void **state) {
    FIXTURE_SQLITE_ONLY();
    (void)state;
    struct upload upload = upload_of(ID, 6);
    upload.bytes = STR("canary");
    upload_put_start(f.store, f.loop, &upload, 0, UPLOAD_LAST, NOW, on_done, &seen);
    loop_run(f.loop);
    assert_true(is_in_file("weir.db-wal", STR("canary")));
    prune(NOW + UPLOAD_KEPT_MS);
    assert_false(is_in_file("weir.db-wal", STR("canary")));
    assert_false(is_in_file("weir.db", STR("canary")));
}

static void a_forgotten_question_is_never_answered(void **state) {
    (void)state;
    answers = 0;
    upload_forget(upload_get_start(f.store, f.loop, STR("app"), STR("anna"), ID, 0, 1, NOW,
                                   on_done, &seen));
    upload_forget(upload_prune_start(f.store, f.loop, NOW, on_pruned, &next_ms));
    upload_forget(NULL);
    put(STR("other"), 1, NOW);
    assert_int_equal(answers, 1); /* of the put alone */
}

static int make_bytes(void **state) {
    (void)state;
    much = mem_alloc(UPLOAD_MAX_BYTES);
    for (size_t i = 0; i < UPLOAD_MAX_BYTES; i++) much[i] = (char)(i * 2654435761u >> 13);
    return 0;
}

static int free_bytes(void **state) {
    (void)state;
    free(much);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(one_is_found_whole_and_in_parts),
        TEST(sizes_on_the_edge_of_a_piece_are_kept),
        TEST(an_empty_last_piece_makes_it_whole),
        TEST(only_its_app_and_subject_find_it),
        TEST(fifty_owners_never_find_anothers),
        TEST(its_half_hour_outlives_a_restart_and_then_it_is_gone),
        TEST(a_large_one_is_deleted_a_few_pieces_at_a_time),
        TEST(nothing_is_written_when_nothing_is_over),
        TEST(what_an_earlier_start_left_half_sent_is_over),
        TEST(one_that_is_dropped_is_over),
        TEST(the_oldest_of_too_many_make_room),
        TEST(what_is_gone_is_in_no_file),
        TEST(a_forgotten_question_is_never_answered),
    };
    return cmocka_run_group_tests(tests, make_bytes, free_bytes);
}
