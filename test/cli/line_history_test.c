/* The lines that were typed, across conversations, crashes and other processes. */
#include "cli/line_history.h"

#include "base/file.h"
#include "helper/assert_str.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[128];

static int set_up(void **state) {
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/weir-history-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/state/weir/chat_history", folder);
    return 0;
}

static int tear_down(void **state) {
    char room[160];
    (void)state;
    unlink(path);
    snprintf(room, sizeof(room), "%s/state/weir", folder);
    rmdir(room);
    snprintf(room, sizeof(room), "%s/state", folder);
    rmdir(room);
    assert_int_equal(rmdir(folder), 0);
    return 0;
}

static void append_raw(const char *text) {
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void lines_come_back_newest_first(void **state) {
    (void)state;
    struct line_history history;
    struct stat file, own;
    line_history_init(&history, str_from(path));
    line_history_add(&history, STR("one"));
    line_history_add(&history, STR("two\n\"lines\" \xe6\xbc\xa2 \x1b"));
    line_history_add(&history, STR("two\n\"lines\" \xe6\xbc\xa2 \x1b")); /* again */
    line_history_add(&history, STR("  a secret"));
    line_history_add(&history, STR(" \n "));
    assert_int_equal(history.count, 2);
    line_history_done(&history);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    *strrchr(path, '/') = '\0';
    assert_int_equal(stat(path, &own), 0);
    path[strlen(path)] = '/';
    assert_int_equal(own.st_mode & 0777, 0700);
    line_history_init(&history, str_from(path));
    assert_int_equal(history.count, 2);
    assert_str(line_history_at(&history, 1), "two\n\"lines\" \xe6\xbc\xa2 \x1b");
    assert_str(line_history_at(&history, 2), "one");
    line_history_done(&history);
}

static void a_line_that_was_cut_short_harms_no_other(void **state) {
    (void)state;
    struct line_history history;
    line_history_init(&history, str_from(path));
    line_history_add(&history, STR("one"));
    append_raw("42\n\"half");
    line_history_add(&history, STR("two"));
    line_history_done(&history);
    line_history_init(&history, str_from(path));
    assert_int_equal(history.count, 2);
    assert_str(line_history_at(&history, 1), "two");
    line_history_done(&history);
}

static void two_conversations_keep_the_lines_of_both(void **state) {
    (void)state;
    struct line_history one, two;
    line_history_init(&one, str_from(path));
    line_history_init(&two, str_from(path));
    line_history_add(&one, STR("a"));
    line_history_add(&two, STR("b"));
    line_history_add(&one, STR("c"));
    line_history_done(&one);
    line_history_done(&two);
    line_history_init(&one, str_from(path));
    assert_int_equal(one.count, 3);
    assert_str(line_history_at(&one, 2), "b");
    line_history_done(&one);
}

static size_t count_lines(void) {
    struct buf all;
    struct err e;
    size_t count = 0;
    buf_init(&all, MIB);
    assert_true(file_read(str_from(path), &all, &e));
    for (size_t i = 0; i < all.len; i++) count += all.at[i] == '\n';
    buf_done(&all);
    return count;
}

static void old_lines_go_from_memory_and_from_the_file(void **state) {
    (void)state;
    struct line_history history;
    char line[16];
    line_history_init(&history, str_from(path));
    for (int i = 0; i < 2 * HISTORY_LINES + 5; i++) {
        snprintf(line, sizeof(line), "%d", i);
        line_history_add(&history, str_from(line));
        assert_true(history.count <= 2 * HISTORY_LINES);
    }
    line_history_done(&history);
    assert_int_equal(count_lines(), 2 * HISTORY_LINES + 5);
    line_history_init(&history, str_from(path));
    assert_int_equal(count_lines(), HISTORY_LINES);
    snprintf(line, sizeof(line), "%d", 2 * HISTORY_LINES + 4);
    assert_str(line_history_at(&history, 1), line);
    line_history_done(&history);
}

static void without_a_file_lines_last_as_long_as_the_command(void **state) {
    (void)state;
    struct line_history history;
    line_history_init(&history, STR("/proc/nowhere/history"));
    line_history_add(&history, STR("one"));
    assert_str(line_history_at(&history, 1), "one");
    line_history_done(&history);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_come_back_newest_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_line_that_was_cut_short_harms_no_other, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(two_conversations_keep_the_lines_of_both, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(old_lines_go_from_memory_and_from_the_file, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(without_a_file_lines_last_as_long_as_the_command,
                                        set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
