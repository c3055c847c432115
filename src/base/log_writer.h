/* log_writer: lines to a descriptor, by a thread of their own.
 *
 * Whoever puts a line only copies it into a ring; the thread waits until the descriptor takes
 * something and writes it, in the order of the puts. A reader that stalls costs lines, never
 * time: a line that finds no room is dropped and counted, and so are all after it until the
 * ring is empty. Then the thread writes how many were dropped, and lines are taken again.
 *
 *     log_writer_put ─▶ ring ─▶ thread: poll, write ─▶ descriptor
 *           └ no room: count one ────▶ "N lines were dropped", once the ring is empty
 *
 * The flags of the descriptor stay as they are, since others share it: a pipe that poll(2)
 * calls writable takes LOG_WRITER_PIECE_BYTES without blocking, and nothing longer is written
 * at once.
 *
 * Memory   the ring is made by log_writer_new(); a put allocates nothing.
 * Threads  any, except _new, _start, _stop and _free: one thread at a time.
 */
#ifndef WEIR_BASE_LOG_WRITER_H
#define WEIR_BASE_LOG_WRITER_H

#include "base/attr.h"
#include "base/str.h"

#define LOG_WRITER_PIECE_BYTES (4 * KIB)
#define LOG_WRITER_NOTE_BYTES 512

/* The line that says how many were dropped: its bytes in `room`, and their number returned.
 * Called on the writer's thread. */
typedef size_t log_writer_note_fn(unsigned long long dropped, char room[LOG_WRITER_NOTE_BYTES]);

struct log_writer;

/* fd stays the caller's. */
struct log_writer *log_writer_new(int fd, size_t ring_bytes, log_writer_note_fn *note);

/* NULL is fine. A thread that log_writer_stop() had to leave behind keeps the memory. */
void log_writer_free(struct log_writer *writer);

/* False: there is no thread to be had; puts are refused. */
MUST_CHECK bool log_writer_start(struct log_writer *writer);

/* Everything that was put is written first, unless that takes longer than within_ms. */
void log_writer_stop(struct log_writer *writer, unsigned within_ms);

/* False: no thread runs, so the line was not taken, and not counted either. */
MUST_CHECK bool log_writer_put(struct log_writer *writer, struct str line);

/* Wait until everything that was put has been written; false: it took longer. */
bool log_writer_flush(struct log_writer *writer, unsigned within_ms);

/* Lines that were dropped so far, because there was no room or the descriptor failed. */
unsigned long long log_writer_dropped(struct log_writer *writer);

/* Write without a thread, for at most within_ms; false: not all of it was taken. */
bool log_write_within(int fd, struct str bytes, unsigned within_ms);

#endif
