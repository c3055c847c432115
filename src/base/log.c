#include "base/log.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/log_writer.h"
#include "base/utf8.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LOG_LINE_BYTES (8 * KIB)
#define LOG_RING_BYTES (256 * KIB)

static const char *const level_names[] = {"debug", "info", "warning", "error"};

atomic_int log_lowest = LOG_WARNING;
static atomic_int log_form = LOG_PLAIN;

/* Created by the first log_start() and never freed: a thread may log at any time. */
static struct log_writer *_Atomic log_thread;
static atomic_bool is_over; /* log_stop() was called: lines no longer wait for the reader */

/* The current second, the lines logged in it, and the suppressed lines not yet reported. */
static struct {
    pthread_mutex_t lock;
    uint64_t second;
    unsigned lines;
    unsigned long long left_out;
} often = {.lock = PTHREAD_MUTEX_INITIALIZER};

void log_setup(enum log_level lowest, enum log_form form) {
    atomic_store(&log_lowest, (int)lowest);
    atomic_store(&log_form, (int)form);
}

/* --- output ------------------------------------------------------------------------------- */

static void emit(struct str line) {
    struct log_writer *thread = atomic_load(&log_thread);
    if (thread && log_writer_put(thread, line)) return;
    if (atomic_load(&is_over)) {
        (void)log_write_within(STDERR_FILENO, line, LOG_STOP_MS);
        return;
    }
    ssize_t written = write(STDERR_FILENO, line.at, line.len);
    (void)written; /* there is nowhere left to report it */
}

/* --- lines -------------------------------------------------------------------------------- */

#define TIME_ROOM 40

/* 2026-11-21T15:58:00.123Z */
static const char *time_text(char room[TIME_ROOM]) {
    int64_t now_ms = clock_unix_ms();
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    size_t len = strftime(room, TIME_ROOM, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(room + len, TIME_ROOM - len, ".%03dZ", (int)(now_ms % 1000));
    return room;
}

/* Whether it ends a line or turns the direction of writing, so that a terminal shows another text
 * than was logged. */
static bool turns_lines(unsigned number) {
    return number == 0x200E || number == 0x200F || (number >= 0x2028 && number <= 0x202E) ||
           (number >= 0x2066 && number <= 0x2069);
}

/* The control character at the front of valid text, if there is one: its bytes and its
 * number. U+0080 to U+009F count, since terminals obey some of them (U+009B begins a
 * sequence as ESC [ does), and so do the marks of turns_lines(). */
static size_t control_at(struct str text, unsigned *ret_number) {
    unsigned char first = (unsigned char)text.at[0];
    *ret_number = first;
    if (first < 0x20 || first == 0x7F) return 1;
    if (first == 0xE2) { /* U+2000 to U+2FFF */
        unsigned second = (unsigned char)text.at[1] & 0x3F,
                 third = (unsigned char)text.at[2] & 0x3F;
        *ret_number = 0x2000 | second << 6 | third;
        return turns_lines(*ret_number) ? 3 : 0;
    }
    if (first != 0xC2 || (unsigned char)text.at[1] > 0x9F) return 0;
    *ret_number = (unsigned char)text.at[1];
    return 2;
}

static void log_append_escaped(struct buf *line, struct str text) {
    for (; text.len; text = str_skip(text, 1)) {
        unsigned number;
        size_t control = control_at(text, &number);
        if (control) {
            buf_printf(line, "\\u%04x", number);
            text = str_skip(text, control - 1);
        } else {
            if (text.at[0] == '"' || text.at[0] == '\\') buf_append_byte(line, '\\');
            buf_append_byte(line, text.at[0]);
        }
    }
}

/* A line break sent by a peer must not start a new log line. */
static void append_one_line(struct buf *line, struct str text) {
    for (; text.len; text = str_skip(text, 1)) {
        unsigned number;
        size_t control = control_at(text, &number);
        buf_append_byte(line, control ? ' ' : text.at[0]);
        if (control) text = str_skip(text, control - 1);
    }
}

static void log_write_line(enum log_level level, const char *format, va_list values) {
    struct buf text, valid, line;
    buf_init(&text, LOG_LINE_BYTES);
    buf_init(&valid, 3 * LOG_LINE_BYTES);
    buf_init(&line, 20 * LOG_LINE_BYTES);
    char now[TIME_ROOM];
    if (!buf_vprintf(&text, format, values)) {
        buf_clear(&text);
        buf_append(&text, STR("(a line longer than the log takes)"));
    }
    utf8_append_repaired(&valid, buf_str(&text));
    if (log_form == LOG_JSON) {
        buf_printf(&line, "{\"time\":\"%s\",\"level\":\"%s\",\"message\":\"", time_text(now),
                   level_names[level]);
        log_append_escaped(&line, buf_str(&valid));
        buf_append(&line, STR("\"}\n"));
    } else {
        if (level != LOG_INFO) buf_printf(&line, "%s: ", level_names[level]);
        append_one_line(&line, buf_str(&valid));
        buf_append_byte(&line, '\n');
    }
    emit(buf_str(&line));
    buf_done(&text);
    buf_done(&valid);
    buf_done(&line);
}

void log_line(enum log_level level, const char *format, ...) {
    va_list values;
    va_start(values, format);
    log_write_line(level, format, values);
    va_end(values);
}

void log_print(const char *format, ...) {
    struct buf text;
    va_list values;
    buf_init(&text, 4 * LOG_LINE_BYTES);
    va_start(values, format);
    if (buf_vprintf(&text, format, values)) emit(buf_str(&text));
    va_end(values);
    buf_done(&text);
}

/* --- lines that allocate nothing ---------------------------------------------------------- */

/* The last byte of `room` is the line break, even when the text is cut. Returns the length. */
static size_t fixed_line(enum log_level level, const char *text, char *room, size_t size) {
    char now[TIME_ROOM];
    int len;
    if (log_form == LOG_JSON) {
        len = snprintf(room, size, "{\"time\":\"%s\",\"level\":\"%s\",\"message\":\"%s\"}\n",
                       time_text(now), level_names[level], text);
    } else {
        len = snprintf(room, size, "%s: %s\n", level_names[level], text);
    }
    if (len > 0 && (size_t)len < size) return (size_t)len;
    room[size - 1] = '\n';
    return size;
}

/* These messages are ours, so characters that JSON would escape are simply replaced. */
static void make_harmless(char *text) {
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte < 0x20 || byte >= 0x7F || byte == '\\') *text = ' ';
        if (byte == '"') *text = '\'';
    }
}

