#include "store/core_replica.h"

#include "replicas.h"

#define RESTS "SELECT count(*) FROM replica WHERE name = 'a' AND fenced = 1"

static void replicas_have_numbers_and_slots_of_their_own(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct fixture *f = *state;
    struct replica a, b;
    replica_open(f, &a, "a");
    replica_open(f, &b, "b");
    assert_true(store_is_shared(a.store));
    assert_true(store_epoch(b.store) > store_epoch(a.store));
    assert_int_not_equal(store_slot(a.store), store_slot(b.store));
    replica_close(&a);
    replica_close(&b);
}

/* Ids of runs are made of the time and the slot, and clocks differ. */
static void a_slot_rests_before_it_is_used_again(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct fixture *f = *state;
    bool used[256] = {false};
    for (int i = 0; i < 20; i++) {
        struct replica one;
        replica_open(f, &one, "one");
        assert_false(used[store_slot(one.store)]);
        used[store_slot(one.store)] = true;
        replica_close(&one);
        server_run(f, "DELETE FROM replica WHERE id > 0");
    }
}

static void the_last_free_slot_is_found_and_no_other(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct fixture *f = *state;
    struct replica last, more;
    server_run(f, "INSERT INTO replica SELECT 1000 + slot, CAST('r' || slot AS BYTEA), slot, "
                  "'infinity', 0, 0,"
                  " NULL, NULL FROM generate_series(0, 255) AS slot WHERE slot <> 77");
    replica_open(f, &last, "last");
    assert_int_equal(store_slot(last.store), 77);
    assert_false(replica_try_open(f, &more, "more", fixture_postgres()));
    assert_int_equal(f->failed.code, ERR_RESOURCE_EXHAUSTED);
    replica_close(&more);
    replica_close(&last);
}

static void all_write_to_one_log_without_a_gap(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct fixture *f = *state;
    struct replica both[2];
    replica_open(f, &both[0], "a");
    replica_open(f, &both[1], "b");
    for (uint64_t run = 1; run <= 20; run++)
        replica_write(&both[run % 2], whole_run(run, run % 3 ? "s" : "t", "said"));
    f->store = both[0].store;
    assert_answer(f, run_load(7, 0), "7:1 started said done");
    f->store = both[1].store;
    assert_answer(f, run_load(8, 0), "8:1 started said done");
    f->store = NULL;
    assert_int_equal(server_number(f, "SELECT max(id) - count(*) FROM log"), 0);
    assert_int_equal(server_number(f, "SELECT count(DISTINCT replica) FROM log"), 2);
    replica_close(&both[0]);
    replica_close(&both[1]);
}

struct counting {
    struct fixture *f;
    size_t open;
    struct err failed;
};

static void count_written(struct store_write *write, const struct err *failed, void *ctx) {
    struct counting *counting = ctx;
    (void)write;
    if (failed) counting->failed = *failed;
    if (--counting->open == 0) loop_stop(counting->f->loop);
}

/* The lock is taken first, and what was committed until then must be seen. */
static void it_does_not_matter_how_the_server_isolates_by_default(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct fixture *f = *state;
    struct replica both[2];
    char url[512];
    snprintf(url, sizeof(url),
             STR_FMT "?options=-c%%20search_path%%3D%s"
                     "%%20-c%%20default_transaction_isolation%%3Dserializable",
             STR_ARG(fixture_postgres()), f->schema);
    replica_open_at(f, &both[0], "a", str_from(url));
    replica_open_at(f, &both[1], "b", str_from(url));
    struct counting counting = {.f = f};
    for (uint64_t round = 0; round < 10; round++) {
        struct store_write writes[2];
        struct store_row rows[2];
        counting.open = 2;
        for (uint64_t i = 0; i < 2; i++) {
            rows[i] = whole_run(2 * round + i + 1, "s", "said");
            writes[i] = (struct store_write){.rows = &rows[i],
                                             .row_count = 1,
                                             .home = f->loop,
                                             .on_written = count_written,
                                             .ctx = &counting};
            store_write(both[i].store, &writes[i]);
        }
        loop_run(f->loop);
        if (counting.failed.code) fail_msg("%s", counting.failed.text);
        for (uint64_t i = 0; i < 2; i++) buf_done(&rows[i].bytes);
    }
    assert_int_equal(server_number(f, "SELECT count(*) FROM log"), 20);
    replica_close(&both[0]);
    replica_close(&both[1]);
}

