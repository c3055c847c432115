#include "provider/scripted.h"

#include "base/utf8.h"
#include "helper/reply_heard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define HEAD "script: 1\npace: {every: 0, chunk: 0}\nscenes:\n"

/* One call and what it said, as "text(a) done(m)". */
struct play {
    struct loop *loop;
    struct script *script;
    struct provider *provider;
    struct provider_call *call; /* NULL once it is gone */
    struct provider_request request;
    struct buf said;
    size_t texts, stretches;
    struct message messages[16];
    enum reply_then then; /* what the next text makes us do */
    uint64_t done_at_ms;
};

static const char *const forms[REPLY_KIND_COUNT] = {
    [REPLY_USAGE] = "usage($n,$p,$c,$k) ",
    [REPLY_APPROVAL] = "approval($i,$t,$n,$a) ",
    [REPLY_FAILED] = "failed($e,$n,$t) ",
};

static void on_one(const struct reply_event *event, void *ctx) {
    struct play *play = ctx;
    reply_heard(&play->said, forms, event);
    if (reply_event_ends(event)) play->call = NULL;
    if (event->kind == REPLY_DONE) play->done_at_ms = loop_now_ms(play->loop);
    if (event->kind != REPLY_TEXT) return;
    play->texts++;
    reply_then(play->then, play->provider, &play->call);
}

static void on_reply(const struct reply_event *event, void *ctx) {
    struct play *play = ctx;
    if (event->kind == REPLY_TEXT && event->pieces) {
        assert_true(play->request.takes_pieces);
        play->stretches++;
        if (event->pieces->ascii)
            assert_int_equal(utf8_ascii_prefix(event->text), event->text.len);
    }
    reply_event_each(event, on_one, ctx);
}

static void play_init(struct play *play, const char *text) {
    *play = (struct play){.loop = loop_new_fake()};
    struct err e = {0};
    if (!script_parse(STR("s.yaml"), str_from(text), &play->script, &e)) fail_msg("%s", e.text);
    play->provider = scripted_provider_new(STR("demo"), play->script);
    buf_init(&play->said, 4 * MIB);
    play->messages[0] = (struct message){.role = MESSAGE_USER, .text = STR("to Kyoto")};
    play->request = (struct provider_request){.agent = STR("manager"),
                                              .model = STR_EMPTY,
                                              .messages = play->messages,
                                              .message_count = 1};
}

static void play_done(struct play *play) {
    if (play->call) play->provider->kind->cancel(play->call);
    provider_free(play->provider);
    script_free(play->script);
    buf_done(&play->said);
    loop_free(play->loop);
}

static void play_start(struct play *play) {
    play->call =
        provider_call_start(play->provider, play->loop, &play->request, on_reply, play);
    assert_int_equal(play->said.len, 0); /* never before start has returned */
}

static void add(struct play *play, enum message_role role, const char *agent,
                const char *text) {
    play->messages[play->request.message_count++] =
        (struct message){.role = role, .agent = str_from(agent), .text = str_from(text)};
}

static void said(struct play *play, const char *expected) {
    buf_append_byte(&play->said, '\0');
    assert_string_equal(play->said.at, expected);
    buf_clear(&play->said);
}

/* Play the whole of `text` without a pace and say what came, whether or not its pieces are taken
 * at once. */
static void plays(const char *text, const char *expected) {
    for (int takes_pieces = 0; takes_pieces < 2; takes_pieces++) {
        struct play play;
        play_init(&play, text);
        play.request.takes_pieces = takes_pieces;
        play_start(&play);
        loop_turn(play.loop);
        said(&play, expected);
        assert_null(play.call);
        play_done(&play);
    }
}

/* --- what is said --------------------------------------------------------------------- */

static void each_step_is_one_callback(void **state) {
    (void)state;
    plays(HEAD "  - reply:\n"
               "    - thinking: hm\n"
               "    - 'hi {agent}: {input}'\n"
               "    - tool_call: {tool: look, args: {q: '{input}'}}\n"
               "    - tool_call: {id: c2, tool: look}\n"
               "    - transfer: wally\n"
               "    - usage: {prompt: 2, completion: 3}\n"
               "    - model: other\n"
               "    - approval: {question: 'sure, {agent}?', tool: book, args: {a: 1}}\n",
          "thinking(hm) text(hi manager: to Kyoto) call(,look,{\"q\":\"to Kyoto\"}) "
          "call(c2,look,{}) call(,transfer_to_agent,{\"agent_name\":\"wally\"}) "
          "usage(scripted,2,3,-1) approval(,sure, manager?,book,{\"a\":1}) done(other) ");
}

