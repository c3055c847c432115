/* Webhooks: what they are posted, when it is repeated, who makes room, what is kept. */
#include "contract/a2a/webhooks.h"

#include "fake/http_fake.h"
#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "helper/moves.h"
#include "turn/fixture.h"

static struct fixture f;
static struct push_place place;
static struct webhooks *webhooks;

static void serve(void) {
    webhooks = webhooks_new();
    webhooks_serve(webhooks, &place);
    turns(&f);
}

static void leave(void) {
    webhooks_leave(webhooks, &place);
    turns(&f);
    webhooks_free(webhooks);
}

static int setup(void **state) {
    (void)state;
    static const struct agent_tool writing_asks[] = {{STR_INIT("write"), TOOL_ASK}};
    fixture_init(&f, true);
    f.agents[0].tools = writing_asks;
    f.agents[0].tool_count = 1;
    place = (struct push_place){.loop = f.loop,
                                .pool = http_pool_new(),
                                .store = f.store,
                                .host = &f.host,
                                .reach = HTTP_PUBLIC_ONLY};
    http_pool_add(place.pool, f.loop);
    serve();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    leave();
    assert_int_equal(fake_http_calls(place.pool), 0);
    http_pool_leave(place.pool, f.loop);
    http_pool_free(place.pool);
    fixture_done(&f);
    return 0;
}

static bool put_of(uint64_t run, const char *workspace, const char *id, struct err *e) {
    struct kept_ask *ask;
    const struct webhook_put put = {.place = &place,
                                    .run = run,
                                    .workspace = str_from(workspace),
                                    .dialect = A2A_1_0,
                                    .webhook = {.id = str_from(id),
                                                .url = STR("https://a.example/x"),
                                                .token = STR("t"),
                                                .scheme = STR("Bearer"),
                                                .credentials = STR("c")}};
    bool fits = webhooks_put(webhooks, &put, NULL, NULL, &ask, e);
    turns(&f);
    return fits;
}

static void put(uint64_t run, const char *id) {
    struct err e;
    if (!put_of(run, "w", id, &e)) fail_msg("%s", e.text);
}

static void count_one(const struct webhook *webhook, void *ctx) {
    (void)webhook;
    (void)ctx;
}

static size_t count(uint64_t run) {
    return webhooks_each(webhooks, run, STR_EMPTY, count_one, NULL);
}

/* The post that is out, which must be one of this state. */
static struct http_call *posted(const char *posted_state) {
    assert_int_equal(fake_http_calls(place.pool), 1);
    struct http_call *call = fake_http_call(place.pool, 0);
    struct str body = fake_http_request(call)->body;
    char word[64];
    snprintf(word, sizeof(word), "\"state\":\"TASK_STATE_%s\"", posted_state);
    if (str_find(body, str_from(word)) == body.len)
        fail_msg("no %s in " STR_FMT, word, STR_ARG(body));
    return call;
}

static void answer(struct http_call *call, unsigned status) {
    assert_true(fake_http_head(call, status, "text/plain"));
    fake_http_end(call);
    turns(&f);
}

/* --- what is posted ----------------------------------------------------------------------- */

