/* receive: UploadArtifact, an artifact that comes in as a stream of chunks.
 *
 *     queued ─▶ reading ⇄ writing
 *                  │ └──▶ checking ─▶ ending ─▶ over        each may be over at once: refused,
 *                  └────────────────────┘                   left, stopped
 *
 * It waits for one of eight slots, two an app, before it reads a chunk. What comes is gathered
 * until a piece of 1 MiB is there; while that is on its way to the store nothing is read, so
 * the caller's window fills and it has to wait. An upload therefore never holds more than one
 * chunk (4 MiB), what was gathered of it (5 MiB) and one piece (1 MiB): 10 MiB; all slots, 80
 * MiB.
 *
 * Memory   belongs to its call; the pieces to the store.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.5, 6.2 last paragraph, section 9 numbers 17 and 27.
 */
#ifndef WEIR_CONTRACT_NIMI_RECEIVE_H
#define WEIR_CONTRACT_NIMI_RECEIVE_H

#include "contract/nimi/call.h"

#define RECEIVE_CHUNK_MAX_BYTES (4 * MIB)
#define RECEIVE_WRAPPING_BYTES 64  /* what a chunk's message has beside its bytes, at most */
#define RECEIVE_IDLE_MS 60000      /* no chunk for so long: refused */
#define RECEIVE_TOTAL_MS 300000    /* the whole call */
#define RECEIVE_NAME_MAX_BYTES 512 /* of app_id, subject_user_id and display_name, each */
#define RECEIVE_TYPE_MAX_BYTES 128
#define RECEIVE_SLOTS 8
#define RECEIVE_SLOTS_PER_APP 2
#define RECEIVE_QUEUE_MAX 256

enum receive_state {
    RECEIVE_QUEUED,   /* waits for a slot */
    RECEIVE_READING,  /* waits for a chunk */
    RECEIVE_WRITING,  /* a piece is on its way to the store */
    RECEIVE_CHECKING, /* all has come; was it kept before, under this key? */
    RECEIVE_ENDING,   /* the last piece is on its way */
    RECEIVE_OVER,
    RECEIVE_STATE_COUNT,
};

bool receive_may_become(enum receive_state state, enum receive_state next);

/* Whether a media type may be uploaded: image, audio or video, well-formed. */
bool receive_type_is_allowed(struct str type);

nimi_begin_fn receive_begin;

#endif
