/* job_shown: a job, or another message with its artifacts, as a caller gets it: with the bytes of
 * the artifacts.
 *
 * Artifacts that fit are put into the message. The others get a URL (fetch.h), or a note in
 * their metadata that says why they have neither. A video is never put into the message if it
 * is larger than a mebibyte or has a URL of its own.
 *
 * Memory   owns a copy of the message and the bytes it adds, until job_shown_free().
 * Threads  the call's loop.
 * Source   contracts/nimi.md 6.2 "completed".
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_JOB_SHOWN_H
#define WEIR_CONTRACT_NIMI_JOB_JOB_SHOWN_H

#include "contract/nimi/call.h"
#include "contract/nimi/job/job_fold.h"

#define JOB_MESSAGE_MAX_BYTES (4 * MIB - 64 * KIB) /* the SDK's limit is 4 MiB */

struct job_shown;

/* A type of message that has artifacts, and the offsets of its list of them. */
struct job_shown_kind {
    const struct pb_message *type;
    size_t artifacts, count;
};

/* Called once, later. `message` is the copy. failed: the store cannot read the bytes now, or the
 * memory for them is used up. A missing artifact is not a failure. */
typedef void job_shown_fn(const void *message, const struct err *failed, void *ctx);

/* The artifacts are those of `app`. NULL: the message has no room in a reply. */
struct job_shown *job_shown_new(struct nimi_call *call, struct str app,
                                const struct job_shown_kind *kind, const void *message,
                                job_shown_fn *shown, void *ctx);

/* The job in the fold. NULL: there is nothing to add to it. */
struct job_shown *job_shown_start(struct nimi_call *call, const struct job_fold *fold,
                                  job_shown_fn *shown, void *ctx);
void job_shown_free(struct job_shown *shown); /* no callback afterwards; NULL is fine */

#endif
