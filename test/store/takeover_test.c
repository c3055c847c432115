#include "store/takeover.h"

#include "replicas.h"

#define DEAD "SELECT count(*) FROM replica WHERE fenced = 1 AND id > 0"

struct taking {
    struct fixture *f;
    size_t *open;
    struct takeover takeover;
    struct err failed;
};

static void taking_done(struct takeover *takeover, const struct err *failed, void *ctx) {
    struct taking *taking = ctx;
    (void)takeover;
    if (failed) taking->failed = *failed;
    if (--*taking->open == 0) loop_stop(taking->f->loop);
}

/* All of them at once. */
static void take_over(struct replica *replicas, struct taking *ret, size_t count) {
    size_t open = count;
    for (size_t i = 0; i < count; i++) {
        ret[i] = (struct taking){.f = replicas[i].f, .open = &open};
        ret[i].takeover = (struct takeover){.on_done = taking_done, .ctx = &ret[i]};
        takeover_start(replicas[i].store, ret[i].f->loop, &ret[i].takeover);
    }
    loop_run(replicas[0].f->loop);
    for (size_t i = 0; i < count; i++) {
        if (ret[i].failed.code) fail_msg("%s", ret[i].failed.text);
    }
}

/* The loop of nobody else is needed: the next task of the store is answered after it. */
static void free_leases(struct replica *replica) {
    takeover_free_leases(replica->store, replica->f->loop);
    assert_true(lease_is_given(replica, "another", false));
    server_run(replica->f, "DELETE FROM lease WHERE holder > 0");
}

static int64_t holders(struct fixture *f, const struct replica *replica, const char *of) {
    char sql[128];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s = %lld", of,
             (long long)store_epoch(replica->store));
    return server_number(f, sql);
}

static void the_runs_and_leases_of_a_dead_replica_become_ours(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct fixture *f = *state;
    struct replica a, b;
    struct taking taking;
    replica_open(f, &a, "a");
    replica_open(f, &b, "b");
    replica_write(&a, begun_run(1, "s"));
    replica_write(&a, whole_run(2, "t", "said"));
    replica_write(&b, begun_run(3, "u"));
    assert_true(lease_is_given(&a, "s", false));
    server_fence(f, "a");
    take_over(&b, &taking, 1);
    assert_int_equal(taking.takeover.run_count, 1);
    assert_int_equal(taking.takeover.runs[0].run, 1);
    assert_int_equal(taking.takeover.runs[0].last_seq, 2);
    assert_int_equal(taking.takeover.newest_run, 3); /* of all replicas */
    assert_int_equal(server_number(f, DEAD), 0);
    takeover_done(&taking.takeover);
    assert_false(lease_is_given(&b, "s", false)); /* its turn has not been ended */
    assert_int_equal(holders(f, &b, "lease WHERE -holder"), 1);
    free_leases(&b);
    assert_true(lease_is_given(&b, "s", false));
    replica_close(&a);
    replica_close(&b);
}

/* A run that waits for a human keeps its session, without a moment in between. */
static void a_lease_that_waits_can_be_kept_for_a_run_that_goes_on(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct fixture *f = *state;
    struct replica a, both[2];
    struct taking taking;
    replica_open(f, &a, "a");
    replica_open(f, &both[0], "b");
    replica_open(f, &both[1], "c");
    replica_write(&a, begun_run(1, "s"));
    assert_true(lease_is_given(&a, "s", false));
    server_fence(f, "a");
    take_over(&both[0], &taking, 1);
    takeover_done(&taking.takeover);
    assert_false(lease_is_given(&both[1], "s", true));
    assert_true(lease_is_given(&both[0], "s", true));
    takeover_free_leases(both[0].store, f->loop);
    assert_true(lease_is_given(&both[0], "another", false)); /* it was done before this */
    assert_false(lease_is_given(&both[1], "s", true));
    replica_close(&a);
    replica_close(&both[0]);
    replica_close(&both[1]);
}

