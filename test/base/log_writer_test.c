#include "base/log_writer.h"

#include "helper/assert_str.h"

#include "base/buf.h"
#include "base/mem.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PATIENCE_MS 10000
#define PIPE_BYTES (4 * KIB) /* the smallest that Linux has */

static size_t note(unsigned long long dropped, char room[LOG_WRITER_NOTE_BYTES]) {
    return (size_t)snprintf(room, LOG_WRITER_NOTE_BYTES, "dropped %llu\n", dropped);
}

/* A writer to a pipe that only the test reads. */
struct stage {
    int reader, fd;
    struct log_writer *writer;
    struct buf seen;
};

static void begin(struct stage *stage, size_t ring_bytes) {
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_return_code(fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES), 0);
    stage->reader = ends[0];
    stage->fd = ends[1];
    stage->writer = log_writer_new(ends[1], ring_bytes, note);
    buf_init(&stage->seen, 1 * MIB);
}

static void start(struct stage *stage, size_t ring_bytes) {
    begin(stage, ring_bytes);
    assert_true(log_writer_start(stage->writer));
}

static void end(struct stage *stage) {
    log_writer_stop(stage->writer, PATIENCE_MS);
    log_writer_free(stage->writer);
    close(stage->fd);
    if (stage->reader >= 0) close(stage->reader);
    buf_done(&stage->seen);
}

static void fill_pipe(struct stage *stage) {
    static const char bytes[PIPE_BYTES];
    assert_int_equal(write(stage->fd, bytes, sizeof(bytes)), sizeof(bytes));
}

static void read_some(struct stage *stage) {
    char bytes[PIPE_BYTES];
    struct pollfd ready = {.fd = stage->reader, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
    ssize_t len = read(stage->reader, bytes, sizeof(bytes));
    assert_true(len > 0 && buf_append(&stage->seen, str_of(bytes, (size_t)len)));
}

static void read_until(struct stage *stage, struct str tail) {
    while (!str_ends(buf_str(&stage->seen), tail)) read_some(stage);
}

static void put(struct stage *stage, const char *line) {
    assert_true(log_writer_put(stage->writer, str_from(line)));
}

static void lines_leave_in_their_order_and_none_is_lost_to_a_reader(void **state) {
    (void)state;
    struct stage stage;
    struct buf expected;
    start(&stage, 64 * KIB);
    buf_init(&expected, 1 * MIB);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 200; i++) {
            char line[64];
            snprintf(line, sizeof(line), "round %d, line %d of them\n", round, i);
            buf_append(&expected, str_from(line));
            put(&stage, line);
        }
        while (stage.seen.len < expected.len) read_some(&stage);
    }
    assert_true(str_equal(buf_str(&stage.seen), buf_str(&expected)));
    assert_int_equal(log_writer_dropped(stage.writer), 0);
    buf_done(&expected);
    end(&stage);
}

/* The pipe is full from the first line on, as it may be when a daemon starts. */
static void lines_without_room_are_dropped_and_counted_where_they_are_missing(void **state) {
    (void)state;
    struct stage stage;
    begin(&stage, 64);
    fill_pipe(&stage);
    assert_true(log_writer_start(stage.writer));
    put(&stage, "first\n"); /* the thread may hold this one already, or the ring does */
    for (int i = 0; i < 100; i++) put(&stage, "one that will not fit any more at some time\n");
    assert_in_range(log_writer_dropped(stage.writer), 97, 99);
    unsigned long long dropped = log_writer_dropped(stage.writer);
    char count[64];
    snprintf(count, sizeof(count), "dropped %llu\n", dropped);
    read_until(&stage, str_from(count));
    assert_true(log_writer_flush(stage.writer, PATIENCE_MS));
    put(&stage, "after\n");
    read_until(&stage, STR("after\n"));
    struct str seen = str_skip(buf_str(&stage.seen), PIPE_BYTES);
    assert_true(str_starts(seen, STR("first\n")));
    assert_int_equal(log_writer_dropped(stage.writer), dropped);
    end(&stage);
}

static void a_line_larger_than_the_ring_is_counted_and_blocks_no_thread(void **state) {
    (void)state;
    struct stage stage;
    start(&stage, 16);
    put(&stage, "a line of more than sixteen bytes\n");
    read_until(&stage, STR("dropped 1\n"));
    assert_true(log_writer_flush(stage.writer, PATIENCE_MS));
    put(&stage, "short\n");
    read_until(&stage, STR("short\n"));
    assert_str(buf_str(&stage.seen), "dropped 1\nshort\n");
    end(&stage);
}

static void a_line_longer_than_a_piece_is_whole(void **state) {
    (void)state;
    struct stage stage;
    start(&stage, 64 * KIB);
    char *line = mem_alloc(20 * KIB + 1);
    memset(line, 'x', 20 * KIB - 1);
    memcpy(line + 20 * KIB - 1, "\n", 2);
    put(&stage, "before\n");
    put(&stage, line);
    put(&stage, "after\n");
    read_until(&stage, STR("x\nafter\n"));
    assert_int_equal(stage.seen.len, strlen("before\nafter\n") + 20 * KIB);
    free(line);
    end(&stage);
}

