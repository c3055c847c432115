#include "provider/tape.h"

#include "fake/provider_fake.h"

#include "helper/assert_str.h"
#include "helper/reply_heard.h"

#include "provider/dialect.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY "house-key-4711-sings"

/* One folder, a recorder around a fake model, and a player of what was recorded. */
struct fixture {
    char folder[64];
    struct loop *loop;
    struct provider *model, *recorder, *player;
    struct tape *recording, *playing;
    struct provider *asked;     /* one of the two */
    struct provider_call *call; /* NULL once it is gone */
    struct message messages[4];
    struct provider_request request;
    struct buf heard;
    enum reply_then then; /* what the next callback makes us do */
};

static const char *const forms[REPLY_KIND_COUNT] = {
    [REPLY_TOOL_CALL] = "call($i $n $a) ", [REPLY_USAGE] = "usage($n $p $c $h) "};

static void on_one(const struct reply_event *event, void *ctx) {
    struct fixture *f = ctx;
    reply_heard(&f->heard, forms, event);
    if (reply_event_ends(event)) f->call = NULL;
    if (event->kind == REPLY_FAILED) assert_int_not_equal(event->code, ERR_NONE);
    if (event->kind == REPLY_FAILED && str_equal(event->reason, STR(REPLAY_MISS)))
        buf_printf(&f->heard, "why(" STR_FMT ") ", STR_ARG(event->text));
    reply_then(f->then, f->asked, &f->call);
    f->then = GO_ON;
}

static void on_reply(const struct reply_event *event, void *ctx) {
    reply_event_each(event, on_one, ctx);
}

static void remove_files(const char *folder) {
    DIR *dir = opendir(folder);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] != '.' || strlen(entry->d_name) > 2)
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
    closedir(dir);
}

static size_t count_files(const struct fixture *f) {
    size_t count = 0;
    DIR *dir = opendir(f->folder);
    for (struct dirent *entry; (entry = readdir(dir));) count++;
    closedir(dir);
    return count - 2;
}

static const struct str secrets[] = {STR_INIT(KEY)};