static void what_a_fenced_replica_writes_is_refused(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct fixture *f = *state;
    struct replica a, b;
    replica_open(f, &a, "a");
    replica_open(f, &b, "b");
    replica_write(&a, whole_run(1, "s", "said"));
    server_fence(f, "a");
    assert_false(replica_try_write(&a, whole_run(2, "s", "not said")));
    assert_int_equal(f->failed.code, ERR_UNAVAILABLE);
    replica_write(&b, whole_run(3, "s", "said"));
    assert_int_equal(server_number(f, "SELECT count(*) FROM log"), 2);
    replica_close(&a);
    replica_close(&b);
}

static void one_of_the_same_name_takes_its_place(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct fixture *f = *state;
    struct replica before, now;
    replica_open(f, &before, "a");
    replica_open(f, &now, "a");
    assert_false(replica_try_write(&before, whole_run(1, "s", "not said")));
    replica_write(&now, whole_run(2, "s", "said"));
    assert_int_equal(server_number(f, RESTS), 1);
    replica_close(&before);
    replica_close(&now);
}

/* One of its runs may wait for a human; its session is free when another one has that run. */
static void one_that_ends_is_fenced_and_keeps_its_leases(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct fixture *f = *state;
    struct replica a, b;
    replica_open(f, &a, "a");
    replica_open(f, &b, "b");
    assert_true(lease_is_given(&a, "s", false));
    replica_close(&a);
    assert_int_equal(server_number(f, RESTS), 1);
    assert_int_equal(server_number(f, "SELECT count(*) FROM lease"), 1);
    assert_false(lease_is_given(&b, "s", true));
    replica_close(&b);
}

/* A write whose connection breaks is there, or it is not, and its writer knows which. */
static void a_commit_is_counted_once_when_its_connection_is_cut(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct fixture *f = *state;
    struct replica a;
    replica_open(f, &a, "a");
    size_t kept = 0;
    for (uint64_t run = 1; run <= 20; run++) {
        server_run(
            f,
            "SELECT pg_terminate_backend(CAST(pid AS INTEGER)) FROM replica WHERE name = 'a'");
        kept += replica_try_write(&a, whole_run(run, "s", "said"));
        if (f->failed.code) assert_int_equal(f->failed.code, ERR_UNAVAILABLE);
    }
    assert_int_equal(server_number(f, "SELECT count(*) FROM log"), kept);
    replica_write(&a, whole_run(99, "s", "said"));
    replica_close(&a);
}

/* Else the others would wait for it until this replica ends. What it asks for afterwards comes
 * after that. */
static void a_lease_is_given_back_though_the_connection_is_cut(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct fixture *f = *state;
    struct replica a, b;
    const struct lease_key key = key_named("s");
    replica_open(f, &a, "a");
    replica_open(f, &b, "b");
    for (size_t round = 0; round < 20; round++) {
        assert_true(lease_is_given(&a, "s", false));
        server_run(
            f,
            "SELECT pg_terminate_backend(CAST(pid AS INTEGER)) FROM replica WHERE name = 'a'");
        lease_give_back(a.store, f->loop, &key);
        while (!lease_is_tried(&a, "t")) continue; /* the one that failed with it */
        assert_true(lease_is_given(&b, "s", false));
        lease_give_back(b.store, f->loop, &key);
        assert_true(lease_is_given(&b, "u", false));
    }
    replica_close(&a);
    replica_close(&b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(replicas_have_numbers_and_slots_of_their_own),
        TEST(a_slot_rests_before_it_is_used_again),
        TEST(the_last_free_slot_is_found_and_no_other),
        TEST(all_write_to_one_log_without_a_gap),
        TEST(it_does_not_matter_how_the_server_isolates_by_default),
        TEST(what_a_fenced_replica_writes_is_refused),
        TEST(one_of_the_same_name_takes_its_place),
        TEST(one_that_ends_is_fenced_and_keeps_its_leases),
        TEST(a_lease_is_given_back_though_the_connection_is_cut),
        TEST(a_commit_is_counted_once_when_its_connection_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
