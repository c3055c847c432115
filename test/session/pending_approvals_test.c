/* Runs that wait for a human: who finds them, in which order, and that each is found once. */
#include "session/pending_approvals.h"

#include "helper/assert_str.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static struct session_name named(const char *workspace, const char *user, const char *session) {
    return (struct session_name){str_from(workspace), user ? str_from(user) : ANY_USER,
                                 str_from(session)};
}

static void add(struct pending_approvals *approvals, struct pending_approval *parked,
                const char *workspace, const char *user, const char *session) {
    *parked = (struct pending_approval){.name = named(workspace, user, session)};
    pending_approvals_add(approvals, parked);
}

static enum pending_found anything(const struct pending_question *asked, void *ctx) {
    (void)asked, (void)ctx;
    return PENDING_TAKEN;
}

static struct pending_approval *take(struct pending_approvals *approvals, const char *workspace,
                                     const char *user, const char *session) {
    struct session_name name = named(workspace, user, session);
    bool had = pending_approvals_has(approvals, &name);
    struct pending_approval *parked = NULL;
    enum pending_found found = pending_approvals_take(
        approvals, &(struct pending_approvals_wish){.name = &name, .check = anything}, &parked);
    assert_int_equal(found, had ? PENDING_TAKEN : PENDING_NONE);
    if (parked) pending_approvals_leave(approvals, parked);
    return parked;
}

static void a_run_is_found_by_its_whole_name_or_without_the_user(void **state) {
    (void)state;
    struct pending_approvals *approvals = pending_approvals_new();
    struct pending_approval ann, bob;
    for (size_t round = 0; round < 2; round++) {
        add(approvals, &ann, "w", "ann", "s");
        add(approvals, &bob, "w", "bob", "s");
        assert_null(take(approvals, "w", "cid", "s"));
        assert_null(take(approvals, "w", "ann", "t"));
        assert_null(take(approvals, "ws", NULL, ""));
        assert_null(take(approvals, "", NULL, "ws"));
        if (round == 0) assert_ptr_equal(take(approvals, "w", "bob", "s"), &bob);
        assert_ptr_equal(take(approvals, "w", NULL, "s"), &ann);
        if (round == 1) assert_ptr_equal(take(approvals, "w", NULL, "s"), &bob);
        assert_null(take(approvals, "w", NULL, "s"));
    }
    pending_approvals_free(approvals);
}

static void a_run_that_was_taken_or_removed_is_not_found_again(void **state) {
    (void)state;
    struct pending_approvals *approvals = pending_approvals_new();
    struct pending_approval runs[3];
    for (size_t i = 0; i < 3; i++) add(approvals, &runs[i], "w", "u", "s");
    assert_ptr_equal(take(approvals, "w", "u", "s"), &runs[0]);
    assert_false(pending_approvals_remove(approvals, &runs[0]));
    assert_true(pending_approvals_remove(approvals, &runs[1]));
    assert_false(pending_approvals_remove(approvals, &runs[1]));
    assert_ptr_equal(take(approvals, "w", "u", "s"), &runs[2]);
    assert_null(take(approvals, "w", "u", "s"));
    pending_approvals_free(approvals);
}

static size_t answered(struct pending_approvals *approvals, const char *user,
                       uint64_t *ret_runs, size_t max) {
    struct session_name name = named("w", user, "s");
    return pending_approvals_answered(approvals, &name, ret_runs, max);
}

/* Until it has asked for its session again; by an answer or for want of one. */
static void a_run_that_was_answered_is_known_until_it_leaves(void **state) {
    (void)state;
    struct pending_approvals *approvals = pending_approvals_new();
    struct pending_approval first, second, other, *taken = NULL;
    struct session_name name = named("w", "u", "s");
    const struct pending_approvals_wish wish = {.name = &name, .check = anything};
    uint64_t runs[3] = {0};
    add(approvals, &first, "w", "u", "s");
    add(approvals, &second, "w", "u", "s");
    add(approvals, &other, "w", "v", "s");
    first.run = 7, second.run = 8, other.run = 9;
    assert_int_equal(answered(approvals, "u", runs, 3), 0);
    assert_int_equal(pending_approvals_take(approvals, &wish, &taken), PENDING_TAKEN);
    assert_ptr_equal(taken, &first);
    assert_true(pending_approvals_expire(approvals, &second));
    assert_true(pending_approvals_expire(approvals, &other));
    assert_false(pending_approvals_expire(approvals, &first));
    assert_false(pending_approvals_remove(approvals, &first));
    assert_false(pending_approvals_has(approvals, &name));
    assert_false(pending_approvals_asks(approvals, &name, 7, 0));
    assert_int_equal(answered(approvals, "u", runs, 3), 2);
    assert_int_equal(runs[0], 7);
    assert_int_equal(runs[1], 8);
    assert_int_equal(answered(approvals, "u", runs, 1), 1);
    pending_approvals_leave(approvals, &first);
    assert_int_equal(answered(approvals, "u", runs, 3), 1);
    assert_int_equal(runs[0], 8);
    pending_approvals_leave(approvals, &second);
    assert_int_equal(answered(approvals, "u", runs, 3), 0);
    assert_int_equal(answered(approvals, "v", runs, 3), 1);
    add(approvals, &first, "w", "u", "s"); /* it asks something else */
    assert_true(pending_approvals_has(approvals, &name));
    assert_true(pending_approvals_remove(approvals, &first));
    pending_approvals_leave(approvals, &other);
    pending_approvals_free(approvals);
}

