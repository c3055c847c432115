#include "loop/child.h"

#include "base/mem.h"
#include "fake/close_fake.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct seen {
    struct loop *loop;
    struct child *child;
    struct buf output;
    size_t kill_at; /* kill once so many bytes came; 0: never */
    int ends;
    int exit_code, signal;
    char complaint[CHILD_COMPLAINT_BYTES + 1];
};

static void on_output(struct str bytes, void *ctx) {
    struct seen *seen = ctx;
    assert_true(bytes.len > 0);
    assert_int_equal(seen->ends, 0);
    assert_true(buf_append(&seen->output, bytes));
    if (!seen->kill_at || seen->output.len < seen->kill_at) return;
    child_kill(seen->child);
    seen->child = NULL;
    loop_stop(seen->loop);
}

static void on_end(const struct child_end *end, void *ctx) {
    struct seen *seen = ctx;
    seen->ends++;
    seen->exit_code = end->exit_code;
    seen->signal = end->signal;
    memcpy(seen->complaint, end->complaint.at, end->complaint.len);
    loop_stop(seen->loop);
}

static const struct child_sink sink = {.on_output = on_output, .on_end = on_end};

static void begin(struct seen *seen) {
    *seen = (struct seen){.loop = loop_new()};
    close_fake_watch(seen->loop);
    buf_init(&seen->output, 4 * MIB);
}

/* No child of ours is left, neither alive nor as a zombie, and no descriptor was closed while
 * the loop watched it. */
