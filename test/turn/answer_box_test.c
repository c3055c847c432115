/* Answers that other replicas posted: taken once, given once, and none held up by another. */
#include "turn/answer_box.h"

#include "base/mem.h"
#include "fake/store_fake.h"
#include "helper/assert_str.h"
#include "session/directory.h"
#include "session/idempotency_claims.h"
#include "session/waiting.h"
#include "store/changes.h"
#include "store/posted.h"
#include "wire/digest.h"

#include <stdio.h>
#include <stdlib.h>

#define OTHER 2 /* the replica that posts */

/* A run that waits for an answer in memory. */
struct waiting {
    struct session_table *sessions;
    struct live live;
    struct pending_approval parked;
    struct claim *claim;
    size_t answers;
    char text[16];
    struct buf asides; /* what was said beside the question */
};

struct scene {
    struct loop *loop;
    struct store *store;
    struct session_table *sessions;
    struct answer_box *box;
};

static int set_up(void **state) {
    struct scene *scene = MEM_NEW(struct scene);
    scene->loop = loop_new_fake();
    scene->store = fake_store_new();
    fake_store_always_commit(scene->store);
    fake_store_share(scene->store);
    scene->sessions = session_table_new(scene->store);
    scene->box = answer_box_start(scene->sessions, scene->loop);
    *state = scene;
    return 0;
}

static void settle(struct scene *scene) {
    for (size_t i = 0; i < 300; i++) loop_turn(scene->loop);
}

static int tear_down(void **state) {
    struct scene *scene = *state;
    answer_box_stop(scene->box);
    settle(scene);
    session_table_free(scene->sessions);
    fake_store_free(scene->store);
    loop_free(scene->loop);
    free(scene);
    return 0;
}

/* --- runs --------------------------------------------------------------------------------- */

static void on_answer(struct str text, void *ctx) {
    struct waiting *waiting = ctx;
    session_forgo(waiting->sessions, &waiting->parked);
    waiting->answers++;
    snprintf(waiting->text, sizeof(waiting->text), STR_FMT, STR_ARG(text));
}

static void on_claim(struct claim *claim, void *ctx) {
    struct waiting *waiting = ctx;
    waiting->claim = claim;
}

/* The store has it as this replica's. */
static void put_run(struct scene *scene, uint64_t run) {
    char sql[256];
    snprintf(sql, sizeof(sql),
             "INSERT INTO log(id, run, sum, bytes, replica) VALUES(%d, %d, 0, x'', 1);"
             "INSERT INTO run(id, state, first_log, last_log, last_seq, places)"
             " VALUES(%d, 0, %d, %d, 2, x'')",
             (int)run, (int)run, (int)run, (int)run, (int)run);
    fake_store_sql(scene->store, sql);
}

static void live(struct scene *scene, struct waiting *waiting, uint64_t run) {
    *waiting = (struct waiting){
        .sessions = scene->sessions,
        .live = {.run = run,
                 .journal = journal_new(&(struct journal_options){
                     .loop = scene->loop, .run = run, .window_max_bytes = 4 * KIB}),
                 .loop = scene->loop,
                 .workspace = STR("w"),
                 .user = STR("u"),
                 .session = STR("s")}};
    list_init(&waiting->live.link);
    directory_add(session_table_directory(scene->sessions), &waiting->live);
}

static void park(struct scene *scene, struct waiting *waiting) {
    waiting->parked = (struct pending_approval){.name = {STR("w"), STR("u"), STR("s")},
                                                .run = waiting->live.run,
                                                .seq = 2,
                                                .asked = {.guards = STR("c1")},
                                                .loop = scene->loop,
                                                .journal = waiting->live.journal,
                                                .answer = on_answer,
                                                .lookup = on_claim,
                                                .ctx = waiting};
    pending_approvals_add(session_table_approvals(scene->sessions), &waiting->parked);
}

static void run_over(struct scene *scene, struct waiting *waiting) {
    if (waiting->claim) {
        idempotency_claims_remove(session_table_claims(scene->sessions), waiting->claim);
        claim_free(waiting->claim);
    }
    (void)session_unpark(scene->sessions, &waiting->parked);
    directory_remove(session_table_directory(scene->sessions), &waiting->live);
    journal_unref(waiting->live.journal);
}

static void begin(struct scene *scene, struct waiting *waiting, uint64_t run) {
    put_run(scene, run);
    live(scene, waiting, run);
    park(scene, waiting);
}