static void fixture_init(struct fixture *f) {
    struct err e;
    *f = (struct fixture){.loop = loop_new_fake(), .model = fake_provider_new()};
    snprintf(f->folder, sizeof(f->folder), "/tmp/weir-tape-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    struct tape_options options = {str_from(f->folder), secrets, 1, TAPE_AT_ONCE};
    assert_true(tape_record(&options, &f->recording, &e));
    f->recorder = recording_provider_new(f->recording, f->model);
    f->messages[0] = (struct message){.role = MESSAGE_USER, .text = STR("hi")};
    f->request = (struct provider_request){.agent = STR("manager"),
                                           .model = STR("m"),
                                           .system = STR("You help. " KEY),
                                           .messages = f->messages,
                                           .message_count = 1,
                                           .takes_pieces = true};
    buf_init(&f->heard, 16 * KIB);
}

static void play_from_now_on(struct fixture *f, enum tape_pace pace) {
    struct err e;
    struct tape_options options = {str_from(f->folder), secrets, 1, pace};
    if (!tape_play(&options, &f->playing, &e)) fail_msg("%s", e.text);
    f->player = playing_provider_new(f->playing, STR("fake"));
}

static void fixture_done(struct fixture *f) {
    loop_turn(f->loop);
    assert_int_equal(fake_calls(f->model), 0);
    provider_free(f->recorder);
    provider_free(f->player);
    provider_free(f->model);
    tape_unref(f->recording);
    tape_unref(f->playing);
    remove_files(f->folder);
    assert_int_equal(rmdir(f->folder), 0);
    buf_done(&f->heard);
    loop_free(f->loop);
}

#include "helper/heap_fixture.h"

static struct provider_call *ask(struct fixture *f, struct provider *who) {
    f->asked = who;
    f->call = provider_call_start(who, f->loop, &f->request, on_reply, f);
    return who == f->recorder ? fake_call(f->model, 0) : NULL;
}

static void heard(struct fixture *f, const char *expected) {
    assert_str(buf_str(&f->heard), expected);
    buf_clear(&f->heard);
}

static void record_all_kinds(struct fixture *f) {
    struct provider_call *model = ask(f, f->recorder);
    fake_thinking(model, STR("hm"));
    fake_text(model, STR("Hel"));
    loop_advance(f->loop, 50);
    fake_pieces(model, STR("lo"), (const uint32_t[]){1, 1}, 2);
    fake_tool_call(model, "c-1", "look", "{\"q\":1}");
    fake_approval(model, "c-2", "May I?");
    fake_opaque(model, "openai", "[1]");
    fake_usage(model, 5, 2);
    fake_done(model, "m-long");
    loop_turn(f->loop);
}

#define ALL                                                                                    \
    "thinking(hm) text(Hel) text(l) text(o) call(c-1 look {\"q\":1}) approval(May I?) "        \
    "opaque([1]) "                                                                             \
    "usage(fake-1 5 2 -1) done(m-long) "

/* --- recorded and played ------------------------------------------------------------------ */

static void a_recording_plays_in_order(void **state) {
    struct fixture *f = *state;
    record_all_kinds(f);
    heard(f, ALL);
    play_from_now_on(f, TAPE_AT_ONCE);
    ask(f, f->player);
    assert_int_equal(f->heard.len, 0); /* never before start has returned */
    loop_turn(f->loop);
    heard(f, ALL);
    assert_null(f->call);
}

static void the_ending_comes_when_its_file_is_there(void **state) {
    struct fixture *f = *state;
    struct provider_call *model = ask(f, f->recorder);
    fake_text(model, STR("a"));
    fake_done(model, "m");
    heard(f, "text(a) ");
    assert_int_equal(count_files(f), 0);
    loop_turn(f->loop);
    heard(f, "done(m) ");
    assert_int_equal(count_files(f), 1);
}

static void a_failure_is_played_as_it_failed(void **state) {
    struct fixture *f = *state;
    fake_fail(ask(f, f->recorder), ERR_UNAVAILABLE, PROVIDER_OVERLOADED);
    loop_turn(f->loop);
    heard(f, "failed(PROVIDER_OVERLOADED) ");
    play_from_now_on(f, TAPE_AT_ONCE);
    ask(f, f->player);
    loop_turn(f->loop);
    heard(f, "failed(PROVIDER_OVERLOADED) ");
}

static void the_real_pace_is_as_it_was_timed(void **state) {
    struct fixture *f = *state;
    record_all_kinds(f);
    heard(f, ALL);
    play_from_now_on(f, TAPE_REAL);
    ask(f, f->player);
    loop_turn(f->loop);
    loop_advance(f->loop, 49);
    heard(f, "thinking(hm) text(Hel) ");
    loop_advance(f->loop, 1);
    assert_null(f->call);
}

/* Record one call of `run` that is answered by `answer`. */
static void record_of(struct fixture *f, uint64_t run, const char *answer) {
    f->request.run = run;
    fake_done(ask(f, f->recorder), answer);
    loop_turn(f->loop);
    buf_clear(&f->heard);
}

static void play_run(struct fixture *f, const struct tape *of, uint64_t run) {
    struct err e;
    struct tape *tape;
    if (!tape_play_run(of, run, TAPE_AT_ONCE, &tape, &e)) fail_msg("%s", e.text);
    struct provider *player = playing_provider_new(tape, STR("fake"));
    tape_unref(tape);
    ask(f, player);
    loop_turn(f->loop);
    provider_free(player);
}

static void a_run_is_played_from_its_own_recordings(void **state) {
    struct fixture *f = *state;
    struct tape *tape;
    struct err e;
    record_of(f, 7, "one");
    record_of(f, 77, "two");
    record_of(f, 0, "three");
    play_run(f, f->recording, 77);
    heard(f, "done(two) ");
    play_run(f, f->recording, 7);
    heard(f, "done(one) ");
    record_of(f, 78, "four"); /* it goes on recording */
    play_run(f, f->recording, 78);
    heard(f, "done(four) ");
    assert_false(tape_play_run(f->recording, 8, TAPE_AT_ONCE, &tape, &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);
    play_from_now_on(f, TAPE_AT_ONCE);
    play_run(f, f->playing, 7);
    heard(f, "done(one) ");
    play_run(f, f->playing, 8); /* a run of a replay is answered by all of them */
    heard(f, "done(one) ");
}

static void
the_same_request_is_answered_in_the_order_of_recording_then_by_the_last(void **state) {
    (void)state;
    struct fixture f;
    fixture_init(&f);
    static const char *const answers[] = {"one", "two", "three"};
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        fake_done(ask(&f, f.recorder), answers[i]);
        loop_turn(f.loop);
    }
    buf_clear(&f.heard);
    play_from_now_on(&f, TAPE_AT_ONCE);
    for (size_t i = 0; i < 4; i++) {
        ask(&f, f.player);
        loop_turn(f.loop);
    }
    heard(&f, "done(one) done(two) done(three) done(three) ");
    fixture_done(&f);
}

static void ids_of_calls_may_differ_but_not_whose_result_is_whose(void **state) {
    struct fixture *f = *state;
    f->messages[1] = (struct message){
        .role = MESSAGE_TOOL_CALL, .call_id = STR("a"), .tool = STR("t"), .text = STR("{}")};
    f->messages[2] = (struct message){
        .role = MESSAGE_TOOL_RESULT, .call_id = STR("a"), .tool = STR("t"), .text = STR("{}")};
    f->request.message_count = 3;
    fake_done(ask(f, f->recorder), "m");
    loop_turn(f->loop);
    buf_clear(&f->heard);
    play_from_now_on(f, TAPE_AT_ONCE);
    f->messages[1].call_id = f->messages[2].call_id = STR("call-4711-0");
    ask(f, f->player);
    loop_turn(f->loop);
    heard(f, "done(m) ");
    f->messages[2].call_id = STR("another");
    ask(f, f->player);
    loop_turn(f->loop);
    heard(f, "failed(REPLAY_MISS) why(no recording answers this; the nearest differs at "
             "messages[2].call: recorded 1, asked 2; ask as recorded, or record it anew) ");
}

/* --- misses ------------------------------------------------------------------------------- */

static void a_miss_shows_the_nearest_and_the_first_difference(void **state) {
    struct fixture *f = *state;
    f->messages[0].text = STR("something else entirely, and longer");
    fake_done(ask(f, f->recorder), "m");
    loop_turn(f->loop);
    f->messages[0].text = STR("plan two days in Kyoto");
    fake_done(ask(f, f->recorder), "m");
    loop_turn(f->loop);
    buf_clear(&f->heard);
    play_from_now_on(f, TAPE_AT_ONCE);
    f->messages[0].text = STR("plan two days in Osaka " KEY);
    ask(f, f->player);
    loop_turn(f->loop);
    heard(f, "failed(REPLAY_MISS) why(no recording answers this; the nearest differs at "
             "messages[0].text: recorded ...lan two days in Kyoto\", asked ...lan two days in "
             "Osaka ***\"; ask as recorded, or record it anew) ");
    assert_null(f->call);
}

/* --- secrets ------------------------------------------------------------------------------ */

static void no_file_holds_a_secret_and_only_its_owner_reads_it(void **state) {
    struct fixture *f = *state;
    struct provider_call *model = ask(f, f->recorder);
    fake_text(model, STR("the key is house-key-"));
    fake_text(model, STR("4711-sings, or sk-prettysecret"));
    fake_done(model, "m");
    loop_turn(f->loop);
    DIR *dir = opendir(f->folder);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.') continue;
        static char text[16 * KIB];
        struct stat found;
        char path[400];
        snprintf(path, sizeof(path), "%s/%s", f->folder, entry->d_name);
        FILE *file = fopen(path, "r");
        size_t len = fread(text, 1, sizeof(text), file);
        fclose(file);
        assert_true(len > 0 && len < sizeof(text));
        assert_int_equal(str_find(str_of(text, len), STR("4711")), len);
        assert_int_equal(str_find(str_of(text, len), STR("pretty")), len);
        assert_int_equal(stat(path, &found), 0);
        assert_int_equal(found.st_mode & 0777, 0600);
    }
    closedir(dir);
}

