/* tape: a folder of recorded calls to models and tools.
 *
 * While it records, each call becomes one file, complete or absent: written beside, synced and
 * only then named, for its owner's eyes alone. While it plays, all its files are in memory, and
 * a call is answered by the recording whose request is the same; several of one request are
 * served in the order in which they were recorded, and the last of them again and again.
 *
 *     model-manager-3f0c9a51b2d4-1.json      kind, agent or tool, hash of the request, which
 * one
 *
 * Memory   reference-counted: a call that is being written holds on to it.
 * Threads  opening, writing and finding block or compute: from a worker, or before the loops
 *          run. References are taken and dropped on any thread.
 * Source   docs/internals/tape.md.
 */
#ifndef WEIR_TAPE_TAPE_H
#define WEIR_TAPE_TAPE_H

#include "tape/call.h"

#define TAPE_FILE_MAX_BYTES (64 * MIB)
#define TAPE_ALL_MAX_BYTES (1024 * MIB)

/* The reason of a call that no recording answers. */
#define REPLAY_MISS "REPLAY_MISS"

enum tape_pace {
    TAPE_AT_ONCE,
    TAPE_REAL, /* each event at its own moment */
};

struct tape_options {
    struct str folder;
    const struct str *secrets; /* copied; empty ones and short ones hide nothing */
    size_t secret_count;
    enum tape_pace pace;
};

struct tape;

/* Make the folder if there is none; what it holds stays.
 * errors  what keeps files from being made in it */
MUST_CHECK bool tape_record(const struct tape_options *options, struct tape **ret,
                            struct err *e);

/* Read all recordings of the folder.
 * errors  ERR_NOT_FOUND there are none; a file that is none or newer, by its name */
MUST_CHECK bool tape_play(const struct tape_options *options, struct tape **ret, struct err *e);

struct tape *tape_ref(struct tape *tape);
void tape_unref(struct tape *tape); /* accepts NULL */

bool tape_plays(const struct tape *tape);
enum tape_pace tape_pace(const struct tape *tape);

/* When a call begins, in microseconds since 1970; never the same twice. */
int64_t tape_stamp(struct tape *tape);

/* Write one call. The first that fails is told in the log, once for the folder.
 * errors  ERR_UNAVAILABLE, ERR_TOO_LARGE: it is absent */
bool tape_write(struct tape *tape, const struct tape_call *call, struct err *e);

/* A call cannot be written: tell it in the log, the first time. */
void tape_warn(struct tape *tape, const struct err *why);

/* The recording that answers `request`, a JSON object with whatever secrets it has.
 * errors  ERR_NOT_FOUND: no recording does; which is nearest, and where they differ */
MUST_CHECK bool tape_find(struct tape *tape, enum tape_kind kind, struct str request,
                          const struct tape_call **ret, struct err *e);

#endif
