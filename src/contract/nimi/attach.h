/* attach: read the uploaded pictures that a prompt refers to and put them into it.
 *
 * Memory   borrows the prompt, its arena and the caller's names until it has called back.
 * Threads  the loop it was started on.
 * Source   contracts/nimi.md 1.3 ChatContentArtifactRef, 6.2 last paragraph.
 */
#ifndef WEIR_CONTRACT_NIMI_ATTACH_H
#define WEIR_CONTRACT_NIMI_ATTACH_H

#include "contract/nimi/prompt.h"
#include "store/upload.h"

/* Called once, never before attach_start() returns. `fault` is NULL when every picture is in
 * the prompt. Otherwise it is one of:
 *
 *     AI_INPUT_INVALID            no such artifact of this app and subject, or too large
 *     AI_MODALITY_NOT_SUPPORTED   an artifact is not a picture
 *     AI_PROVIDER_UNAVAILABLE     the store cannot be read */
typedef void attach_done_fn(const struct fault *fault, void *ctx);

struct attach;

struct attach_options {
    struct loop *loop;
    struct store *store; /* NULL: there are no uploads */
    struct str app, subject;
    struct prompt *prompt; /* with at least one artifact */
    struct arena *arena;   /* the prompt's */
    attach_done_fn *done;
    void *ctx;
};

struct attach *attach_start(const struct attach_options *options);

/* No callback afterwards. NULL is fine. */
void attach_cancel(struct attach *attach);

#endif