static void a_stop_waits_for_a_reader_but_not_for_ever(void **state) {
    (void)state;
    struct stage stage;
    begin(&stage, 1 * KIB);
    fill_pipe(&stage);
    assert_true(log_writer_start(stage.writer));
    put(&stage, "nobody reads this\n");
    assert_false(log_writer_flush(stage.writer, 1));
    log_writer_stop(stage.writer, 1);
    assert_false(log_writer_put(stage.writer, STR("no thread takes this\n")));
    read_some(&stage);
    assert_true(log_writer_start(stage.writer)); /* and what is put then arrives */
    put(&stage, "again\n");
    read_until(&stage, STR("again\n"));
    end(&stage);
}

/* The thread has had no turn yet when its time is over, as on a busy machine. */
static void a_stop_loses_no_line_that_the_reader_would_take(void **state) {
    (void)state;
    char room[8];
    FILE *file = tmpfile();
    assert_non_null(file);
    struct log_writer *writer = log_writer_new(fileno(file), 1 * MIB, note);
    assert_true(log_writer_start(writer));
    for (int i = 0; i < 100000; i++) assert_true(log_writer_put(writer, STR("a line\n")));
    log_writer_stop(writer, 0);
    log_writer_free(writer);
    rewind(file);
    int lines = 0;
    while (fgets(room, sizeof(room), file)) lines++;
    assert_int_equal(lines, 100000);
    fclose(file);
}

static void without_a_thread_nothing_is_taken(void **state) {
    (void)state;
    struct stage stage;
    begin(&stage, 1 * KIB);
    assert_false(log_writer_put(stage.writer, STR("too early\n")));
    assert_true(log_writer_flush(stage.writer, 0));
    log_writer_stop(stage.writer, 0);
    end(&stage);
}

/* SIGPIPE is blocked on the thread. What could not be written is counted, and said with the
 * next line that can. */
static void an_error_of_the_descriptor_costs_lines_only(void **state) {
    (void)state;
    struct stage stage;
    start(&stage, 1 * KIB);
    close(stage.reader);
    stage.reader = -1;
    put(&stage, "one\n");
    put(&stage, "two\n");
    assert_true(log_writer_flush(stage.writer, PATIENCE_MS));
    assert_int_equal(log_writer_dropped(stage.writer), 2);
    end(&stage);
}

#define PUTS 500
#define PUTTERS 4

struct putter {
    struct log_writer *writer;
    int number;
};

static void *put_many(void *ctx) {
    const struct putter *putter = ctx;
    for (int i = 0; i < PUTS; i++) {
        char line[64];
        snprintf(line, sizeof(line), "%d %d\n", putter->number, i);
        if (!log_writer_put(putter->writer, str_from(line))) abort();
    }
    return NULL;
}

/* Each thread's lines in its order, none torn. */
static void threads_that_log_at_once_do_not_mix(void **state) {
    (void)state;
    struct stage stage;
    struct putter putters[PUTTERS];
    pthread_t threads[PUTTERS];
    int next[PUTTERS] = {0};
    start(&stage, 64 * KIB);
    for (int i = 0; i < PUTTERS; i++) {
        putters[i] = (struct putter){stage.writer, i};
        assert_int_equal(pthread_create(&threads[i], NULL, put_many, &putters[i]), 0);
    }
    for (int lines = 0; lines < PUTTERS * PUTS;) {
        struct str rest = buf_str(&stage.seen);
        while (str_find_byte(rest, '\n') < rest.len) {
            struct str line = str_split(rest, '\n', &rest);
            int number = line.at[0] - '0';
            assert_in_range(number, 0, PUTTERS - 1);
            assert_int_equal(strtol(line.at + 1, NULL, 10), next[number]++);
            lines++;
        }
        buf_drop(&stage.seen, stage.seen.len - rest.len);
        if (lines < PUTTERS * PUTS) read_some(&stage);
    }
    for (int i = 0; i < PUTTERS; i++) pthread_join(threads[i], NULL);
    end(&stage);
}

static void a_write_without_a_thread_is_bounded_too(void **state) {
    (void)state;
    struct stage stage;
    begin(&stage, 16);
    assert_true(log_write_within(stage.fd, STR("there is room\n"), 0));
    read_until(&stage, STR("room\n"));
    fill_pipe(&stage);
    assert_false(log_write_within(stage.fd, STR("there is none\n"), 1));
    end(&stage);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_leave_in_their_order_and_none_is_lost_to_a_reader),
        cmocka_unit_test(lines_without_room_are_dropped_and_counted_where_they_are_missing),
        cmocka_unit_test(a_line_larger_than_the_ring_is_counted_and_blocks_no_thread),
        cmocka_unit_test(a_line_longer_than_a_piece_is_whole),
        cmocka_unit_test(a_stop_waits_for_a_reader_but_not_for_ever),
        cmocka_unit_test(a_stop_loses_no_line_that_the_reader_would_take),
        cmocka_unit_test(without_a_thread_nothing_is_taken),
        cmocka_unit_test(an_error_of_the_descriptor_costs_lines_only),
        cmocka_unit_test(threads_that_log_at_once_do_not_mix),
        cmocka_unit_test(a_write_without_a_thread_is_bounded_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
