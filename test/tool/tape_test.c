#include "tool/tape.h"

#include "fake/provider_fake.h"
#include "tool/fixture.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* One folder; a recorder around a fake tool, and a player of what was recorded. */
struct fixture {
    char folder[64];
    struct tool *fake;
    struct tape *tape;
    struct stage stage;
};

static struct tape_options options_of(const struct fixture *f, enum tape_pace pace) {
    return (struct tape_options){str_from(f->folder), NULL, 0, pace};
}

static void fixture_init(struct fixture *f) {
    struct err e;
    snprintf(f->folder, sizeof(f->folder), "/tmp/weir-tape-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    struct tape_options options = options_of(f, TAPE_AT_ONCE);
    assert_true(tape_record(&options, &f->tape, &e));
    f->fake = fake_tool_new("look");
    stage_init(&f->stage, recording_tool_new(f->tape, f->fake));
}

static void play_from_now_on(struct fixture *f, enum tape_pace pace) {
    struct err e;
    struct tape_options options = options_of(f, pace);
    stage_done(&f->stage);
    tape_unref(f->tape);
    if (!tape_play(&options, &f->tape, &e)) fail_msg("%s", e.text);
    f->fake = fake_tool_new("look");
    stage_init(&f->stage, playing_tool_new(f->tape, f->fake));
}

static void fixture_done(struct fixture *f) {
    loop_turn(f->stage.loop);
    stage_done(&f->stage);
    tape_unref(f->tape);
    DIR *dir = opendir(f->folder);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] != '.') unlinkat(dirfd(dir), entry->d_name, 0);
    }
    closedir(dir);
    assert_int_equal(rmdir(f->folder), 0);
}

#include "helper/heap_fixture.h"

static void call_and_answer(struct fixture *f, const char *args, const char *result) {
    stage_call(&f->stage, args);
    fake_tool_answer(f->fake, 0, result);
    loop_turn(f->stage.loop);
    stage_said(&f->stage, false, result);
}

static void a_recorded_tool_answers_again_and_is_not_called(void **state) {
    struct fixture *f = *state;
    assert_str(f->stage.tool->name, "look");
    call_and_answer(f, "{\"q\":1}", "{\"found\":\"it\"}");
    stage_call(&f->stage, "{\"q\":2}");
    fake_tool_fail(f->fake, 0, ERR_UNAVAILABLE);
    loop_turn(f->stage.loop);
    stage_said(&f->stage, true, "the fake tool failed");

    play_from_now_on(f, TAPE_AT_ONCE);
    assert_str(f->stage.tool->name, "look");
    stage_call(&f->stage, "{ \"q\": 1 }"); /* space means nothing */
    loop_turn(f->stage.loop);
    stage_said(&f->stage, false, "{\"found\":\"it\"}");
    stage_call(&f->stage, "{\"q\":2}");
    loop_turn(f->stage.loop);
    stage_said(&f->stage, true, "the fake tool failed");
    assert_int_equal(fake_tool_calls(f->fake), 0);
}

static void a_call_that_was_not_recorded_is_a_miss_with_the_difference(void **state) {
    struct fixture *f = *state;
    call_and_answer(f, "{\"q\":1}", "{}");
    play_from_now_on(f, TAPE_AT_ONCE);
    stage_call(&f->stage, "{\"q\":2}");
    loop_turn(f->stage.loop);
    stage_said(
        &f->stage, true,
        "REPLAY_MISS: no recording answers this; the nearest differs at args.q: recorded "
        "1, asked 2; ask as recorded, or record it anew");
}

static void the_real_pace_waits_as_long_as_the_tool_took(void **state) {
    struct fixture *f = *state;
    stage_call(&f->stage, "{}");
    loop_advance(f->stage.loop, 30);
    fake_tool_answer(f->fake, 0, "{}");
    loop_turn(f->stage.loop);
    play_from_now_on(f, TAPE_REAL);
    stage_call(&f->stage, "{}");
    loop_turn(f->stage.loop);
    loop_advance(f->stage.loop, 29);
    assert_int_equal(f->stage.answers, 0);
    loop_advance(f->stage.loop, 1);
    stage_said(&f->stage, false, "{}");
}

static void cancel(struct fixture *f, struct tool_call *call) {
    f->stage.tool->kind->cancel(call);
    loop_turn(f->stage.loop);
    loop_advance(f->stage.loop, 1000);
    assert_int_equal(f->stage.answers, 0);
}

static void a_cancel_ends_it_at_every_stage(void **state) {
    struct fixture *f = *state;
    cancel(f, stage_call(&f->stage, "{}"));
    assert_int_equal(fake_tool_calls(f->fake), 0);
    struct tool_call *call = stage_call(&f->stage, "{}");
    fake_tool_answer(f->fake, 0, "{}"); /* answered, but not written */
    cancel(f, call);
    stage_call(&f->stage, "{}");
    loop_advance(f->stage.loop, 30);
    fake_tool_answer(f->fake, 0, "{}");
    loop_turn(f->stage.loop);

    play_from_now_on(f, TAPE_REAL);
    cancel(f, stage_call(&f->stage, "{}")); /* before it is looked up */
    call = stage_call(&f->stage, "{}");
    loop_turn(f->stage.loop); /* it waits for its time */
    cancel(f, call);
}

/* --- folders ------------------------------------------------------------------------------ */

static void a_folder_that_cannot_be_played_is_refused(void **state) {
    struct fixture *f = *state;
    struct err e;
    struct tape *tape;
    char path[100];
    struct tape_options options = options_of(f, TAPE_AT_ONCE);
    assert_false(tape_play(&options, &tape, &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);
    snprintf(path, sizeof(path), "%s/new.json", f->folder);
    FILE *file = fopen(path, "w");
    fputs("{\"weir_tape\": 9}", file);
    fclose(file);
    assert_false(tape_play(&options, &tape, &e));
    assert_str(err_text(&e),
               "replay 'new.json': this recording has format 9 and this weir reads format 1; "
               "record it again, or replay it with a newer weir");
    options.folder = str_from(path);
    assert_false(tape_play(&options, &tape, &e));
    assert_false(tape_record(&options, &tape, &e));
    options.folder = STR("/tmp/weir/not/there");
    assert_false(tape_record(&options, &tape, &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_recorded_tool_answers_again_and_is_not_called),
        TEST(a_call_that_was_not_recorded_is_a_miss_with_the_difference),
        TEST(the_real_pace_waits_as_long_as_the_tool_took),
        TEST(a_cancel_ends_it_at_every_stage),
        TEST(a_folder_that_cannot_be_played_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