/* --- answers ------------------------------------------------------------------------------ */

static void tell(struct scene *scene) {
    changes_tell(store_changes(scene->store), CHANGE_POSTED);
    settle(scene);
}

static void put_printed(struct scene *scene, int64_t number, uint64_t run, const char *words,
                        const char *key, const char *print) {
    char sql[256];
    snprintf(sql, sizeof(sql),
             "INSERT INTO posted(sender, number, run, seq, words, key, key_user, print)"
             " VALUES(%d, %d, %d, 2, '%s', '%s', 'u', '%s')",
             OTHER, (int)number, (int)run, words, key, print);
    fake_store_sql(scene->store, sql);
}

static void put_answer(struct scene *scene, int64_t number, uint64_t run, const char *words,
                       const char *key) {
    put_printed(scene, number, run, words, key, "p");
}

static int64_t taken_of(struct scene *scene, int64_t number) {
    char sql[96];
    snprintf(sql, sizeof(sql), "SELECT taken FROM posted WHERE number = %d", (int)number);
    return fake_store_number(scene->store, sql);
}

static int64_t refusal_of(struct scene *scene, int64_t number) {
    char sql[96];
    snprintf(sql, sizeof(sql), "SELECT refusal FROM posted WHERE number = %d", (int)number);
    return fake_store_number(scene->store, sql);
}

/* --- giving ------------------------------------------------------------------------------- */

static void an_answer_is_taken_and_given_once(void **state) {
    struct scene *scene = *state;
    struct waiting run;
    begin(scene, &run, 7);
    put_answer(scene, 1, 7, "yes", "k");
    tell(scene);
    assert_string_equal(run.text, "yes");
    assert_int_equal(taken_of(scene, 1), 1);
    assert_non_null(run.claim);
    assert_int_equal(run.claim->seq, 2);
    tell(scene);
    loop_advance(scene->loop, 60000);
    settle(scene);
    assert_int_equal(run.answers, 1);
    assert_int_equal(taken_of(scene, 1), 1); /* its sender removes it */
    run_over(scene, &run);
}

static void of_two_answers_the_first_is_given_and_the_other_stays_open(void **state) {
    struct scene *scene = *state;
    struct waiting run;
    begin(scene, &run, 7);
    put_answer(scene, 1, 7, "yes", "");
    put_answer(scene, 2, 7, "no", "");
    tell(scene);
    assert_string_equal(run.text, "yes");
    assert_int_equal(run.answers, 1);
    assert_int_equal(taken_of(scene, 1), 1);
    assert_int_equal(taken_of(scene, 2), 0); /* its sender reads in the log why */
    assert_int_equal(refusal_of(scene, 2), POSTED_ACCEPTED);
    run_over(scene, &run);
}

/* The answer to its taking was lost, or the one to its being given back. */
static void one_that_this_replica_has_taken_and_not_given_is_given(void **state) {
    struct scene *scene = *state;
    struct waiting run;
    begin(scene, &run, 7);
    put_answer(scene, 1, 7, "yes", "");
    fake_store_sql(scene->store, "UPDATE posted SET taken = 1");
    tell(scene);
    assert_string_equal(run.text, "yes");
    run_over(scene, &run);
}

static void what_another_replica_has_is_not_touched(void **state) {
    struct scene *scene = *state;
    struct waiting run;
    begin(scene, &run, 7);
    put_answer(scene, 1, 7, "yes", "");
    fake_store_sql(scene->store, "UPDATE posted SET taken = 3");
    tell(scene);
    assert_int_equal(run.answers, 0);
    assert_int_equal(taken_of(scene, 1), 3);
    run_over(scene, &run);
}

/* --- the sender withdraws ----------------------------------------------------------------- */

static void withdrawn(struct scene *scene) {
    fake_store_sql(scene->store, "DELETE FROM posted WHERE taken = 0 AND refused IS NULL");
}

static void run_task(struct scene *scene) {
    assert_int_equal(fake_store_tasks(scene->store), 1);
    fake_store_run(scene->store, 0);
    loop_turn(scene->loop);
    loop_turn(scene->loop);
}