/* Four bytes are a token. What the script counts is counted, and nothing else follows. */
static void a_reply_is_no_longer_than_it_may_be(void **state) {
    (void)state;
    static const struct {
        int64_t longest;
        const char *said;
    } rows[] = {
        {0, "thinking(hm) text(a\xC3\xA9"
            "bcdefgh) call(,look,{}) usage(scripted,2,30,-1) "
            "text(more) done(scripted) "},
        {1, "thinking(hm) text(a) usage(scripted,2,1,-1) "
            "note(the reply was cut at its token limit) done(scripted) "},
        {3, "thinking(hm) text(a\xC3\xA9"
            "bcdefgh) call(,look,{}) usage(scripted,2,30,-1) "
            "note(the reply was cut at its token limit) done(scripted) "},
        {4, "thinking(hm) text(a\xC3\xA9"
            "bcdefgh) call(,look,{}) usage(scripted,2,30,-1) "
            "text(more) done(scripted) "},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct model_options options = MODEL_OPTIONS_NONE;
        struct play play;
        options.output_tokens_max = rows[i].longest;
        play_init(&play, HEAD "  - reply: [thinking: hm, 'a\xC3\xA9"
                              "bcdefgh', tool_call: {tool: look}, "
                              "usage: {prompt: 2, completion: 30}, more]\n");
        play.request.takes_pieces = true;
        play.request.options = &options;
        play_start(&play);
        loop_turn(play.loop);
        said(&play, rows[i].said);
        play_done(&play);
    }
}

static void text_is_cut_between_characters_by_default(void **state) {
    (void)state;
    plays(HEAD "  - {pace: {chunk: 2}, reply: 'aéßb'}\n", "text(aé) text(ßb) done(scripted) ");
    plays(HEAD "  - {pace: {chunk: 1}, reply: '€x'}\n", "text(€) text(x) done(scripted) ");
    plays(HEAD "  - {pace: {chunk: 2, split: bytes}, reply: '€x'}\n",
          "text(\xE2\x82) text(\xACx) done(scripted) ");
    plays(HEAD "  - {pace: {chunk: 99}, reply: 'aéßb'}\n", "text(aéßb) done(scripted) ");
}

static void a_repeat_keeps_its_own_chunks(void **state) {
    (void)state;
    plays(HEAD "  - {pace: {chunk: 1}, reply: [{repeat: {times: 3, text: 'ab'}}]}\n",
          "text(ab) text(ab) text(ab) done(scripted) ");
    plays(HEAD "  - reply: [{repeat: {times: 0, text: x}}, y]\n", "text(y) done(scripted) ");
    plays(HEAD "  - reply: [{repeat: {times: 2, text: ''}}]\n",
          "text() text() done(scripted) ");
}

static void an_empty_reply_is_done_and_an_empty_text_is_an_empty_delta(void **state) {
    (void)state;
    plays(HEAD "  - reply: []\n", "done(scripted) ");
    plays(HEAD "  - reply: ''\n", "text() done(scripted) ");
    plays(HEAD "  - {pace: {chunk: 4}, reply: ''}\n", "text() done(scripted) ");
}

static void the_model_is_the_steps_else_the_scripts_else_the_requests(void **state) {
    (void)state;
    plays("script: 1\nmodel: m\nscenes: [{reply: []}]", "done(m) ");
    struct play play;
    play_init(&play, HEAD "  - reply: []\n");
    play.request.model = STR("asked");
    play_start(&play);
    loop_turn(play.loop);
    said(&play, "done(asked) ");
    play_done(&play);
}