/* --- pause, cancel, a full disk ----------------------------------------------------------- */

static void a_pause_holds_the_model_and_the_ending(void **state) {
    struct fixture *f = *state;
    struct provider_call *model = ask(f, f->recorder);
    f->recorder->kind->pause(f->call);
    f->recorder->kind->pause(f->call); /* harmless */
    assert_true(fake_paused(model));
    f->recorder->kind->resume(f->call);
    assert_false(fake_paused(model));
    fake_done(model, "m");
    f->recorder->kind->pause(f->call);
    loop_turn(f->loop);
    heard(f, "");
    f->recorder->kind->resume(f->call);
    heard(f, "");
    loop_turn(f->loop);
    heard(f, "done(m) ");
}

static void a_pause_from_inside_holds_what_is_played(void **state) {
    struct fixture *f = *state;
    record_all_kinds(f);
    buf_clear(&f->heard);
    play_from_now_on(f, TAPE_AT_ONCE);
    ask(f, f->player);
    f->then = PAUSE;
    loop_turn(f->loop);
    heard(f, "thinking(hm) ");
    f->player->kind->resume(f->call);
    f->player->kind->pause(f->call);
    loop_turn(f->loop);
    heard(f, "");
    f->player->kind->resume(f->call);
    loop_turn(f->loop);
    assert_null(f->call);
}