static void finish(struct seen *seen) {
    assert_int_equal(close_fake_early(), 0);
    close_fake_watch(NULL);
    loop_free(seen->loop);
    buf_done(&seen->output);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void start(struct seen *seen, const char *script, struct str input) {
    struct err e;
    const char *args[] = {"sh", "-c", script, NULL};
    const char *environment[] = {"PATH=/usr/bin:/bin", "WORD=seen", NULL};
    struct child_options options = {
        .path = "/bin/sh", .args = args, .environment = environment, .input = input};
    assert_true(child_start(seen->loop, &options, &sink, seen, &seen->child, &e));
}

static void run(struct seen *seen, const char *script, struct str input) {
    begin(seen);
    start(seen, script, input);
    assert_int_equal(seen->output.len, 0);
    loop_run(seen->loop);
}

static size_t open_files(void) {
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

/* --- what it reads and writes ------------------------------------------------------------- */

static void a_child_reads_its_input_and_its_output_is_delivered(void **state) {
    (void)state;
    struct seen seen;
    run(&seen, "cat; echo \" $WORD ${HOME-none}\"; exit 3", STR("-v in"));
    assert_int_equal(seen.ends, 1);
    assert_int_equal(seen.exit_code, 3);
    assert_int_equal(seen.signal, 0);
    assert_true(str_equal(buf_str(&seen.output), STR("-v in seen none\n")));
    assert_string_equal(seen.complaint, "");
    finish(&seen);
}

static void much_goes_in_and_comes_out(void **state) {
    (void)state;
    struct seen seen;
    struct buf input;
    buf_init(&input, MIB);
    while (input.len + 8 <= MIB) assert_true(buf_append(&input, STR("12345678")));
    run(&seen, "cat", buf_str(&input));
    assert_true(str_equal(buf_str(&seen.output), buf_str(&input)));
    buf_done(&input);
    finish(&seen);
}

static void send_the_tail(struct str bytes, void *ctx) {
    struct seen *seen = ctx;
    bool first = seen->output.len == 0;
    on_output(bytes, ctx);
    if (first) assert_true(child_write(seen->child, STR("tail\n")));
}

/* 20 MiB in one message, and none of the one that is refused behind it. */
static void a_talking_child_gets_a_message_whole_or_not_at_all(void **state) {
    (void)state;
    static const struct child_sink talk = {.on_output = send_the_tail, .on_end = on_end};
    static const char *const args[] = {"sh", "-c", "head -c 20971520 | wc -c; head -c 5", NULL};
    static const char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
    const struct child_options options = {
        .path = "/bin/sh", .args = args, .environment = environment, .talks = true};
    struct seen seen;
    struct err e;
    begin(&seen);
    struct str message = str_of(mem_zero(20 * MIB, 1), 20 * MIB);
    assert_true(child_start(seen.loop, &options, &talk, &seen, &seen.child, &e));
    assert_true(child_write(seen.child, message));
    assert_false(child_write(seen.child, str_head(message, 9 * MIB)));
    assert_false(child_write(seen.child, STR("no room")));
    loop_run(seen.loop);
    assert_true(str_equal(buf_str(&seen.output), STR("20971520\ntail\n")));
    free((char *)message.at);
    finish(&seen);
}

static void what_it_complains_of_is_kept_up_to_a_limit(void **state) {
    (void)state;
    struct seen seen;
    run(&seen, "echo no such voice >&2; exit 1", STR(""));
    assert_string_equal(seen.complaint, "no such voice\n");
    assert_int_equal(seen.exit_code, 1);
    finish(&seen);
    run(&seen, "while echo complaint; do :; done 1>&2 2>/dev/null; exit 5", STR(""));
    assert_int_equal(seen.exit_code, 5);
    assert_int_equal(strlen(seen.complaint) / 10, CHILD_COMPLAINT_BYTES / 10);
    finish(&seen);
}

/* --- how it ends -------------------------------------------------------------------------- */

static void a_signal_is_reported_by_its_name(void **state) {
    (void)state;
    struct seen seen;
    run(&seen, "kill -SEGV $$", STR(""));
    assert_int_equal(seen.exit_code, -1);
    assert_int_equal(seen.signal, SIGSEGV);
    finish(&seen);
}

/* Our own SIGPIPE is ignored and SIGTERM blocked: the child's are not. */
static void a_child_has_the_usual_signals(void **state) {
    (void)state;
    struct seen seen;
    sigset_t mine, before;
    sigemptyset(&mine);
    sigaddset(&mine, SIGTERM);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &mine, &before);
    run(&seen, "kill -TERM $$; echo alive", STR(""));
    assert_int_equal(seen.signal, SIGTERM);
    finish(&seen);
    run(&seen, "kill -PIPE $$; echo alive", STR(""));
    assert_int_equal(seen.signal, SIGPIPE);
    finish(&seen);
    sigprocmask(SIG_SETMASK, &before, NULL);
    signal(SIGPIPE, SIG_DFL);
}

static void the_end_waits_for_a_child_that_has_closed_its_output(void **state) {
    (void)state;
    struct seen seen;
    run(&seen, "exec >&-; cat >/dev/null; exit 7", STR("in"));
    assert_int_equal(seen.exit_code, 7);
    finish(&seen);
}

/* Its background process holds the output open: the end is only seen because that process
 * ends, too. */
static void whom_a_child_started_goes_with_it(void **state) {
    (void)state;
    struct seen seen;
    run(&seen, "sleep 1000 & echo left", STR(""));
    assert_int_equal(seen.exit_code, 0);
    assert_true(str_equal(buf_str(&seen.output), STR("left\n")));
    finish(&seen);
}

/* --- killing ------------------------------------------------------------------------------ */

static void a_killed_child_says_nothing_more(void **state) {
    (void)state;
    struct seen seen;
    begin(&seen);
    start(&seen, "echo a; sleep 1000", STR(""));
    seen.kill_at = 2;
    loop_run(seen.loop);
    assert_true(str_equal(buf_str(&seen.output), STR("a\n")));
    finish(&seen);
    assert_int_equal(seen.ends, 0);
}

static void a_child_may_be_killed_before_it_did_anything(void **state) {
    (void)state;
    struct seen seen;
    begin(&seen);
    start(&seen, "sleep 1000", STR(""));
    child_kill(seen.child);
    finish(&seen); /* loop_free() waits for it */
    assert_int_equal(seen.ends, 0);
}

static void a_stopped_child_reports_its_end(void **state) {
    struct seen seen;
    (void)state;
    begin(&seen);
    start(&seen, "echo begun; sleep 600", STR_EMPTY);
    child_stop(seen.child);
    child_stop(seen.child); /* a second time changes nothing */
    loop_run(seen.loop);
    assert_int_equal(seen.ends, 1);
    assert_int_equal(seen.signal, SIGKILL);
    finish(&seen);
}

static void a_stopped_child_may_still_be_killed(void **state) {
    struct seen seen;
    (void)state;
    begin(&seen);
    start(&seen, "sleep 600", STR_EMPTY);
    child_stop(seen.child);
    child_kill(seen.child);
    finish(&seen);
    assert_int_equal(seen.ends, 0);
}

static void no_descriptor_is_leaked(void **state) {
    (void)state;
    struct seen seen;
    /* Except for descriptors that this test inherited. */
    for (int fd = 3; fd < 256; fd++) (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    size_t before = open_files();
    run(&seen, "ls /proc/self/fd | wc -l", STR(""));
    /* 0, 1, 2, and the folder that ls looks at. */
    assert_true(str_equal(str_trim(buf_str(&seen.output)), STR("4")));
    finish(&seen);
    begin(&seen);
    start(&seen, "sleep 1000", STR(""));
    child_kill(seen.child);
    finish(&seen);
    assert_int_equal(open_files(), before);
}

/* --- programs that are not there ---------------------------------------------------------- */

static void a_program_that_is_not_there_is_an_error(void **state) {
    (void)state;
    struct err e;
    struct seen seen;
    const char *args[] = {"x", NULL}, *environment[] = {NULL};
    struct child_options options = {
        .path = "/nowhere/x", .args = args, .environment = environment, .input = STR_EMPTY};
    begin(&seen);
    size_t before = open_files();
    assert_false(child_start(seen.loop, &options, &sink, &seen, &seen.child, &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_string_equal(e.text, "cannot run '/nowhere/x': No such file or directory");
    assert_int_equal(open_files(), before);
    finish(&seen);
}

static void a_program_is_found_in_the_folders_of_the_path(void **state) {
    (void)state;
    struct buf path;
    buf_init(&path, 4096);
    assert_true(child_find(STR("sh"), STR("/nowhere::/bin:/usr/bin"), &path));
    assert_string_equal(path.at, "/bin/sh");
    buf_clear(&path);
    assert_true(child_find(STR("/bin/sh"), STR(""), &path));
    assert_string_equal(path.at, "/bin/sh");
    buf_clear(&path);
    assert_false(child_find(STR("no-such-program"), STR("/bin:/usr/bin"), &path));
    assert_false(child_find(STR(""), STR("/bin"), &path));
    assert_false(child_find(STR("sh"), STR(""), &path));
    buf_done(&path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_reads_its_input_and_its_output_is_delivered),
        cmocka_unit_test(much_goes_in_and_comes_out),
        cmocka_unit_test(a_talking_child_gets_a_message_whole_or_not_at_all),
        cmocka_unit_test(what_it_complains_of_is_kept_up_to_a_limit),
        cmocka_unit_test(a_signal_is_reported_by_its_name),
        cmocka_unit_test(a_child_has_the_usual_signals),
        cmocka_unit_test(the_end_waits_for_a_child_that_has_closed_its_output),
        cmocka_unit_test(whom_a_child_started_goes_with_it),
        cmocka_unit_test(a_killed_child_says_nothing_more),
        cmocka_unit_test(a_child_may_be_killed_before_it_did_anything),
        cmocka_unit_test(a_stopped_child_reports_its_end),
        cmocka_unit_test(a_stopped_child_may_still_be_killed),
        cmocka_unit_test(no_descriptor_is_leaked),
        cmocka_unit_test(a_program_that_is_not_there_is_an_error),
        cmocka_unit_test(a_program_is_found_in_the_folders_of_the_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
