/* delivery_file: the file of events that wait for the platform.
 *
 * Lines are appended: an event with its number, or the number of one that was delivered. What
 * is read back are the events without such a line. A line that was cut by a crash is ignored;
 * its event was never acknowledged. When the file has grown far beyond what waits, it is
 * rewritten beside itself and renamed. It never grows past DELIVERY_FILE_MAX_BYTES, so the
 * next process can always load it.
 *
 *     {"id":"5f0c...-7","path":"/api/v1/costs","body":{...}}
 *     {"id":"5f0c...-8","path":"/api/v1/audit","once":true,"body":{...}}
 *     {"sent":"5f0c...-7"}
 *
 * Memory   the caller's buffers.
 * Threads  any, one at a time; everything here blocks.
 * Source   contracts/agentbreeder.md 4.4.
 */
#ifndef WEIR_SIDECAR_DELIVERY_FILE_H
#define WEIR_SIDECAR_DELIVERY_FILE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"

#define DELIVERY_FILE_MAX_BYTES (64 * MIB)

/* What a line needs beside the path and the body of its event, at most. */
#define DELIVERY_LINE_MORE_BYTES 128
#define DELIVERY_ID_MAX_BYTES 40

struct delivery_file {
    int fd; /* -1: none */
    struct text path;
    uint64_t bytes;
};

struct delivery_line {
    struct str id;   /* letters, digits and hyphens */
    struct str path; /* empty: `id` was delivered */
    struct str body; /* JSON */
    bool once;       /* it is dropped after one attempt that failed */
};

/* Open or make the file, lock it, and read it whole into `text`.
 * errors  ERR_UNAVAILABLE it cannot be opened, or another process has it; ERR_TOO_LARGE */
MUST_CHECK bool delivery_file_open(struct delivery_file *file, struct str path,
                                   struct buf *text, struct err *e);
void delivery_file_close(struct delivery_file *file);

/* Append lines and sync. After a failure nothing of them may count.
 * errors  ERR_UNAVAILABLE the disk is full, or broken; ERR_RESOURCE_EXHAUSTED the file is */
MUST_CHECK bool delivery_file_append(struct delivery_file *file, struct str lines,
                                     struct err *e);

/* Replace the contents. errors  as above; the old contents are kept */
MUST_CHECK bool delivery_file_replace(struct delivery_file *file, struct str lines,
                                      struct err *e);

/* One line, without its end. False: it is not one of ours. Texts are views. */
MUST_CHECK bool delivery_line_read(struct str line, struct delivery_line *ret);
void delivery_line_write(const struct delivery_line *line, struct buf *out);

#endif