static void faults_end_as_configured(void **state) {
    (void)state;
    plays(HEAD "  - reply: [a, {fault: {kind: error, code: RESOURCE_EXHAUSTED, reason: QUOTA, "
               "message: 'no {agent}'}}]\n",
          "text(a) failed(RESOURCE_EXHAUSTED,QUOTA,no manager) ");
    plays(
        HEAD "  - reply: [{fault: {kind: error}}]\n",
        "failed(UNAVAILABLE,AI_PROVIDER_UNAVAILABLE,the provider failed, as its script says) ");
    plays(HEAD "  - reply: [a, {fault: {kind: eof}}]\n",
          "text(a) failed(UNAVAILABLE,AI_STREAM_BROKEN,the provider's stream ended before its "
          "reply did) ");
    plays(HEAD "  - reply: [{fault: {kind: bad_utf8}}, b]\n",
          "text(\xC3\x28) text(b) done(scripted) ");
}

static void a_stall_says_nothing_more_until_it_is_cancelled(void **state) {
    (void)state;
    struct play play;
    play_init(&play, HEAD "  - reply: [a, {fault: {kind: stall}}]\n");
    play_start(&play);
    loop_turn(play.loop);
    loop_advance(play.loop, 1000000);
    play.provider->kind->pause(play.call);
    play.provider->kind->resume(play.call);
    loop_turn(play.loop);
    said(&play, "text(a) ");
    assert_non_null(play.call);
    play_done(&play);
}

static void without_a_scene_the_call_fails_and_says_what_to_add(void **state) {
    (void)state;
    plays(
        HEAD "  - {match: Paris, reply: a}\n",
        "failed(NOT_FOUND,SCRIPT_NO_SCENE,the script has no scene for agent 'manager' and this "
        "text; add one without 'match') ");
}

/* --- which reply ---------------------------------------------------------------------- */

#define THREE "  - replies: [zero, one, two]\n"

static void the_nth_model_call_of_an_agent_gets_its_nth_reply(void **state) {
    (void)state;
    struct play play;
    play_init(&play, HEAD THREE);
    add(&play, MESSAGE_AGENT, "manager", "let me look");
    add(&play, MESSAGE_TOOL_CALL, "manager", "{}");
    add(&play, MESSAGE_TOOL_CALL, "manager", "{}");
    add(&play, MESSAGE_TOOL_RESULT, "manager", "{}");
    add(&play, MESSAGE_TOOL_RESULT, "manager", "{}");
    play_start(&play);
    loop_turn(play.loop);
    said(&play, "text(one) done(scripted) ");

    add(&play, MESSAGE_TOOL_CALL, "manager", "{}");
    add(&play, MESSAGE_TOOL_RESULT, "manager", "{}");
    add(&play, MESSAGE_AGENT, "wally", "mine does not count");
    play_start(&play);
    loop_turn(play.loop);
    said(&play, "text(two) done(scripted) ");

    add(&play, MESSAGE_AGENT, "manager", "again");
    play_start(&play);
    loop_turn(play.loop);
    said(&play, "text(two) done(scripted) "); /* the last one repeats */

    play.request.agent = STR("wally");
    play_start(&play);
    loop_turn(play.loop);
    said(&play, "text(one) done(scripted) ");
    play_done(&play);
}

static void a_hand_over_does_not_hide_the_last_result(void **state) {
    (void)state;
    struct play play;
    play_init(&play, HEAD "  - reply: ['{result.title}']\n");
    add(&play, MESSAGE_TOOL_RESULT, "wally", "{\"title\":\"found\"}");
    add(&play, MESSAGE_TOOL_RESULT, "wally", "{}");
    play.messages[2].tool = STR("transfer_to_agent");
    play_start(&play);
    loop_turn(play.loop);
    said(&play, "text(found) done(scripted) ");
    play_done(&play);
}

static void earlier_turns_do_not_count(void **state) {
    (void)state;
    struct play play;
    play_init(&play, HEAD THREE);
    add(&play, MESSAGE_AGENT, "manager", "long ago");
    add(&play, MESSAGE_USER, "", "to Nara");
    play.request.turn_start = 2;
    play_start(&play);
    loop_turn(play.loop);
    said(&play, "text(zero) done(scripted) ");
    play_done(&play);
}

static void once_means_that_a_scene_can_end(void **state) {
    (void)state;
    struct play play;
    play_init(&play, HEAD "  - {once: true, reply: a}\n");
    add(&play, MESSAGE_AGENT, "manager", "a");
    play_start(&play);
    loop_turn(play.loop);
    said(&play,
         "failed(OUT_OF_RANGE,SCRIPT_ENDED,the scene on line 4 of the script is over; give "
         "it another reply, or remove 'once') ");
    play_done(&play);
}

