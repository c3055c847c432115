#include "session/dormant_runs.h"

#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "turn/fixture.h"

#define MANY 5000

static void add(struct fixture *f, struct dormant_runs *dormant, uint64_t run,
                const char *workspace, const char *user, const char *session,
                int64_t deadline_ms) {
    dormant_runs_add(dormant,
                     &(struct dormant_run){.run = run,
                                           .engine = &f->engine,
                                           .host = &f->host,
                                           .alone_s = 7,
                                           .transfers = 3,
                                           .addressed = true,
                                           .deadline_unix_ms = deadline_ms},
                     str_from(workspace), str_from(user), str_from(session));
}

static void assert_listed(struct dormant_runs *dormant, struct dormant_filter filter,
                          size_t max, const char *expected) {
    uint64_t runs[16];
    struct buf out;
    buf_init(&out, KIB);
    assert_true(max <= 16);
    size_t count = dormant_runs_list(dormant, &filter, max, runs);
    for (size_t i = 0; i < count; i++) buf_printf(&out, "%llu ", (unsigned long long)runs[i]);
    assert_str(buf_str(&out), expected);
    assert_int_equal(dormant_runs_has(dormant, &filter), *expected != '\0');
    buf_done(&out);
}

static void engine_and_host_of_a_dormant_run_come_back(void **state) {
    struct fixture *f = *state;
    struct dormant_run found;
    struct dormant_runs *dormant = dormant_runs_new();
    unsigned refs = atomic_load(&f->engine.refs);
    add(f, dormant, 5, "w", "u", "s", 1800000000123);
    assert_int_equal(atomic_load(&f->engine.refs), refs + 1);
    assert_true(dormant_runs_find(dormant, 5, &found));
    assert_ptr_equal(found.engine, &f->engine);
    assert_ptr_equal(found.host, &f->host);
    assert_int_equal(found.alone_s, 7);
    assert_int_equal(found.transfers, 3);
    assert_true(found.addressed);
    assert_int_equal(found.deadline_unix_ms, 1800000000123);
    assert_false(dormant_runs_find(dormant, 6, &found));
    dormant_runs_remove(dormant, 6);
    dormant_runs_remove(dormant, 5);
    dormant_runs_remove(dormant, 5);
    assert_int_equal(atomic_load(&f->engine.refs), refs);
    assert_int_equal(dormant_runs_count(dormant), 0);
    dormant_runs_free(dormant);
}

static void each_name_finds_its_own(void **state) {
    struct fixture *f = *state;
    struct dormant_runs *dormant = dormant_runs_new();
    const struct str w = STR("w"), u = STR("u"), s = STR("s"), none = {NULL, 0};
    add(f, dormant, 30, "w", "u", "s", 0);
    add(f, dormant, 10, "w", "v", "s", 0);
    add(f, dormant, 20, "w", "u", "t", 0);
    add(f, dormant, 40, "x", "u", "s", 0);
    add(f, dormant, 50, "ws", "u", "", 0);
    assert_listed(dormant, (struct dormant_filter){w, u, s, 0}, 16, "30 ");
    assert_listed(dormant, (struct dormant_filter){w, none, s, 0}, 16, "30 10 ");
    assert_listed(dormant, (struct dormant_filter){w, none, s, 0}, 1, "30 ");
    assert_listed(dormant, (struct dormant_filter){w, none, none, 0}, 16, "10 20 30 ");
    assert_listed(dormant, (struct dormant_filter){none, u, none, 0}, 16, "20 30 40 50 ");
    assert_listed(dormant, (struct dormant_filter){none, none, none, 0}, 3, "10 20 30 ");
    assert_listed(dormant, (struct dormant_filter){none, none, none, 40}, 16, "40 ");
    assert_listed(dormant, (struct dormant_filter){w, none, none, 40}, 16, "");
    assert_listed(dormant, (struct dormant_filter){w, STR(""), s, 0}, 16, "");
    assert_listed(dormant, (struct dormant_filter){none, none, none, 41}, 16, "");
    dormant_runs_forget(dormant, &f->host);
    assert_listed(dormant, (struct dormant_filter){none, none, none, 0}, 16, "");
    dormant_runs_free(dormant);
}

static void many_come_and_go(void **state) {
    struct fixture *f = *state;
    struct dormant_run found;
    char session[16];
    struct dormant_runs *dormant = dormant_runs_new();
    for (uint64_t i = 1; i <= MANY; i++) {
        snprintf(session, sizeof(session), "s%llu", (unsigned long long)i % 1000);
        add(f, dormant, i, "w", "u", session, 0);
    }
    assert_int_equal(dormant_runs_count(dormant), MANY);
    assert_int_equal(dormant_runs_added(dormant), MANY);
    assert_listed(dormant, (struct dormant_filter){STR("w"), STR("u"), STR("s7"), 0}, 16,
                  "7 1007 2007 3007 4007 ");
    for (uint64_t i = 1; i <= MANY; i += 2) dormant_runs_remove(dormant, i);
    for (uint64_t i = 1; i <= MANY; i++)
        assert_int_equal(dormant_runs_find(dormant, i, &found), i % 2 == 0);
    assert_listed(dormant, (struct dormant_filter){STR("w"), STR("u"), STR("s8"), 0}, 16,
                  "8 1008 2008 3008 4008 ");
    assert_listed(dormant, (struct dormant_filter){STR("w"), STR("u"), STR("s7"), 0}, 16, "");
    dormant_runs_forget(dormant, &f->host);
    assert_int_equal(dormant_runs_count(dormant), 0);
    assert_int_equal(dormant_runs_added(dormant), MANY); /* it never falls */
    dormant_runs_free(dormant);
}

static void runs_past_their_deadline_are_listed(void **state) {
    struct fixture *f = *state;
    struct run_host other = {.run_count = 0};
    uint64_t runs[4];
    int64_t next;
    struct dormant_runs *dormant = dormant_runs_new();
    add(f, dormant, 1, "w", "u", "s", 5000);
    add(f, dormant, 2, "w", "u", "s", 9000);
    add(f, dormant, 3, "w", "u", "s", 0);
    add(f, dormant, 4, "w", "u", "s", 7000);
    assert_int_equal(dormant_runs_due(dormant, &f->host, 4999, 4, runs, &next), 0);
    assert_int_equal(next, 5000);
    assert_int_equal(dormant_runs_due(dormant, &f->host, 7000, 4, runs, &next), 2);
    assert_int_equal(runs[0] + runs[1], 5);
    assert_int_equal(next, 9000);
    assert_int_equal(dormant_runs_due(dormant, &f->host, 10000, 1, runs, &next), 1);
    assert_true(next != 0); /* of the runs that had no room */
    assert_int_equal(dormant_runs_due(dormant, &other, 10000, 4, runs, &next), 0);
    assert_int_equal(next, 0);
    dormant_runs_forget(dormant, &other);
    assert_int_equal(dormant_runs_count(dormant), 4);
    dormant_runs_forget(dormant, &f->host);
    dormant_runs_free(dormant);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STORED_TURN_TEST(engine_and_host_of_a_dormant_run_come_back),
        STORED_TURN_TEST(each_name_finds_its_own),
        STORED_TURN_TEST(many_come_and_go),
        STORED_TURN_TEST(runs_past_their_deadline_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
