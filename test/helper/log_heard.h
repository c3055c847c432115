/* log_heard: capture the log during a test.
 *
 *     log_begin(&log);
 *     ... what writes lines ...
 *     log_says(&log, "run 7: provider 'acme'");
 *     log_end(&log);
 *
 * Standard error goes to an unnamed file meanwhile. log_often() limits the lines per second, so
 * a test that checks such a line must be among the first of its program.
 */
#ifndef WEIR_TEST_HELPER_LOG_HEARD_H
#define WEIR_TEST_HELPER_LOG_HEARD_H

#include "base/buf.h"
#include "helper/assert_str.h"

#include <stdio.h>
#include <unistd.h>

struct log_heard {
    FILE *file;
    int before; /* standard error as it was */
    struct buf text;
};

static inline void log_begin(struct log_heard *log) {
    log->file = tmpfile();
    assert_non_null(log->file);
    log->before = dup(STDERR_FILENO);
    assert_true(dup2(fileno(log->file), STDERR_FILENO) >= 0);
    buf_init(&log->text, 1024 * 1024);
}

/* All that was said so far. */
static inline struct str log_text(struct log_heard *log) {
    char piece[4096];
    buf_clear(&log->text);
    off_t at = 0;
    for (ssize_t len; (len = pread(fileno(log->file), piece, sizeof piece, at)) > 0; at += len)
        buf_append(&log->text, str_of(piece, (size_t)len));
    return buf_str(&log->text);
}

static inline void log_end(struct log_heard *log) {
    assert_true(dup2(log->before, STDERR_FILENO) >= 0);
    close(log->before);
    fclose(log->file);
    buf_done(&log->text);
}

static inline bool log_holds(struct log_heard *log, const char *part) {
    struct str text = log_text(log);
    return str_find(text, str_from(part)) < text.len;
}

#endif