/* Before the box has read it, before it has taken it, and after that. */
static void an_answer_is_withdrawn_or_given_and_never_both(void **state) {
    struct scene *scene = *state;
    for (int64_t tasks = 0; tasks < 3; tasks++) {
        struct waiting run;
        uint64_t id = 7 + (uint64_t)tasks;
        settle(scene);
        begin(scene, &run, id);
        put_answer(scene, tasks + 1, id, "yes", "");
        fake_store_ask_me(scene->store);
        changes_tell(store_changes(scene->store), CHANGE_POSTED);
        loop_turn(scene->loop);
        loop_turn(scene->loop);
        for (int64_t i = 0; i < tasks; i++) run_task(scene);
        withdrawn(scene);
        bool left = fake_store_number(scene->store, "SELECT count(*) FROM posted") == 1;
        while (fake_store_tasks(scene->store)) run_task(scene);
        settle(scene);
        assert_int_equal(run.answers, left ? 1 : 0);
        assert_int_equal(left, tasks == 2);
        fake_store_always_commit(scene->store);
        fake_store_sql(scene->store, "DELETE FROM posted");
        run_over(scene, &run);
    }
}

/* --- what cannot be given ----------------------------------------------------------------- */

/* More than a page of them. */
static void answers_whose_runs_are_not_here_hold_up_no_other_one(void **state) {
    struct scene *scene = *state;
    struct waiting run;
    for (uint64_t i = 0; i < POSTED_MAX + 6; i++) {
        put_run(scene, 100 + i);
        put_answer(scene, (int64_t)i + 1, 100 + i, "yes", "");
    }
    begin(scene, &run, 7);
    put_answer(scene, 1000, 7, "yes", "");
    tell(scene);
    assert_string_equal(run.text, "yes");
    assert_int_equal(
        fake_store_number(scene->store, "SELECT count(*) FROM posted WHERE taken = 0"),
        POSTED_MAX + 6);
    run_over(scene, &run);
}

static void it_is_tried_again_until_its_run_waits(void **state) {
    struct scene *scene = *state;
    struct waiting run;
    put_run(scene, 7);
    live(scene, &run, 7); /* still on its way to its question */
    put_answer(scene, 1, 7, "yes", "");
    tell(scene);
    for (size_t i = 0; i < 20; i++) {
        loop_advance(scene->loop, 1000);
        settle(scene);
    }
    assert_int_equal(taken_of(scene, 1), 0); /* it may be withdrawn meanwhile */
    park(scene, &run);
    loop_advance(scene->loop, 2500);
    settle(scene);
    assert_string_equal(run.text, "yes");
    run_over(scene, &run);
}

static void a_store_that_is_away_is_asked_again(void **state) {
    struct scene *scene = *state;
    struct waiting run;
    begin(scene, &run, 7);
    put_answer(scene, 1, 7, "yes", "");
    fake_store_always_lose(scene->store, ERR_UNAVAILABLE);
    tell(scene);
    assert_int_equal(run.answers, 0);
    fake_store_always_commit(scene->store);
    loop_advance(scene->loop, 1000);
    settle(scene);
    assert_string_equal(run.text, "yes");
    run_over(scene, &run);
}

/* --- what is refused ---------------------------------------------------------------------- */

static void words_that_decide_nothing_are_refused_and_the_run_waits_on(void **state) {
    struct scene *scene = *state;
    struct waiting run;
    begin(scene, &run, 7);
    put_answer(scene, 1, 7, "perhaps", "");
    tell(scene);
    assert_int_equal(run.answers, 0);
    assert_int_equal(refusal_of(scene, 1), POSTED_UNDECIDED);
    put_answer(scene, 3, 7, "{\"decision\":\"edit\"}", "");
    tell(scene);
    assert_int_equal(refusal_of(scene, 3), POSTED_MISFIT);
    put_answer(scene, 2, 7, "no", "");
    tell(scene);
    assert_string_equal(run.text, "no");
    run_over(scene, &run);
}

static void hear_words(struct str words, struct str print, void *ctx) {
    struct waiting *waiting = ctx;
    buf_append(&waiting->asides, words);
    buf_append_byte(&waiting->asides, '|');
    assert_int_equal(print.len, DIGEST_BYTES); /* with which the run hears a repetition once */
}

