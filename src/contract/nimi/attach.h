/* attach: reads the uploaded pictures that a prompt refers to, and puts them in.
 *
 * Memory   borrows the prompt, its arena and who asks until it has called back.
 * Threads  the loop that it was started on.
 * Source   contracts/nimi.md 1.3 ChatContentArtifactRef, 6.2 last paragraph.
 */
#ifndef WEIR_CONTRACT_NIMI_ATTACH_H
#define WEIR_CONTRACT_NIMI_ATTACH_H

#include "contract/nimi/prompt.h"
#include "store/upload.h"

/* Once, never before the start returns. `fault`: why not, or NULL: all are there, and the
 * prompt lacks none any more. AI_INPUT_INVALID            no such artifact of this app and
 * subject, or they are too large AI_MODALITY_NOT_SUPPORTED   one is no picture
 * AI_PROVIDER_UNAVAILABLE     the store cannot be read */
typedef void attach_done_fn(const struct fault *fault, void *ctx);

struct attach;

struct attach_options {
    struct loop *loop;
    struct store *store; /* NULL: nothing can have been uploaded */
    struct str app, subject;
    struct prompt *prompt; /* with one artifact at least */
    struct arena *arena;   /* the prompt's */
    attach_done_fn *done;
    void *ctx;
};

struct attach *attach_start(const struct attach_options *options);

/* It will not call back. NULL is fine. */
void attach_cancel(struct attach *attach);

#endif