static void answer_to(const char *words, const char *expected) {
    struct play play;
    play_init(&play, HEAD
              "  - replies:\n"
              "    - [ask, {approval: {question: ok?}}]\n"
              "    - {approved: 'thanks for {answer}', refused: 'pity: {result.answer}'}\n");
    add(&play, MESSAGE_AGENT, "manager", "ask");
    add(&play, MESSAGE_TOOL_CALL, "manager", "{}");
    add(&play, MESSAGE_TOOL_RESULT, "manager", "{\"answer\":\"hm\"}");
    if (words) add(&play, MESSAGE_USER, "", words);
    play_start(&play);
    loop_turn(play.loop);
    said(&play, expected);
    play_done(&play);
}

static void an_approval_branches_on_what_the_person_said(void **state) {
    (void)state;
    answer_to("yes", "text(thanks for yes) done(scripted) ");
    answer_to("rather not", "text(pity: hm) done(scripted) ");
    answer_to(NULL, "text(thanks for ) done(scripted) "); /* the tool ran: it was let */
}

static void pieces_of_a_turn_come_at_once_only_without_a_pace(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool takes_pieces;
        size_t texts, stretches;
    } cases[] = {
        {HEAD "  - {pace: {chunk: 2}, reply: abcdefg}\n", true, 4, 1},
        {HEAD "  - {pace: {chunk: 2}, reply: abcdefg}\n", false, 4, 0},
        {HEAD "  - {pace: {chunk: 2, every: 1ms}, reply: abcdefg}\n", true, 4, 0},
        {HEAD "  - {pace: {chunk: 1}, reply: [ab, {thinking: hm}, c]}\n", true, 3, 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct play play;
        play_init(&play, cases[i].text);
        play.request.takes_pieces = cases[i].takes_pieces;
        play_start(&play);
        loop_turn(play.loop);
        loop_advance(play.loop, 100);
        assert_null(play.call);
        assert_int_equal(play.texts, cases[i].texts);
        assert_int_equal(play.stretches, cases[i].stretches);
        play_done(&play);
    }
}

/* --- time ----------------------------------------------------------------------------- */

#define PACED                                                                                  \
    "script: 1\nscenes: [{pace: {every: 20ms, chunk: 1}, reply: [abc, {wait: 100ms}, d]}]"

static void chunk_n_leaves_at_the_start_plus_n_times_the_pace(void **state) {
    (void)state;
    struct play play;
    play_init(&play, PACED);
    play_start(&play);
    loop_turn(play.loop);
    said(&play, "");
    loop_advance(play.loop, 19);
    said(&play, "");
    loop_advance(play.loop, 1);
    said(&play, "text(a) ");
    loop_advance(play.loop, 40);
    said(&play, "text(b) text(c) ");
    loop_advance(play.loop, 119);
    said(&play, "");
    loop_advance(play.loop, 1);
    said(&play, "text(d) done(scripted) ");
    play_done(&play);
}

static void a_pace_below_a_millisecond_is_kept_on_the_average(void **state) {
    (void)state;
    struct play play;
    play_init(&play,
              "script: 1\nscenes: [{pace: {every: 250us}, reply: [{repeat: {times: 4000, "
              "text: x}}]}]");
    play_start(&play);
    loop_turn(play.loop);
    loop_advance(play.loop, 500);
    assert_int_equal(play.texts, 2000);
    loop_advance(play.loop, 500);
    assert_int_equal(play.texts, 4000);
    assert_null(play.call);
    assert_int_equal(play.done_at_ms, loop_now_ms(play.loop));
    play_done(&play);
}

static void without_a_pace_a_turn_takes_only_so_much(void **state) {
    (void)state;
    struct play play;
    play_init(&play,
              HEAD "  - reply: [{repeat: {times: 4096, text: "
                   "'0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'}}]\n");
    play_start(&play);
    loop_turn(play.loop);
    size_t first = play.texts;
    assert_true(first * 64 <= SCRIPTED_TURN_BYTES && first * 64 > SCRIPTED_TURN_BYTES / 2);
    for (int turn = 0; turn < 10; turn++) loop_advance(play.loop, 0);
    assert_int_equal(play.texts, 4096);
    assert_null(play.call);
    play_done(&play);
}