static void a_name_that_is_too_long_for_a_session_finds_no_agents(void **state) {
    (void)state;
    struct pending_approvals *approvals = pending_approvals_new();
    static char name[64 * KIB + 1];
    memset(name, 'x', sizeof(name) - 1);
    assert_null(take(approvals, "w", NULL, name));
    pending_approvals_free(approvals);
}

/* --- one run, and what waits -------------------------------------------------------------- */

static enum pending_found allow(const struct pending_question *asked, void *ctx) {
    (*(size_t *)ctx)++;
    return str_equal(asked->tool, STR("never")) ? PENDING_REFUSED : PENDING_TAKEN;
}

static enum pending_found take_run(struct pending_approvals *approvals, const char *session,
                                   uint64_t run, uint64_t seq, size_t *checks,
                                   struct pending_approval **ret) {
    struct session_name name = named("w", "u", session);
    const struct pending_approvals_wish wish = {
        .name = &name, .run = run, .seq = seq, .check = allow, .ctx = checks};
    return pending_approvals_take(approvals, &wish, ret);
}

static void one_run_is_taken_by_its_approval_unless_it_is_not_to_be_answered_so(void **state) {
    (void)state;
    struct pending_approvals *approvals = pending_approvals_new();
    struct pending_approval first, second, *taken = NULL;
    size_t checks = 0;
    add(approvals, &first, "w", "u", "s");
    add(approvals, &second, "w", "u", "s");
    first.run = 7, first.seq = 3;
    second.run = 8, second.seq = 5;
    second.asked.tool = STR("never");
    assert_int_equal(take_run(approvals, "s", 7, 4, &checks, &taken), PENDING_NONE);
    assert_int_equal(take_run(approvals, "s", 9, 3, &checks, &taken), PENDING_NONE);
    assert_int_equal(take_run(approvals, "t", 7, 3, &checks, &taken), PENDING_NONE);
    assert_int_equal(checks, 0);
    assert_int_equal(take_run(approvals, "s", 8, 5, &checks, &taken), PENDING_REFUSED);
    assert_null(taken);
    assert_int_equal(take_run(approvals, "s", 7, 3, &checks, &taken), PENDING_TAKEN);
    assert_ptr_equal(taken, &first);
    assert_int_equal(take_run(approvals, "s", 7, 3, &checks, &taken), PENDING_NONE);
    assert_int_equal(checks, 2);
    pending_approvals_leave(approvals, &first);
    assert_true(pending_approvals_remove(approvals, &second)); /* refused: it waits on */
    pending_approvals_free(approvals);
}

/* Another user may guess its id. */
static void a_run_that_is_named_is_its_user_s(void **state) {
    (void)state;
    static const struct {
        const char *workspace, *user, *session;
        bool found;
    } names[] = {{"w", "bob", "s", false}, {"w", "", "s", false},   {"v", "ann", "s", false},
                 {"w", "ann", "t", false}, {"w", "ann", "s", true}, {"w", NULL, "s", true}};
    struct pending_approvals *approvals = pending_approvals_new();
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct session_name name = named(names[i].workspace, names[i].user, names[i].session);
        struct pending_approval ann, *taken = NULL;
        const struct pending_approvals_wish wish = {
            .name = &name, .run = 7, .seq = 3, .check = anything};
        add(approvals, &ann, "w", "ann", "s");
        ann.run = 7, ann.seq = 3;
        assert_int_equal(pending_approvals_asks(approvals, &name, 7, 3), names[i].found);
        assert_false(pending_approvals_asks(approvals, &name, 7, 4));
        assert_false(pending_approvals_asks(approvals, &name, 8, 3));
        enum pending_found found = pending_approvals_take(approvals, &wish, &taken);
        assert_int_equal(found, names[i].found ? PENDING_TAKEN : PENDING_NONE);
        assert_ptr_equal(taken, names[i].found ? &ann : NULL);
        if (names[i].found)
            pending_approvals_leave(approvals, &ann);
        else
            assert_true(pending_approvals_remove(approvals, &ann));
        assert_false(pending_approvals_asks(approvals, &name, 7, 3));
    }
    pending_approvals_free(approvals);
}

