#include "base/log.h"

#include "helper/assert_str.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* What `write` puts on standard error, up to 128 KiB; free() it. */
static struct str captured(void (*write_lines)(void)) {
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stderr);
    int before = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    write_lines();
    dup2(before, STDERR_FILENO);
    close(before);
    char *text = mem_zero(1, 128 * KIB);
    rewind(file);
    size_t len = fread(text, 1, 128 * KIB - 1, file);
    fclose(file);
    return str_of(text, len);
}

static void assert_lines(void (*write_lines)(void), const char *expected) {
    struct str text = captured(write_lines);
    assert_str(text, expected);
    free((void *)text.at);
}

static void write_each_level(void) {
    log_debug("one %d", 1);
    log_info("two %s", "2");
    log_warning("three");
    log_error("four");
}

static void lines_below_the_lowest_level_are_not_written(void **state) {
    (void)state;
    log_setup(LOG_DEBUG, LOG_PLAIN);
    assert_lines(write_each_level, "debug: one 1\ntwo 2\nwarning: three\nerror: four\n");
    log_setup(LOG_INFO, LOG_PLAIN);
    assert_lines(write_each_level, "two 2\nwarning: three\nerror: four\n");
    log_setup(LOG_WARNING, LOG_PLAIN);
    assert_lines(write_each_level, "warning: three\nerror: four\n");
}

static void write_hostile(void) {
    log_info("%s", "a\nerror: forged\r\t\x1B[31m\x7F\xC2\x9B"
                   "31m\xC2\xA0é\xFF\"\\\xE2\x80\xAE\xE2\x82\xAC");
}

static void a_peer_starts_no_line_and_paints_no_terminal(void **state) {
    (void)state;
    log_setup(LOG_INFO, LOG_PLAIN);
    assert_lines(write_hostile,
                 "a error: forged   [31m  31m\xC2\xA0é\xEF\xBF\xBD\"\\ \xE2\x82\xAC\n");
}

static void a_json_line_is_json(void **state) {
    (void)state;
    log_setup(LOG_INFO, LOG_JSON);
    struct str text = captured(write_hostile);
    const char *head = "{\"time\":\"";
    const char *tail =
        "Z\",\"level\":\"info\",\"message\":\"a\\u000aerror: forged\\u000d\\u0009"
        "\\u001b[31m\\u007f\\u009b31m\xC2\xA0é\xEF\xBF\xBD\\\"\\\\\\u202e\xE2\x82\xAC\"}\n";
    assert_true(str_starts(text, str_from(head)));
    assert_true(str_ends(text, str_from(tail)));
    assert_int_equal(text.len, strlen(head) + strlen("2026-11-21T15:58:00.123") + strlen(tail));
    free((void *)text.at);
}

static void write_too_much(void) {
    char *text = mem_alloc(20 * KIB);
    memset(text, 'x', 20 * KIB - 1);
    text[20 * KIB - 1] = '\0';
    log_error("%s", text);
    free(text);
}

static void a_line_too_long_is_replaced_and_not_cut(void **state) {
    (void)state;
    log_setup(LOG_INFO, LOG_PLAIN);
    assert_lines(write_too_much, "error: (a line longer than the log takes)\n");
}

static void write_as_long_as_it_may(void) {
    char *text = mem_alloc(8 * KIB + 1);
    memset(text, '\x01', 8 * KIB);
    text[8 * KIB] = '\0';
    log_error("%s", text);
    memset(text, '\xFF', 8 * KIB);
    log_error("%s", text);
    free(text);
}

/* Escapes are six times as long as what they stand for; the line must still be whole. */
static void the_longest_line_is_whole_whatever_is_in_it(void **state) {
    (void)state;
    log_setup(LOG_INFO, LOG_JSON);
    struct str text = captured(write_as_long_as_it_may), rest;
    struct str first = str_split(text, '\n', &rest);
    assert_true(str_ends(first, STR("\"}")));
    assert_true(str_ends(rest, STR("\"}\n")));
    assert_true(first.len > 6 * 8 * KIB);
    free((void *)text.at);
}

static void write_very_often(void) {
    for (int i = 0; i < 1000; i++) log_often(LOG_WARNING, "refused %d", i);
    log_often(LOG_DEBUG, "not wanted, and not counted");
    log_often_flush();
    log_often_flush();
}

/* A12; the thousand may lie in two seconds, not in more. */
static void lines_that_come_often_are_few_and_counted(void **state) {
    (void)state;
    log_setup(LOG_INFO, LOG_PLAIN);
    struct str text = captured(write_very_often), rest = text;
    unsigned lines = 0, reported = 0;
    while (rest.len) {
        struct str line = str_split(rest, '\n', &rest);
        unsigned long long left_out;
        if (str_starts(line, STR("warning: refused "))) lines++;
        if (sscanf(line.at, "warning: %llu lines like the one before were left out",
                   &left_out) == 1)
            reported += (unsigned)left_out;
    }
    assert_in_range(lines, 1, 2 * LOG_OFTEN_MAX);
    assert_int_equal(lines + reported, 1000);
    free((void *)text.at);
}

static void write_by_thread(void) {
    log_start();
    log_info("one");
    log_print("text\nas it stands\n");
    log_warning("two");
    log_last(LOG_ERROR, "the %s", "\"last\"\n");
    log_stop();
    log_info("behind it");
}

static void with_a_thread_of_its_own_the_log_reads_the_same(void **state) {
    (void)state;
    log_setup(LOG_INFO, LOG_PLAIN);
    const char *expected = "one\ntext\nas it stands\nwarning: two\nerror: the 'last' \n"
                           "behind it\n";
    assert_lines(write_by_thread, expected);
    assert_lines(write_by_thread, expected); /* and started again */
    assert_int_equal(log_dropped(), 0);
}

static void write_last(void) {
    log_last(LOG_ERROR, "no \"memory\"");
}

static void the_last_line_is_json_where_the_others_are(void **state) {
    (void)state;
    log_setup(LOG_INFO, LOG_JSON);
    struct str text = captured(write_last);
    assert_true(str_starts(text, STR("{\"time\":\"2")));
    assert_true(str_ends(text, STR("Z\",\"level\":\"error\",\"message\":\"no 'memory'\"}\n")));
    free((void *)text.at);
}

/* Lines that the ring has no room for are said before the first one that has. */
static void a_pipe_without_a_reader_blocks_no_thread(void **state) {
    (void)state;
    int ends[2], before = dup(STDERR_FILENO);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    log_setup(LOG_INFO, LOG_PLAIN);
    dup2(ends[1], STDERR_FILENO);
    log_start();
    for (int i = 0; i < 10000; i++) log_info("line %d of a log that nobody reads at all", i);
    log_last(LOG_ERROR, "the last one");
    log_stop();
    log_info("behind it");
    dup2(before, STDERR_FILENO);
    close(before);
    close(ends[0]);
    close(ends[1]);
    assert_in_range(log_dropped(), 1, 9999);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_below_the_lowest_level_are_not_written),
        cmocka_unit_test(a_peer_starts_no_line_and_paints_no_terminal),
        cmocka_unit_test(a_json_line_is_json),
        cmocka_unit_test(a_line_too_long_is_replaced_and_not_cut),
        cmocka_unit_test(the_longest_line_is_whole_whatever_is_in_it),
        cmocka_unit_test(lines_that_come_often_are_few_and_counted),
        cmocka_unit_test(with_a_thread_of_its_own_the_log_reads_the_same),
        cmocka_unit_test(the_last_line_is_json_where_the_others_are),
        cmocka_unit_test(a_pipe_without_a_reader_blocks_no_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
