/* log_writer: write lines to a descriptor from a dedicated thread.
 *
 * A put only copies the line into a ring. The thread waits until the descriptor is writable and
 * writes the lines in the order they were put. A stalled reader costs lines, never time: a line
 * that does not fit is dropped and counted, and so are all later lines until the ring is empty.
 * Then the thread writes how many were dropped, and lines are accepted again.
 *
 *     log_writer_put ─▶ ring ─▶ thread: poll, write ─▶ descriptor
 *           └ no room: count one ────▶ "N lines were dropped", once the ring is empty
 *
 * The flags of the descriptor are not changed, because other processes share it. Instead no
 * write is longer than LOG_WRITER_PIECE_BYTES, which a pipe accepts without blocking once
 * poll(2) reports it writable.
 *
 * Memory   log_writer_new() allocates the ring; a put allocates nothing.
 * Threads  any, except _new, _start, _stop and _free: one thread at a time.
 */
#ifndef WEIR_BASE_LOG_WRITER_H
#define WEIR_BASE_LOG_WRITER_H

#include "base/attr.h"
#include "base/str.h"

#define LOG_WRITER_PIECE_BYTES (4 * KIB)
#define LOG_WRITER_NOTE_BYTES 512

/* Write the line that reports `dropped` lines into `room` and return its length in bytes.
 * Called on the writer's thread. */
typedef size_t log_writer_note_fn(unsigned long long dropped, char room[LOG_WRITER_NOTE_BYTES]);

struct log_writer;

/* The caller keeps ownership of fd. */
struct log_writer *log_writer_new(int fd, size_t ring_bytes, log_writer_note_fn *note);

/* Accepts NULL. A thread that log_writer_stop() had to abandon keeps the memory. */
void log_writer_free(struct log_writer *writer);

/* False: no thread could be created; puts are refused. */
MUST_CHECK bool log_writer_start(struct log_writer *writer);

/* Write the remaining lines first, unless the reader takes none of them for longer than
 * within_ms. A descriptor that is ready gets up to five seconds more: then the machine is slow. */
void log_writer_stop(struct log_writer *writer, unsigned within_ms);

/* False: no thread runs; the line was neither taken nor counted. */
MUST_CHECK bool log_writer_put(struct log_writer *writer, struct str line);

/* Wait until every line has been written. False: that took longer than within_ms. */
bool log_writer_flush(struct log_writer *writer, unsigned within_ms);

/* Number of lines dropped so far, because the ring was full or the descriptor failed. */
unsigned long long log_writer_dropped(struct log_writer *writer);

/* Write without a thread, for at most within_ms. False: not everything was written. */
bool log_write_within(int fd, struct str bytes, unsigned within_ms);

#endif