static enum pending_found undecided(const struct pending_question *asked, void *ctx) {
    (void)asked, (void)ctx;
    return PENDING_UNDECIDED;
}

static enum pending_found take_by(struct pending_approvals *approvals, const char *user,
                                  enum pending_approvals_rule rule) {
    struct session_name name = named("w", user, "s");
    struct arena *arena = arena_new(MIB);
    struct pending_view view = {.run = 0};
    struct pending_approval *taken;
    const struct pending_approvals_wish wish = {
        .name = &name, .rule = rule, .check = undecided, .arena = arena, .view = &view};
    enum pending_found found = pending_approvals_take(approvals, &wish, &taken);
    if (found == PENDING_UNDECIDED) { /* it waits on, and can be answered */
        assert_int_equal(view.run, 7);
        assert_str(view.asked.question, "May I?");
        assert_null(view.asked.schema);
    }
    arena_free(arena);
    return found;
}

static void where_several_wait_the_rule_says_whether_one_is_meant(void **state) {
    (void)state;
    struct pending_approvals *approvals = pending_approvals_new();
    struct pending_approval runs[3];
    assert_int_equal(take_by(approvals, NULL, PENDING_OLDEST), PENDING_NONE);
    add(approvals, &runs[0], "w", "ann", "s");
    runs[0].run = 7, runs[0].seq = 3;
    runs[0].asked.question = STR("May I?");
    assert_int_equal(take_by(approvals, NULL, PENDING_ONLY_ONE), PENDING_UNDECIDED);
    add(approvals, &runs[1], "w", "ann", "s");
    assert_int_equal(take_by(approvals, NULL, PENDING_ONLY_ONE), PENDING_SEVERAL);
    assert_int_equal(take_by(approvals, "ann", PENDING_ONLY_ONE), PENDING_SEVERAL);
    assert_int_equal(take_by(approvals, NULL, PENDING_OF_ONE_USER), PENDING_UNDECIDED);
    add(approvals, &runs[2], "w", "bob", "s");
    assert_int_equal(take_by(approvals, NULL, PENDING_OF_ONE_USER), PENDING_SEVERAL);
    assert_int_equal(take_by(approvals, "ann", PENDING_OF_ONE_USER), PENDING_UNDECIDED);
    assert_int_equal(take_by(approvals, NULL, PENDING_OLDEST), PENDING_UNDECIDED);
    for (size_t i = 0; i < ARRAY_LEN(runs); i++)
        assert_true(pending_approvals_remove(approvals, &runs[i]));
    pending_approvals_free(approvals);
}

#define WAITING 40

static size_t list(struct pending_approvals *approvals,
                   const struct pending_approvals_filter *filter, size_t count,
                   struct pending_view *ret, bool *ret_more) {
    struct arena *arena = arena_new(MIB);
    size_t found = pending_approvals_list(approvals, filter, count, arena, ret, ret_more);
    for (size_t i = 1; i < found; i++) assert_true(ret[i - 1].run < ret[i].run);
    arena_free(arena);
    return found;
}

static void what_waits_is_listed_the_lowest_run_first_and_no_more_than_is_wanted(void **state) {
    (void)state;
    static struct pending_approval runs[WAITING];
    static char sessions[WAITING][8];
    struct pending_view views[WAITING];
    struct pending_approvals *approvals = pending_approvals_new();
    bool more;
    for (size_t i = 0; i < WAITING; i++) {
        snprintf(sessions[i], sizeof(sessions[i]), "s%zu", i);
        runs[i] = (struct pending_approval){
            .name = named(i % 2 ? "w" : "v", i % 3 ? "ann" : "bob", sessions[i]),
            .run = 1 + i * 17 % WAITING,
            .seq = 2};
        pending_approvals_add(approvals, &runs[i]);
    }
    assert_int_equal(
        list(approvals, &(struct pending_approvals_filter){.run = 0}, WAITING, views, &more),
        WAITING);
    assert_false(more);
    for (size_t count = 1; count < WAITING; count++) {
        assert_int_equal(
            list(approvals, &(struct pending_approvals_filter){.run = 0}, count, views, &more),
            count);
        assert_int_equal(views[count - 1].run, count);
        assert_true(more);
    }
    assert_int_equal(list(approvals, &(struct pending_approvals_filter){.workspace = STR("w")},
                          WAITING, views, &more),
                     WAITING / 2);
    assert_int_equal(list(approvals, &(struct pending_approvals_filter){.user = STR("bob")},
                          WAITING, views, &more),
                     14);
    assert_int_equal(list(approvals, &(struct pending_approvals_filter){.session = STR("s9")},
                          WAITING, views, &more),
                     1);
    assert_int_equal(
        list(approvals, &(struct pending_approvals_filter){.run = 12}, WAITING, views, &more),
        1);
    assert_int_equal(list(approvals, &(struct pending_approvals_filter){.workspace = STR("")},
                          WAITING, views, &more),
                     0);
    for (size_t i = 0; i < WAITING; i++)
        assert_true(pending_approvals_remove(approvals, &runs[i]));
    pending_approvals_free(approvals);
}