static void a_cancelled_call_is_not_recorded(void **state) {
    struct fixture *f = *state;
    f->then = CANCEL; /* from inside */
    assert_false(fake_text(ask(f, f->recorder), STR("a")));
    assert_int_equal(fake_calls(f->model), 0);
    ask(f, f->recorder); /* from outside */
    f->recorder->kind->cancel(f->call);
    fake_done(ask(f, f->recorder), "m"); /* before it is written */
    f->recorder->kind->cancel(f->call);
    f->call = NULL;
    loop_turn(f->loop);
    heard(f, "text(a) ");
    assert_int_equal(count_files(f), 0);
}

/* Its caller has the whole reply: the model stops, and the ending comes when the file is there. */
static void a_call_that_its_caller_finishes_is_recorded_with_what_had_come(void **state) {
    struct fixture *f = *state;
    for (int inside = 0; inside < 2; inside++) {
        struct provider_call *model = ask(f, f->recorder);
        f->then = inside ? FINISH : GO_ON;
        fake_pieces(model, STR("abc"), (const uint32_t[]){1, 2}, 2);
        if (!inside) f->recorder->kind->finish(f->call);
        assert_int_equal(fake_calls(f->model), 0);
        heard(f, "text(a) text(bc) ");
        loop_turn(f->loop);
        heard(f, "done(m) ");
        assert_null(f->call);
    }
    assert_int_equal(count_files(f), 2);
    play_from_now_on(f, TAPE_AT_ONCE);
    ask(f, f->player);
    loop_turn(f->loop);
    heard(f, "text(a) text(bc) done(m) ");
}

static void a_call_that_is_finished_can_be_cancelled(void **state) {
    struct fixture *f = *state;
    fake_text(ask(f, f->recorder), STR("a"));
    f->recorder->kind->finish(f->call);
    f->recorder->kind->cancel(f->call);
    f->call = NULL;
    loop_turn(f->loop);
    heard(f, "text(a) ");
}

static void a_cancel_ends_what_is_played_from_inside_and_outside(void **state) {
    struct fixture *f = *state;
    record_all_kinds(f);
    buf_clear(&f->heard);
    play_from_now_on(f, TAPE_REAL);
    ask(f, f->player); /* before it is looked up */
    f->player->kind->cancel(f->call);
    loop_turn(f->loop);
    ask(f, f->player); /* while it waits */
    loop_turn(f->loop);
    heard(f, "thinking(hm) text(Hel) ");
    f->player->kind->cancel(f->call);
    ask(f, f->player);
    f->then = CANCEL;
    loop_turn(f->loop);
    heard(f, "thinking(hm) ");
    loop_advance(f->loop, 1000);
    heard(f, "");
}

/* Files may not grow: so is a disk that is full, but for the words. */
static void a_turn_goes_on_when_nothing_can_be_written(void **state) {
    struct fixture *f = *state;
    struct rlimit before, none;
    struct provider_call *model = ask(f, f->recorder);
    fake_text(model, STR("a"));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = (struct rlimit){100, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    fake_done(model, "m");
    loop_turn(f->loop);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    heard(f, "text(a) done(m) ");
    assert_int_equal(count_files(f), 0); /* nothing half */
    fake_done(ask(f, f->recorder), "m");
    loop_turn(f->loop);
    assert_int_equal(count_files(f), 1); /* there is room again */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_recording_plays_in_order),
        TEST(the_ending_comes_when_its_file_is_there),
        TEST(a_failure_is_played_as_it_failed),
        TEST(the_real_pace_is_as_it_was_timed),
        TEST(a_run_is_played_from_its_own_recordings),
        cmocka_unit_test(
            the_same_request_is_answered_in_the_order_of_recording_then_by_the_last),
        TEST(ids_of_calls_may_differ_but_not_whose_result_is_whose),
        TEST(a_miss_shows_the_nearest_and_the_first_difference),
        TEST(no_file_holds_a_secret_and_only_its_owner_reads_it),
        TEST(a_pause_holds_the_model_and_the_ending),
        TEST(a_pause_from_inside_holds_what_is_played),
        TEST(a_cancelled_call_is_not_recorded),
        TEST(a_call_that_its_caller_finishes_is_recorded_with_what_had_come),
        TEST(a_call_that_is_finished_can_be_cancelled),
        TEST(a_cancel_ends_what_is_played_from_inside_and_outside),
        TEST(a_turn_goes_on_when_nothing_can_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
