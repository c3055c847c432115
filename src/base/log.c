#include "base/log.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LOG_LINE_BYTES (8 * KIB)

static const char *const level_names[] = {"debug", "info", "warning", "error"};

enum log_level log_lowest = LOG_WARNING;
static enum log_form log_form = LOG_PLAIN;

void log_setup(enum log_level lowest, enum log_form form) {
    log_lowest = lowest;
    log_form = form;
}

/* 2026-11-21T15:58:00.123Z */
static void append_time(struct buf *line) {
    int64_t now_ms = clock_unix_ms();
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    char text[32];
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
    buf_printf(line, "%s.%03dZ", text, (int)(now_ms % 1000));
}

static void append_escaped(struct buf *line, struct str text) {
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c == '"' || c == '\\') {
            buf_printf(line, "\\%c", c);
        } else if (c < 0x20 || c == 0x7F) {
            buf_printf(line, "\\u%04x", c);
        } else {
            buf_append_byte(line, (char)c);
        }
    }
}

/* A peer's line break must not start a line of its own. */
static void append_one_line(struct buf *line, struct str text) {
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        buf_append_byte(line, c < 0x20 || c == 0x7F ? ' ' : (char)c);
    }
}

void log_line(enum log_level level, const char *format, ...) {
    struct buf text, valid, line;
    buf_init(&text, LOG_LINE_BYTES);
    buf_init(&valid, 3 * LOG_LINE_BYTES);
    buf_init(&line, 20 * LOG_LINE_BYTES);
    va_list values;
    va_start(values, format);
    if (!buf_vprintf(&text, format, values)) {
        buf_clear(&text);
        buf_append(&text, STR("(a line longer than the log takes)"));
    }
    va_end(values);
    utf8_append_repaired(&valid, buf_str(&text));
    if (log_form == LOG_JSON) {
        buf_append(&line, STR("{\"time\":\""));
        append_time(&line);
        buf_printf(&line, "\",\"level\":\"%s\",\"message\":\"", level_names[level]);
        append_escaped(&line, buf_str(&valid));
        buf_append(&line, STR("\"}\n"));
    } else {
        if (level != LOG_INFO) buf_printf(&line, "%s: ", level_names[level]);
        append_one_line(&line, buf_str(&valid));
        buf_append_byte(&line, '\n');
    }
    ssize_t written = write(STDERR_FILENO, line.at, line.len);
    (void)written; /* there is nowhere left to report it */
    buf_done(&text);
    buf_done(&valid);
    buf_done(&line);
}
