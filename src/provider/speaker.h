/* speaker: the speech program and its abilities.
 *
 * Memory   owns its copies. Voices live as long as the speaker.
 * Threads  any, except new and free.
 */
#ifndef WEIR_PROVIDER_SPEAKER_H
#define WEIR_PROVIDER_SPEAKER_H

#include "loop/child.h"
#include "provider/voices.h"

struct speaker;

/* The arguments are those of media_local_options. */
struct speaker *speaker_new(struct str program, struct str path);
void speaker_free(struct speaker *speaker); /* accepts NULL; ends a running listing */

/* errors  ERR_UNAVAILABLE the program is not installed, or does not list its voices
 * blocks  while they are listed, at most LOCAL_VOICES_MS */
MUST_CHECK bool speaker_voices(struct speaker *speaker, const struct voices **ret,
                               struct err *e);

/* The arguments with which the program speaks a text. */
struct speaker_order {
    struct str file; /* of the voice */
    char speed[8], pitch[8], volume[8];
};

/* errors  ERR_INVALID_ARGUMENT, ERR_NOT_FOUND what is not available, and what is; those of
 *         speaker_voices() */
MUST_CHECK bool speaker_order(struct speaker *speaker, const struct media_request *request,
                              struct speaker_order *ret, struct err *e);

#define SPEAKER_RATE_HZ 22050 /* of its voices; one channel, two bytes a sample */

/* Whether `text` lasts longer than `seconds` at the request's speed, with any voice. It errs on
 * the side of false: the text may last longer even then. */
bool speaker_outlasts(const struct media_request *request, uint64_t seconds);

/* Append `text` without anything the program would treat as a command. */
void speaker_append_text(struct str text, struct buf *out);

/* `order` must come from speaker_order().
 * errors  those of child_start() */
MUST_CHECK bool speaker_start(struct speaker *speaker, struct loop *loop,
                              const struct speaker_order *order, struct str text,
                              const struct child_sink *sink, void *ctx, struct child **ret,
                              struct err *e);

#endif
