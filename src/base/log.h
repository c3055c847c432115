/* log: one line per thing worth knowing.
 *
 * Lines go to standard error: plain for a person at a terminal, one JSON object a line
 * otherwise. Lines of several threads never mix. Nothing that came from a peer is a format
 * string, and secrets are never passed in.
 *
 * A command that does one thing writes each line at once. A daemon calls log_start(): from
 * then on no thread waits for whoever reads, and lines for which there is no room are dropped
 * and counted (base/log_writer.h).
 *
 * Threads  any, except log_start() and log_stop(), which are for the main one.
 */
#ifndef WEIR_BASE_LOG_H
#define WEIR_BASE_LOG_H

#include "base/attr.h"

#include <stdatomic.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };
enum log_form { LOG_PLAIN, LOG_JSON };

/* Any thread, at any time; until then warnings and errors are written in plain form. */
void log_setup(enum log_level lowest, enum log_form form);

/* Between these two, lines leave by a thread of their own. log_stop() waits for what is still
 * to be written, but not longer than LOG_STOP_MS, and after it a line has as long at most. */
#define LOG_STOP_MS 200
void log_start(void);
void log_stop(void);

/* Lines that were dropped, because nobody read them or they could not be written. */
unsigned long long log_dropped(void);

PRINTF_LIKE(2, 3) void log_line(enum log_level level, const char *format, ...);

/* Text for a person as it stands, whole lines of it, in its place among the others. */
PRINTF_LIKE(1, 2) void log_print(const char *format, ...);

/* The last line of a process that ends now and not in order: written behind what waits, before
 * this returns, in LOG_STOP_MS at most. It allocates nothing, and is cut at LOG_LAST_BYTES. */
#define LOG_LAST_BYTES 384
PRINTF_LIKE(2, 3) void log_last(enum log_level level, const char *format, ...);

/* For lines that a peer can cause as often as it likes: at most LOG_OFTEN_MAX a second, all
 * of them together, and then one that says how many were left out. */
#define LOG_OFTEN_MAX 9
PRINTF_LIKE(2, 3) void log_often(enum log_level level, const char *format, ...);

/* Say what has been left out since; before the program ends. */
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
