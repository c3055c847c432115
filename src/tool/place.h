/* place: where the files of workspaces are; each kind is a row.
 *
 *     start ─▶ done        (cancelled: done comes later, or never; see below)
 *
 * A folder of this machine (root.h), or a bucket of S3-compatible storage (object/). A file has the
 * same path in both: "workspaces/WORKSPACE/files/KEY".
 *
 * Memory   a move is the caller's, with all it names, until done.
 * Threads  the loop's.
 */
#ifndef WEIR_TOOL_PLACE_H
#define WEIR_TOOL_PLACE_H

#include "loop/job.h"
#include "object/bucket.h"
#include "tool/root.h"

#define PLACE_FILE_MAX_BYTES ROOT_FILE_MAX_BYTES

struct place_move;

/* Called once, never before place_start() has returned. errors as root.h and object/ask.h */
typedef void place_done_fn(struct place_move *move, const struct err *failed);

/* One file, read or written. */
struct place_move {
    struct loop *loop;
    struct str path; /* from root_path() */
    bool writes;
    struct str content, content_type; /* to write */
    struct buf bytes;                 /* read: its beginning, up to the buffer's limit */
    uint64_t size;                    /* read: of the whole file */
    struct buf type;                  /* read: as it was written; empty: not known */
    place_done_fn *done;
    struct file_place *place; /* the place's, as all below */
    struct job job;
    atomic_bool stop;
    struct err why;
    bool failed;
    struct str rest;
    struct object_get *get;
    struct object_put *put;
};

struct place_kind {
    void (*start)(struct place_move *move);
    /* True: done will not be called. False: it will be, soon. */
    bool (*cancel)(struct place_move *move);
};

/* Shared by the tools and the moves under way. */
struct file_place;

/* errors  as root_open() */
MUST_CHECK bool place_new_folder(struct str folder, struct file_place **ret, struct err *e);
/* The bucket outlives the place; NULL: no move will be made. */
struct file_place *place_new_bucket(struct bucket *bucket);
struct file_place *place_ref(struct file_place *place);
void place_unref(struct file_place *place); /* accepts NULL */

void place_start(struct file_place *place, struct place_move *move);
MUST_CHECK bool place_cancel(struct place_move *move);

/* --- for its kinds ------------------------------------------------------------------------ */

extern const struct place_kind place_folder, place_bucket;

struct file_place {
    const struct place_kind *kind;
    atomic_size_t refs;
    struct root *root;     /* of a folder */
    struct bucket *bucket; /* of a bucket */
};

#endif