static void of_several_that_take_over_at_once_one_gets_all(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct fixture *f = *state;
    struct replica a, both[2];
    struct taking taking[2];
    replica_open(f, &both[0], "b");
    replica_open(f, &both[1], "c");
    for (int round = 0; round < 5; round++) {
        replica_open(f, &a, "a");
        for (uint64_t i = 1; i <= 5; i++)
            replica_write(&a, begun_run((uint64_t)round * 10 + i, "s"));
        assert_true(lease_is_given(&a, "s", false));
        server_fence(f, "a");
        take_over(both, taking, 2);
        size_t winner = taking[1].takeover.run_count > 0;
        assert_int_equal(taking[winner].takeover.run_count, 5);
        assert_int_equal(taking[!winner].takeover.run_count, 0);
        assert_int_equal(holders(f, &both[winner], "lease WHERE -holder"), 1);
        for (size_t i = 0; i < 2; i++) takeover_done(&taking[i].takeover);
        free_leases(&both[winner]);
        replica_close(&a);
    }
    replica_close(&both[0]);
    replica_close(&both[1]);
}

/* The second one dies after it took, and before it ended the runs. */
static void what_was_taken_is_taken_on(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct fixture *f = *state;
    struct replica a, b, c;
    struct taking taking;
    replica_open(f, &a, "a");
    replica_open(f, &b, "b");
    replica_open(f, &c, "c");
    replica_write(&a, begun_run(1, "s"));
    assert_true(lease_is_given(&a, "s", false));
    server_fence(f, "a");
    take_over(&b, &taking, 1);
    takeover_done(&taking.takeover);
    server_fence(f, "b");
    take_over(&c, &taking, 1);
    assert_int_equal(taking.takeover.run_count, 1);
    takeover_done(&taking.takeover);
    assert_int_equal(holders(f, &c, "moved WHERE holder"), 1);
    assert_int_equal(holders(f, &c, "lease WHERE -holder"), 1);
    replica_close(&a);
    replica_close(&b);
    replica_close(&c);
}

/* Once it is over, a run that moved is remembered no longer than until the next takeover. */
static void a_run_that_was_ended_is_not_taken_again(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct fixture *f = *state;
    struct replica a, b;
    struct taking taking;
    struct row_text row;
    replica_open(f, &a, "a");
    replica_open(f, &b, "b");
    replica_write(&a, begun_run(1, "s"));
    server_fence(f, "a");
    take_over(&b, &taking, 1);
    takeover_done(&taking.takeover);
    row_begin(&row);
    row_section(&row, 1, 3);
    row_event(&row, done());
    replica_write(&b, row_end(&row, 1));
    take_over(&b, &taking, 1);
    assert_int_equal(taking.takeover.run_count, 0);
    takeover_done(&taking.takeover);
    assert_int_equal(server_number(f, "SELECT count(*) FROM moved"), 0);
    replica_close(&a);
    replica_close(&b);
}

static void one_that_lives_is_left_alone(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct fixture *f = *state;
    struct replica a, b;
    struct taking taking;
    replica_open(f, &a, "a");
    replica_open(f, &b, "b");
    replica_write(&a, begun_run(1, "s"));
    take_over(&b, &taking, 1);
    assert_int_equal(taking.takeover.run_count, 0);
    takeover_done(&taking.takeover);
    replica_write(&a, begun_run(2, "s"));
    assert_int_equal(server_number(f, "SELECT count(*) FROM replica WHERE id > 0"), 2);
    replica_close(&a);
    replica_close(&b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_runs_and_leases_of_a_dead_replica_become_ours),
        TEST(a_lease_that_waits_can_be_kept_for_a_run_that_goes_on),
        TEST(of_several_that_take_over_at_once_one_gets_all),
        TEST(what_was_taken_is_taken_on),
        TEST(a_run_that_was_ended_is_not_taken_again),
        TEST(one_that_lives_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