static void every_pair_of_states_is_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "watching asking", "watching sending", "watching settled", "asking sending",
        "asking pausing",  "sending watching", "sending pausing",  "pausing watching"};
    assert_moves(push_states, PUSH_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

static void each_state_is_posted_once(void **state) {
    (void)state;
    struct turn turn;
    say(&turn, &f, "hi");
    uint64_t run = run_id(turn.run);
    put(run, "a");
    struct http_call *call = posted("WORKING");
    const struct http_request *request = fake_http_request(call);
    assert_str(request->method, "POST");
    assert_str(request->url, "https://a.example/x");
    assert_int_equal(request->reach, HTTP_PUBLIC_ONLY);
    assert_int_equal(request->redirects_max, 0);
    assert_str(fake_http_header(call, "x-a2a-notification-token"), "t");
    assert_str(fake_http_header(call, "authorization"), "Bearer c");
    answer(call, 202);
    assert_int_equal(fake_http_calls(place.pool), 0);
    reply(&f, "hello");
    end(&turn);
    answer(posted("COMPLETED"), 200);
    assert_int_equal(fake_http_calls_ever(place.pool), 2);
    assert_int_equal(count(run), 1); /* to be asked about */
}

static void changes_during_a_post_are_one(void **state) {
    (void)state;
    struct turn turn, human;
    say(&turn, &f, "hi");
    put(run_id(turn.run), "a");
    struct http_call *call = posted("WORKING");
    assert_true(fake_tool_call(asked(&f), "c1", "write", "{}"));
    fake_done(asked(&f), "m-1");
    turns(&f);
    answer(call, 200);
    call = posted("INPUT_REQUIRED");
    answer_as_human(&human, &f, "no");
    reply(&f, "well");
    cursor_close(human.cursor);
    buf_done(&human.seen);
    end(&turn);
    answer(call, 200);
    answer(posted("COMPLETED"), 200);
    assert_int_equal(fake_http_calls_ever(place.pool), 3);
}

static void a_failure_is_repeated_until_it_is_taken(void **state) {
    (void)state;
    struct turn turn;
    say(&turn, &f, "hi");
    put(run_id(turn.run), "a");
    answer(posted("WORKING"), 503);
    assert_int_equal(fake_http_calls(place.pool), 0);
    loop_advance(f.loop, PUSH_PAUSE_FIRST_MS);
    turns(&f);
    fake_http_fail(posted("WORKING"), ERR_UNAVAILABLE, HTTP_CONNECTING);
    turns(&f);
    reply(&f, "hello");
    end(&turn);
    assert_int_equal(fake_http_calls(place.pool), 0); /* the pause goes on */
    loop_advance(f.loop, 2 * PUSH_PAUSE_FIRST_MS);
    turns(&f);
    answer(posted("COMPLETED"), 200); /* the newest state alone */
    loop_advance(f.loop, PUSH_PAUSE_MAX_MS);
    turns(&f);
    assert_int_equal(fake_http_calls_ever(place.pool), 3);
}

static void a_refusal_and_the_last_attempt_give_a_state_up(void **state) {
    (void)state;
    struct turn turn;
    say(&turn, &f, "hi");
    put(run_id(turn.run), "a");
    answer(posted("WORKING"), 301); /* redirects are not followed */
    loop_advance(f.loop, PUSH_PAUSE_MAX_MS);
    turns(&f);
    assert_int_equal(fake_http_calls(place.pool), 0);
    reply(&f, "hello");
    end(&turn);
    for (unsigned i = 0; i < PUSH_ATTEMPTS_MAX; i++) {
        answer(posted("COMPLETED"), 500);
        loop_advance(f.loop, PUSH_PAUSE_MAX_MS);
        turns(&f);
    }
    assert_int_equal(fake_http_calls(place.pool), 0);
}

static void pauses_grow_up_to_a_limit(void **state) {
    (void)state;
    for (unsigned i = 1; i <= PUSH_ATTEMPTS_MAX; i++) {
        uint64_t least = push_pause_ms(i, 0), most = 0;
        for (uint64_t random = 0; random < 1000; random++) {
            uint64_t pause = push_pause_ms(i, random * 0x9E3779B97F4A7C15);
            assert_true(pause >= least && pause <= 2 * least);
            most = pause > most ? pause : most;
        }
        assert_true(most > least && most <= PUSH_PAUSE_MAX_MS);
        assert_true(push_pause_ms(i + 1, 0) >= least);
    }
    assert_int_equal(push_pause_ms(1, 0), PUSH_PAUSE_FIRST_MS / 2);
}

static void a_long_answer_is_left_out(void **state) {
    (void)state;
    struct turn turn;
    char *text = mem_alloc(PUSH_TEXT_MAX_BYTES + 1);
    memset(text, 'x', PUSH_TEXT_MAX_BYTES + 1);
    say(&turn, &f, "hi");
    put(run_id(turn.run), "a");
    answer(posted("WORKING"), 200);
    assert_true(fake_text(asked(&f), str_of(text, PUSH_TEXT_MAX_BYTES + 1)));
    fake_done(asked(&f), "m-1");
    turns(&f);
    free(text);
    end(&turn);
    struct http_call *call = posted("COMPLETED");
    assert_true(fake_http_request(call)->body.len < 4 * KIB);
    answer(call, 200);
}

/* --- asking before a post ----------------------------------------------------------------- */

static unsigned asked_times;

static void count_ask(struct push *push) {
    assert_int_equal(push->state, PUSH_ASKING);
    asked_times++;
}

static void note_nothing(struct push *push) {
    (void)push;
}

static void nothing_is_posted_before_it_may_be(void **state) {
    (void)state;
    struct turn turn;
    struct push push;
    const struct webhook webhook = {.id = STR("a"),
                                    .url = STR("https://a.example/x"),
                                    .token = STR_EMPTY,
                                    .scheme = STR_EMPTY,
                                    .credentials = STR_EMPTY};
    asked_times = 0;
    say(&turn, &f, "hi");
    push_init(&push, &place, run_id(turn.run), A2A_1_0, &webhook, 0);
    push.ask = count_ask;
    push.progress = note_nothing;
    push_start(&push);
    turns(&f);
    assert_int_equal(asked_times, 1);
    assert_int_equal(fake_http_calls(place.pool), 0);
    push_wait(&push); /* nobody can say */
    turns(&f);
    assert_int_equal(asked_times, 1);
    loop_advance(f.loop, PUSH_PAUSE_FIRST_MS);
    turns(&f);
    assert_int_equal(asked_times, 2);
    reply(&f, "hello");
    end(&turn);
    assert_int_equal(fake_http_calls(place.pool), 0);
    push_allow(&push);
    answer(posted("COMPLETED"), 200); /* the state by now */
    assert_int_equal(asked_times, 2);
    assert_int_equal(push.state, PUSH_SETTLED);
    push_done(&push);
}

/* --- room --------------------------------------------------------------------------------- */

static void a_task_has_so_many_and_the_same_id_replaces(void **state) {
    (void)state;
    struct turn turn;
    struct err e;
    char id[16];
    say(&turn, &f, "hi");
    uint64_t run = run_id(turn.run);
    for (int i = 0; i < WEBHOOKS_OF_TASK_MAX; i++) {
        snprintf(id, sizeof(id), "id-%d", i);
        put(run, id);
    }
    put(run, "id-3");
    assert_int_equal(count(run), WEBHOOKS_OF_TASK_MAX);
    assert_false(put_of(run, "w", "more", &e));
    assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
    webhooks_remove(webhooks, run, STR("id-3"));
    webhooks_remove(webhooks, run, STR("id-3"));
    put(run, "more");
    assert_int_equal(fake_http_calls(place.pool), WEBHOOKS_OF_TASK_MAX);
    reply(&f, "hello");
    end(&turn);
}

/* Unknown tasks settle at once. */
static void a_settled_one_makes_room_in_its_workspace(void **state) {
    (void)state;
    struct err e;
    for (uint64_t run = 1; run <= WEBHOOKS_OF_WORKSPACE_MAX; run++) {
        if (!put_of(run, "w", "a", &e)) fail_msg("%s", e.text);
    }
    assert_true(put_of(77777, "other", "a", &e));
    assert_true(put_of(88888, "w", "a", &e));
    assert_int_equal(count(1), 0); /* the oldest went */
    assert_int_equal(count(2), 1);
    assert_int_equal(count(77777), 1);
}

/* --- kept --------------------------------------------------------------------------------- */

#define KEPT(space) fake_store_number(f.store, "SELECT count(*) FROM kept WHERE space=" #space)

static void the_next_process_goes_on_where_this_one_was(void **state) {
    (void)state;
    struct turn turn;
    say(&turn, &f, "hi");
    uint64_t run = run_id(turn.run);
    put(run, "a");
    put(run, "b");
    webhooks_remove(webhooks, run, STR("b"));
    turns(&f);
    answer(posted("WORKING"), 200);
    assert_int_equal(KEPT(4), 1);
    assert_int_equal(KEPT(5), 1);
    leave();
    reply(&f, "hello");
    end(&turn);
    serve();
    assert_int_equal(count(run), 1);
    struct http_call *call = posted("COMPLETED"); /* and not the one before */
    assert_str(fake_http_header(call, "authorization"), "Bearer c");
    answer(call, 200);
    leave();
    serve();
    assert_int_equal(count(run), 1);
    assert_int_equal(fake_http_calls(place.pool), 0);
    webhooks_remove(webhooks, run, STR("a"));
    turns(&f);
    assert_int_equal(KEPT(4) + KEPT(5), 0);
}

static void records_of_others_are_skipped(void **state) {
    (void)state;
    leave();
    fake_store_sql(f.store, "INSERT INTO kept(space, key, bytes) VALUES(4, '5-a', '{}'),"
                            " (4, 'x', '{\"old\":true}'), (5, '9-b', 'what')");
    serve();
    assert_int_equal(count(5), 0);
}

static void nothing_is_taken_before_they_are_read_and_once_they_stop(void **state) {
    (void)state;
    struct err e;
    leave();
    webhooks = webhooks_new();
    assert_false(put_of(1, "w", "a", &e));
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    webhooks_serve(webhooks, &place);
    webhooks_leave(webhooks, &place); /* while the store is asked */
    assert_false(put_of(1, "w", "a", &e));
    assert_int_equal(e.code, ERR_UNAVAILABLE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_states_is_drawn),
        cmocka_unit_test(pauses_grow_up_to_a_limit),
        TEST(each_state_is_posted_once),
        TEST(changes_during_a_post_are_one),
        TEST(a_failure_is_repeated_until_it_is_taken),
        TEST(a_refusal_and_the_last_attempt_give_a_state_up),
        TEST(a_long_answer_is_left_out),
        TEST(nothing_is_posted_before_it_may_be),
        TEST(a_task_has_so_many_and_the_same_id_replaces),
        TEST(a_settled_one_makes_room_in_its_workspace),
        TEST(the_next_process_goes_on_where_this_one_was),
        TEST(records_of_others_are_skipped),
        TEST(nothing_is_taken_before_they_are_read_and_once_they_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