void log_last(enum log_level level, const char *format, ...) {
    char text[LOG_LAST_BYTES], line[LOG_LAST_BYTES + 128];
    struct log_writer *thread = atomic_load(&log_thread);
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    make_harmless(text);
    uint64_t end_ms = clock_mono_ms() + LOG_STOP_MS;
    if (thread) (void)log_writer_flush(thread, LOG_STOP_MS);
    uint64_t now_ms = clock_mono_ms();
    (void)log_write_within(STDERR_FILENO,
                           str_of(line, fixed_line(level, text, line, sizeof(line))),
                           now_ms < end_ms ? (unsigned)(end_ms - now_ms) : 0);
}

static size_t note_dropped(unsigned long long dropped, char room[LOG_WRITER_NOTE_BYTES]) {
    char text[128];
    snprintf(text, sizeof(text), "%llu lines of the log were dropped: its reader was too slow",
             dropped);
    return fixed_line(LOG_WARNING, text, room, LOG_WRITER_NOTE_BYTES);
}

/* --- the thread --------------------------------------------------------------------------- */

void log_start(void) {
    struct log_writer *thread = atomic_load(&log_thread);
    if (!thread) thread = log_writer_new(STDERR_FILENO, LOG_RING_BYTES, note_dropped);
    bool started = log_writer_start(thread);
    atomic_store(&is_over, false);
    atomic_store(&log_thread, thread);
    if (!started) log_warning("the log has no thread of its own: its reader can stop others");
}

void log_stop(void) {
    struct log_writer *thread = atomic_load(&log_thread);
    atomic_store(&is_over, true);
    if (thread) log_writer_stop(thread, LOG_STOP_MS);
}

unsigned long long log_dropped(void) {
    struct log_writer *thread = atomic_load(&log_thread);
    return thread ? log_writer_dropped(thread) : 0;
}

/* --- lines that come often ---------------------------------------------------------------- */

/* Whether one more line may be written. *ret_left_out: suppressed lines to report first. */
static bool may_write(unsigned long long *ret_left_out) {
    uint64_t second = clock_mono_ms() / 1000;
    pthread_mutex_lock(&often.lock);
    if (second != often.second) {
        often.second = second;
        often.lines = 0;
    }
    bool may = often.lines < LOG_OFTEN_MAX;
    *ret_left_out = may ? often.left_out : 0;
    if (may) {
        often.lines++;
        often.left_out = 0;
    } else {
        often.left_out++;
    }
    pthread_mutex_unlock(&often.lock);
    return may;
}

static void report_left_out(unsigned long long count) {
    if (count) log_warning("%llu lines like the one before were left out", count);
}

void log_often(enum log_level level, const char *format, ...) {
    unsigned long long left_out;
    if (!log_wants(level) || !may_write(&left_out)) return;
    report_left_out(left_out);
    va_list values;
    va_start(values, format);
    log_write_line(level, format, values);
    va_end(values);
}

void log_often_flush(void) {
    pthread_mutex_lock(&often.lock);
    unsigned long long left_out = often.left_out;
    often.left_out = 0;
    pthread_mutex_unlock(&often.lock);
    report_left_out(left_out);
}
