/* receive: UploadArtifact, which takes an artifact as a stream of chunks.
 *
 *     queued ─▶ reading ⇄ writing
 *                  └──▶ checking ─▶ ending ─▶ over          each may be over at once: refused,
 *                                                           left, stopped
 *
 * An upload waits for one of eight slots, at most two per app, before it reads a chunk. Bytes
 * are gathered into pieces of 1 MiB. While a piece is being written to the store nothing is
 * read, so the caller's window fills and the caller has to wait. An upload therefore never
 * holds more than one chunk (4 MiB), the bytes gathered from it (5 MiB) and one piece (1 MiB):
 * 10 MiB, or 80 MiB for all slots.
 *
 * Of uploads that arrive at once under one key, the first one that is complete is kept, and the
 * others wait for it (replies.h). If it is not kept after all, the next one is.
 *
 * Memory   the state belongs to its call, the pieces to the store.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.5, 6.2 last paragraph, section 9 numbers 17 and 27.
 */
#ifndef WEIR_CONTRACT_NIMI_UPLOAD_RECEIVE_H
#define WEIR_CONTRACT_NIMI_UPLOAD_RECEIVE_H

#include "base/states.h"
#include "contract/nimi/call.h"

#define RECEIVE_CHUNK_MAX_BYTES (4 * MIB)
#define RECEIVE_WRAPPING_BYTES 64  /* the most a chunk's message adds to its bytes */
#define RECEIVE_IDLE_MS 60000      /* refused if no chunk comes for this long */
#define RECEIVE_TOTAL_MS 300000    /* the whole call */
#define RECEIVE_NAME_MAX_BYTES 512 /* of app_id, subject_user_id and display_name, each */
#define RECEIVE_TYPE_MAX_BYTES 128
#define RECEIVE_SLOTS 8
#define RECEIVE_SLOTS_PER_APP 2
#define RECEIVE_QUEUE_MAX 256
#define RECEIVE_QUEUE_PER_APP 64

enum receive_state {
    RECEIVE_QUEUED,   /* waits for a slot */
    RECEIVE_READING,  /* waits for a chunk */
    RECEIVE_WRITING,  /* a piece is being written to the store */
    RECEIVE_CHECKING, /* all bytes are here; is it, or was it, stored under this key? */
    RECEIVE_ENDING,   /* the last piece is being written */
    RECEIVE_OVER,
    RECEIVE_STATE_COUNT,
};

extern const struct state receive_states[RECEIVE_STATE_COUNT];

/* Whether a media type may be uploaded: image, audio or video, well-formed. */
bool receive_type_is_allowed(struct str type);

nimi_begin_fn receive_begin;

#endif