/* Some doors keep them for the model; a list of approvals does not. */
static void
words_that_decide_nothing_are_said_to_the_run_where_its_door_keeps_them(void **state) {
    struct scene *scene = *state;
    struct waiting run;
    begin(scene, &run, 7);
    run.live.say = hear_words;
    run.live.ctx = &run;
    buf_init(&run.asides, KIB);
    put_printed(scene, 1, 7, "why?", "", "one");
    put_printed(scene, 2, 7, "what for?", "k", "two");
    put_printed(scene, 3, 7, "hm", "", "");
    tell(scene);
    for (int64_t number = 1; number <= 3; number++)
        assert_int_equal(refusal_of(scene, number), POSTED_UNDECIDED);
    assert_str(buf_str(&run.asides), "why?|what for?|");
    put_answer(scene, 4, 7, "no", "");
    tell(scene);
    assert_string_equal(run.text, "no");
    assert_str(buf_str(&run.asides), "why?|what for?|");
    buf_done(&run.asides);
    run_over(scene, &run);
}

static void one_whose_key_another_request_has_is_told_so(void **state) {
    struct scene *scene = *state;
    struct waiting run;
    const struct claim_name name = {STR("w"), STR("u"), STR("k")};
    struct idempotency_claims *claims = session_table_claims(scene->sessions);
    struct claim_view view;
    struct claim *claim = claim_new(&name, STR("q"));
    begin(scene, &run, 7);
    idempotency_claims_look(claims, &name, &view);
    assert_true(idempotency_claims_begin(claims, &name, view.mark));
    claim_mean(claim, 9, 0);
    idempotency_claims_end(claims, &name, claim);
    put_answer(scene, 1, 7, "yes", "k");
    tell(scene);
    assert_int_equal(run.answers, 0);
    assert_int_equal(refusal_of(scene, 1), POSTED_KEY_TAKEN);
    idempotency_claims_remove(claims, claim);
    claim_free(claim);
    run_over(scene, &run);
}

/* --- the end ------------------------------------------------------------------------------ */

static void it_may_be_stopped_at_any_time(void **state) {
    struct scene *scene = *state;
    for (int64_t tasks = 0; tasks < 3; tasks++) {
        struct waiting run;
        settle(scene);
        begin(scene, &run, 7 + (uint64_t)tasks);
        put_answer(scene, tasks + 1, 7 + (uint64_t)tasks, "yes", "");
        fake_store_ask_me(scene->store);
        changes_tell(store_changes(scene->store), CHANGE_POSTED);
        loop_turn(scene->loop);
        loop_turn(scene->loop);
        for (int64_t i = 0; i < tasks; i++) run_task(scene);
        answer_box_stop(scene->box);
        while (fake_store_tasks(scene->store)) run_task(scene);
        settle(scene);
        assert_int_equal(run.answers, tasks == 2);
        fake_store_always_commit(scene->store);
        fake_store_sql(scene->store, "DELETE FROM posted");
        run_over(scene, &run);
        scene->box = answer_box_start(scene->sessions, scene->loop);
    }
}

static void only_the_moves_of_the_table_are_allowed(void **state) {
    (void)state;
    static const char *const rows[ANSWER_BOX_STATE_COUNT] = {
        /* idle reading waking taking stopped */
        [ANSWER_BOX_IDLE] = ".#..#",    [ANSWER_BOX_READING] = "#####",
        [ANSWER_BOX_WAKING] = "#####",  [ANSWER_BOX_TAKING] = "#####",
        [ANSWER_BOX_STOPPED] = ".....",
    };
    for (unsigned from = 0; from < ANSWER_BOX_STATE_COUNT; from++) {
        for (unsigned to = 0; to < ANSWER_BOX_STATE_COUNT; to++)
            assert_int_equal(states_allow(answer_box_states, from, to), rows[from][to] == '#');
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_moves_of_the_table_are_allowed),
        TEST(an_answer_is_taken_and_given_once),
        TEST(of_two_answers_the_first_is_given_and_the_other_stays_open),
        TEST(one_that_this_replica_has_taken_and_not_given_is_given),
        TEST(what_another_replica_has_is_not_touched),
        TEST(an_answer_is_withdrawn_or_given_and_never_both),
        TEST(answers_whose_runs_are_not_here_hold_up_no_other_one),
        TEST(it_is_tried_again_until_its_run_waits),
        TEST(a_store_that_is_away_is_asked_again),
        TEST(words_that_decide_nothing_are_refused_and_the_run_waits_on),
        TEST(words_that_decide_nothing_are_said_to_the_run_where_its_door_keeps_them),
        TEST(one_whose_key_another_request_has_is_told_so),
        TEST(it_may_be_stopped_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
