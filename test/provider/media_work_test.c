#include "provider/media_work.h"

#include "media_fixture.h"

#include "helper/assert_str.h"

/* --- states ------------------------------------------------------------------------------- */

static void only_the_moves_of_the_table_are_allowed(void **state) {
    (void)state;
    static const char *const rows[MEDIA_STATE_COUNT] = {
        /* asking waiting shaping over */
        [MEDIA_ASKING] = ".###",
        [MEDIA_WAITING] = "#..#",
        [MEDIA_SHAPING] = "...#",
        [MEDIA_OVER] = "....",
    };
    for (enum media_state from = 0; from < MEDIA_STATE_COUNT; from++) {
        assert_true(states_name(media_states, from).len);
        for (enum media_state to = 0; to < MEDIA_STATE_COUNT; to++)
            assert_int_equal(states_allow(media_states, from, to), rows[from][to] == '#');
    }
}

/* --- a kind of the test's own ------------------------------------------------------------- */

/* The text of a request says what happens: "wait" asks and hears nothing, "bad" fails while it
 * is shaped, all else makes two artifacts, a text, two vectors and usage. */
static bool toy_shape(struct media_call *call) {
    static const double values[] = {0.5, -1};
    if (str_equal(call->request.text, STR("bad")))
        return media_work_set(call, ERR_UNAVAILABLE, PROVIDER_BROKEN, "it is %s", "bad");
    call->made.artifact_count = 2;
    call->made.artifacts = arena_alloc(call->arena, 2 * sizeof(*call->made.artifacts));
    call->made.text = call->request.text;
    call->made.vector_count = 2;
    call->made.vectors = arena_alloc(call->arena, 2 * sizeof(*call->made.vectors));
    assert_non_null(call->made.artifacts);
    assert_non_null(call->made.vectors);
    call->made.artifacts[1].bytes = call->request.inputs[1];
    call->made.vectors[0] = call->made.vectors[1] = (struct media_vector){values, 2};
    call->made.usage = USAGE_UNKNOWN;
    call->made.has_usage = true;
    return true;
}

static unsigned toy_stops, toy_frees;

static void toy_stop(struct media_call *call) {
    assert_int_equal(call->state, MEDIA_OVER);
    toy_stops++;
}

static void toy_late(struct media_call *call) {
    media_work_set_late(call, "the toy");
}

static void toy_free(struct media_call *call) {
    toy_frees++;
    free(call);
}

static const struct media_work_kind toy_work = {toy_shape, toy_stop, toy_late, toy_free};

static struct media_call *toy_start(struct media *media, struct loop *loop,
                                    const struct media_request *request,
                                    reply_event_fn *on_reply, void *ctx) {
    struct media_call *call = MEM_NEW(struct media_call);
    assert_true(media_work_init(call, &toy_work, media, loop, request, on_reply, ctx));
    if (str_equal(request->text, STR("refused"))) {
        media_work_set(call, ERR_INVALID_ARGUMENT, PROVIDER_REJECTED, "no");
        media_work_fail_later(call);
    } else if (!str_equal(request->text, STR("wait"))) {
        media_work_shape(call);
    }
    return call;
}

static const struct media_kind toy_kind = {
    .name = "toy", .start = toy_start, .cancel = media_work_cancel};

struct toy {
    struct media media;
    struct loop *loop;
    struct heard *heard;
};

static void begin(struct toy *toy) {
    *toy = (struct toy){.media = {&toy_kind, STR_INIT("toy")}, .loop = loop_new_fake()};
    toy->heard = heard_new(toy->loop, &toy->media);
    toy_stops = toy_frees = 0;
}

/* Each call stops once and is freed once. */
static void finish(struct toy *toy) {
    assert_int_equal(toy_stops, 1);
    assert_int_equal(toy_frees, 1);
    heard_free(toy->heard);
    loop_free(toy->loop);
}

