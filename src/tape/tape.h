/* tape: a directory of recorded calls to models and tools.
 *
 * When recording, each call becomes one file that is either complete or absent: it is written
 * under a temporary name, synced, and then renamed. Only its owner may read it. When playing,
 * all files are in memory, and a call is answered by the recording with the same request.
 * Several recordings of one request are served in the order they were recorded; the last one
 * is repeated.
 *
 *     model-manager-3f0c9a51b2d4-1.json      kind, agent or tool, request hash, serial number
 *
 * Memory   reference-counted: a call that is being written holds a reference.
 * Threads  opening, writing and finding block or compute: from a worker, or before the loops
 *          run. References are taken and dropped on any thread.
 * Source   docs/internals/tape.md.
 */
#ifndef WEIR_TAPE_TAPE_H
#define WEIR_TAPE_TAPE_H

#include "loop/slots.h"
#include "tape/call.h"

#define TAPE_FILE_MAX_BYTES (64 * MIB)
#define TAPE_ALL_MAX_BYTES (1024 * MIB)

/* The failure reason of a call without a matching recording. */
#define REPLAY_MISS "REPLAY_MISS"

enum tape_pace {
    TAPE_AT_ONCE,
    TAPE_REAL, /* each event at its recorded time */
};

struct tape_options {
    struct str folder;
    const struct str *secrets; /* copied; empty and short ones are ignored */
    size_t secret_count;
    enum tape_pace pace;
};

struct tape;

/* Create the directory if there is none. Existing recordings stay.
 * errors  files cannot be created in it */
MUST_CHECK bool tape_record(const struct tape_options *options, struct tape **ret,
                            struct err *e);

/* Read all recordings in the directory.
 * errors  ERR_NOT_FOUND there are none; the error names a file that is not a recording, or
 *         has a newer version */
MUST_CHECK bool tape_play(const struct tape_options *options, struct tape **ret, struct err *e);

/* Read the recordings of one run in the directory of `of`, with the same secrets. `of` may record
 * meanwhile: files are complete or absent. Where it plays and has none of the run, all are read.
 * errors  as tape_play(); ERR_NOT_FOUND there are none of this run */
MUST_CHECK bool tape_play_run(const struct tape *of, uint64_t run, enum tape_pace pace,
                              struct tape **ret, struct err *e);

struct tape *tape_ref(struct tape *tape);
void tape_unref(struct tape *tape); /* accepts NULL */

/* A slot to read its folder with tape_play_run(): one reader at a time, because it takes a worker for
 * as long as there are recordings, and tools need the workers too. They live as long as the tape; a
 * reload opens the folder anew, with others. */
struct slots *tape_readers(const struct tape *tape);

bool tape_plays(const struct tape *tape);
enum tape_pace tape_pace(const struct tape *tape);

/* The start time of a call, in microseconds since 1970; unique. */
int64_t tape_stamp(struct tape *tape);

/* Write one call. Only the first failure per directory is logged.
 * errors  ERR_UNAVAILABLE, ERR_TOO_LARGE; the file is then absent */
bool tape_write(struct tape *tape, const struct tape_call *call, struct err *e);

/* A call cannot be written: log it, the first time only. */
void tape_warn(struct tape *tape, const struct err *why);

/* The recording that answers `request`, a JSON object whose secrets need not be hidden.
 * errors  ERR_NOT_FOUND none does; the text names the closest one and where it differs */
MUST_CHECK bool tape_find(struct tape *tape, enum tape_kind kind, struct str request,
                          const struct tape_call **ret, struct err *e);

#endif