static void a_listing_holds_copies_and_leaves_out_what_has_no_room(void **state) {
    (void)state;
    struct pending_approvals *approvals = pending_approvals_new();
    struct pending_view views[3];
    struct pending_approval runs[3];
    bool more;
    static char args[6000];
    memset(args, '1', sizeof(args));
    for (size_t i = 0; i < 3; i++) {
        add(approvals, &runs[i], "w", "u", "s");
        runs[i].run = i + 1;
        runs[i].seq = 9;
        runs[i].asked = (struct pending_question){.tool = STR("pay"), .asked_unix_ms = 5};
    }
    runs[1].asked.args = str_of(args, sizeof(args));
    struct arena *arena = arena_new(4096);
    assert_int_equal(pending_approvals_list(approvals,
                                            &(struct pending_approvals_filter){.run = 0}, 3,
                                            arena, views, &more),
                     2);
    assert_true(more);
    for (size_t i = 0; i < 3; i++) assert_true(pending_approvals_remove(approvals, &runs[i]));
    memset(runs, 0, sizeof(runs));
    assert_int_equal(views[1].run, 3);
    assert_str(views[1].asked.tool, "pay");
    assert_str(views[1].name.session, "s");
    assert_int_equal(views[1].asked.asked_unix_ms, 5);
    arena_free(arena);
    pending_approvals_free(approvals);
}

/* --- two threads -------------------------------------------------------------------------- */

#define RUNS 2000

struct race {
    struct pending_approvals *approvals;
    struct pending_approval *runs;
    _Atomic size_t taken;
};

static void *take_all(void *ctx) {
    struct race *race = ctx;
    struct session_name name = named("w", NULL, "s");
    struct pending_approval *parked;
    const struct pending_approvals_wish wish = {.name = &name, .check = anything};
    while (pending_approvals_take(race->approvals, &wish, &parked) == PENDING_TAKEN) {
        pending_approvals_leave(race->approvals, parked);
        atomic_fetch_add(&race->taken, 1);
    }
    return NULL;
}

static void *remove_all(void *ctx) {
    struct race *race = ctx;
    for (size_t i = RUNS; i > 0; i--) {
        if (pending_approvals_remove(race->approvals, &race->runs[i - 1]))
            atomic_fetch_add(&race->taken, 1);
    }
    return NULL;
}

static void of_several_takers_of_a_run_exactly_one_gets_it(void **state) {
    (void)state;
    static struct pending_approval runs[RUNS];
    struct race race = {.approvals = pending_approvals_new(), .runs = runs};
    for (size_t i = 0; i < RUNS; i++) add(race.approvals, &runs[i], "w", "u", "s");
    pthread_t threads[3];
    assert_int_equal(pthread_create(&threads[0], NULL, take_all, &race), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, remove_all, &race), 0);
    assert_int_equal(pthread_create(&threads[2], NULL, take_all, &race), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) pthread_join(threads[i], NULL);
    assert_int_equal(race.taken, RUNS);
    pending_approvals_free(race.approvals);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_found_by_its_whole_name_or_without_the_user),
        cmocka_unit_test(a_run_that_was_taken_or_removed_is_not_found_again),
        cmocka_unit_test(a_run_that_was_answered_is_known_until_it_leaves),
        cmocka_unit_test(a_name_that_is_too_long_for_a_session_finds_no_agents),
        cmocka_unit_test(one_run_is_taken_by_its_approval_unless_it_is_not_to_be_answered_so),
        cmocka_unit_test(a_run_that_is_named_is_its_user_s),
        cmocka_unit_test(where_several_wait_the_rule_says_whether_one_is_meant),
        cmocka_unit_test(what_waits_is_listed_the_lowest_run_first_and_no_more_than_is_wanted),
        cmocka_unit_test(a_listing_holds_copies_and_leaves_out_what_has_no_room),
        cmocka_unit_test(of_several_takers_of_a_run_exactly_one_gets_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