/* What is asked may change as soon as the start has returned. */
static void ask(struct toy *toy, const char *text, uint64_t total_ms) {
    char words[64], input[] = "in";
    struct str inputs[] = {STR("first"), str_from(input)};
    strcpy(words, text);
    struct media_request request = {.text = str_from(words),
                                    .model = STR("m"),
                                    .inputs = inputs,
                                    .input_count = 2,
                                    .total_ms = total_ms};
    heard_start(toy->heard, &request);
    memset(words, 'x', sizeof(words));
    memset(input, 'x', sizeof(input));
    inputs[1] = STR_EMPTY;
}

static void results_are_delivered_in_one_order_and_then_the_end(void **state) {
    (void)state;
    struct toy toy;
    begin(&toy);
    ask(&toy, "all of it", 1000);
    loop_turn(toy.loop);
    assert_int_equal(toy.heard->artifacts, 2);
    assert_str(buf_str(&toy.heard->bytes), "in");
    assert_str(buf_str(&toy.heard->text), "all of it");
    assert_int_equal(toy.heard->vectors, 2);
    assert_true(toy.heard->numbers[1][1] == -1);
    assert_int_equal(toy.heard->usages, 1);
    assert_int_equal(toy.heard->dones, 1);
    assert_str(buf_str(&toy.heard->model), "m");
    finish(&toy);
}

static void a_call_can_be_cancelled_by_whatever_it_tells(void **state) {
    (void)state;
    struct toy toy;
    begin(&toy);
    toy.heard->cancels = true;
    ask(&toy, "all of it", 0);
    loop_turn(toy.loop);
    assert_int_equal(toy.heard->artifacts, 1);
    assert_int_equal(toy.heard->texts + toy.heard->vectors + toy.heard->usages, 0);
    assert_int_equal(heard_endings(toy.heard), 0);
    finish(&toy);
}

static void a_failure_is_delivered_alone(void **state) {
    (void)state;
    struct toy toy;
    begin(&toy);
    ask(&toy, "bad", 0);
    loop_turn(toy.loop);
    assert_failed(toy.heard, ERR_UNAVAILABLE, PROVIDER_BROKEN, "it is bad");
    assert_int_equal(toy.heard->artifacts, 0);
    finish(&toy);
    begin(&toy);
    ask(&toy, "refused", 0);
    loop_turn(toy.loop);
    assert_failed(toy.heard, ERR_INVALID_ARGUMENT, PROVIDER_REJECTED, "no");
    finish(&toy);
}

static void a_call_ends_when_its_time_is_up(void **state) {
    (void)state;
    struct toy toy;
    begin(&toy);
    ask(&toy, "wait", 1500);
    loop_advance(toy.loop, 1499);
    assert_int_equal(heard_endings(toy.heard), 0);
    loop_advance(toy.loop, 1);
    assert_failed(toy.heard, ERR_DEADLINE_EXCEEDED, PROVIDER_TIMEOUT,
                  "the toy was not done after 1500ms");
    finish(&toy);
}

static void a_call_can_be_cancelled_in_each_state(void **state) {
    (void)state;
    static const char *const texts[] = {"wait", "all of it", "refused"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct toy toy;
        begin(&toy);
        ask(&toy, texts[i], 1000);
        media_work_cancel(toy.heard->call);
        toy.heard->call = NULL;
        loop_advance(toy.loop, 2000);
        assert_int_equal(heard_endings(toy.heard), 0);
        finish(&toy);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_moves_of_the_table_are_allowed),
        cmocka_unit_test(results_are_delivered_in_one_order_and_then_the_end),
        cmocka_unit_test(a_call_can_be_cancelled_by_whatever_it_tells),
        cmocka_unit_test(a_failure_is_delivered_alone),
        cmocka_unit_test(a_call_ends_when_its_time_is_up),
        cmocka_unit_test(a_call_can_be_cancelled_in_each_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
