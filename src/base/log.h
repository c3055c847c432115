/* log: one line per noteworthy event.
 *
 * Lines go to standard error: plain text at a terminal, one JSON object per line otherwise.
 * Lines from different threads never mix. Bytes from a peer are never used as a format string,
 * and secrets are never passed in.
 *
 * A one-shot command writes each line immediately. A daemon calls log_start(): from then on no
 * thread waits for the reader, and lines that do not fit are dropped and counted
 * (base/log_writer.h).
 *
 * Threads  any; log_start() and log_stop() are for the main thread only.
 */
#ifndef WEIR_BASE_LOG_H
#define WEIR_BASE_LOG_H

#include "base/attr.h"

#include <stdatomic.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };
enum log_form { LOG_PLAIN, LOG_JSON };

/* Any thread, at any time; until then warnings and errors are written in plain form. */
void log_setup(enum log_level lowest, enum log_form form);

/* Between these two calls, a dedicated thread writes the lines. log_stop() waits for the
 * remaining lines, at most LOG_STOP_MS for a reader that takes none. Each line logged later may
 * also block that long. */
#define LOG_STOP_MS 200
void log_start(void);
void log_stop(void);

/* Number of lines dropped, because the reader stalled or the write failed. */
unsigned long long log_dropped(void);

PRINTF_LIKE(2, 3) void log_line(enum log_level level, const char *format, ...);

/* Whole lines of plain text for a person, written unchanged and in order with the log lines. */
PRINTF_LIKE(1, 2) void log_print(const char *format, ...);

/* The last line of a process that is about to abort. It is written after the waiting lines,
 * before this returns and within LOG_STOP_MS. It allocates nothing and is cut at
 * LOG_LAST_BYTES. */
#define LOG_LAST_BYTES 384
PRINTF_LIKE(2, 3) void log_last(enum log_level level, const char *format, ...);

/* For lines that a peer can cause at will: at most LOG_OFTEN_MAX a second in total, then one
 * line with the number of suppressed lines. */
#define LOG_OFTEN_MAX 9
PRINTF_LIKE(2, 3) void log_often(enum log_level level, const char *format, ...);

/* Log the number of suppressed lines that is still unreported. Call before the program ends. */
void log_often_flush(void);

extern atomic_int log_lowest;
#define log_wants(level)                                                                       \
    (atomic_load_explicit(&log_lowest, memory_order_relaxed) <= (int)(level))

/* clang-format off */
#define log_debug(...)   (log_wants(LOG_DEBUG) ? log_line(LOG_DEBUG, __VA_ARGS__) : (void)0)
#define log_info(...)    (log_wants(LOG_INFO) ? log_line(LOG_INFO, __VA_ARGS__) : (void)0)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_error(...)   log_line(LOG_ERROR, __VA_ARGS__)
/* clang-format on */

#endif