/* --- pause, resume, cancel ------------------------------------------------------------ */

static void a_paused_call_is_silent_and_catches_up_when_resumed(void **state) {
    (void)state;
    struct play play;
    play_init(&play, PACED);
    play_start(&play);
    play.provider->kind->pause(play.call);
    loop_turn(play.loop);
    loop_advance(play.loop, 1000);
    said(&play, "");
    play.provider->kind->resume(play.call);
    said(&play, "");
    loop_turn(play.loop);
    said(&play, "text(a) text(b) text(c) text(d) done(scripted) ");
    play_done(&play);
}

static void a_callback_may_pause_and_nothing_follows_it(void **state) {
    (void)state;
    struct play play;
    play_init(&play, HEAD "  - reply: [a, b, c]\n");
    play.then = PAUSE;
    play_start(&play);
    loop_turn(play.loop);
    loop_advance(play.loop, 1000);
    said(&play, "text(a) ");
    for (int more = 0; more < 2; more++) {
        play.provider->kind->resume(play.call);
        play.provider->kind->resume(play.call); /* harmless */
        loop_turn(play.loop);
    }
    said(&play, "text(b) text(c) ");
    play.provider->kind->resume(play.call);
    loop_turn(play.loop);
    said(&play, "done(scripted) ");
    play_done(&play);
}

static void a_callback_may_pause_and_resume_in_one_go(void **state) {
    (void)state;
    struct play play;
    play_init(&play, HEAD "  - reply: [a, b]\n");
    play.then = PAUSE_AND_RESUME;
    play_start(&play);
    loop_turn(play.loop);
    said(&play, "text(a) text(b) done(scripted) ");
    play_done(&play);
}

static void a_cancel_ends_it_at_once_wherever_it_comes_from(void **state) {
    (void)state;
    struct play play;
    play_init(&play, PACED);
    play_start(&play); /* before the first turn */
    play.provider->kind->cancel(play.call);
    loop_turn(play.loop);
    said(&play, "");

    play_start(&play); /* while its timer waits */
    loop_turn(play.loop);
    loop_advance(play.loop, 30);
    play.provider->kind->cancel(play.call);
    loop_advance(play.loop, 1000);
    said(&play, "text(a) ");

    play_start(&play); /* from inside a callback */
    play.then = CANCEL;
    loop_turn(play.loop);
    loop_advance(play.loop, 1000);
    said(&play, "text(a) ");
    play_done(&play);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_step_is_one_callback),
        cmocka_unit_test(a_reply_is_no_longer_than_it_may_be),
        cmocka_unit_test(text_is_cut_between_characters_by_default),
        cmocka_unit_test(a_repeat_keeps_its_own_chunks),
        cmocka_unit_test(an_empty_reply_is_done_and_an_empty_text_is_an_empty_delta),
        cmocka_unit_test(the_model_is_the_steps_else_the_scripts_else_the_requests),
        cmocka_unit_test(faults_end_as_configured),
        cmocka_unit_test(a_stall_says_nothing_more_until_it_is_cancelled),
        cmocka_unit_test(without_a_scene_the_call_fails_and_says_what_to_add),
        cmocka_unit_test(the_nth_model_call_of_an_agent_gets_its_nth_reply),
        cmocka_unit_test(a_hand_over_does_not_hide_the_last_result),
        cmocka_unit_test(earlier_turns_do_not_count),
        cmocka_unit_test(once_means_that_a_scene_can_end),
        cmocka_unit_test(an_approval_branches_on_what_the_person_said),
        cmocka_unit_test(chunk_n_leaves_at_the_start_plus_n_times_the_pace),
        cmocka_unit_test(a_pace_below_a_millisecond_is_kept_on_the_average),
        cmocka_unit_test(without_a_pace_a_turn_takes_only_so_much),
        cmocka_unit_test(pieces_of_a_turn_come_at_once_only_without_a_pace),
        cmocka_unit_test(a_paused_call_is_silent_and_catches_up_when_resumed),
        cmocka_unit_test(a_callback_may_pause_and_nothing_follows_it),
        cmocka_unit_test(a_callback_may_pause_and_resume_in_one_go),
        cmocka_unit_test(a_cancel_ends_it_at_once_wherever_it_comes_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
