/* speaker: the program that speaks, and what it can.
 *
 * Memory   owns its copies. Voices live as long as the speaker.
 * Threads  any, except new and free.
 */
#ifndef WEIR_PROVIDER_SPEAKER_H
#define WEIR_PROVIDER_SPEAKER_H

#include "loop/child.h"
#include "provider/voices.h"

struct speaker;

/* As media_local_options has them. */
struct speaker *speaker_new(struct str program, struct str path);
void speaker_free(struct speaker *speaker); /* NULL is fine; ends a listing that runs */

/* errors  ERR_UNAVAILABLE it is not installed, or does not say what voices it has
 * blocks  while they are listed, at most LOCAL_VOICES_MS */
MUST_CHECK bool speaker_voices(struct speaker *speaker, const struct voices **ret,
                               struct err *e);

/* How the program is run so that it says a text. */
struct speaker_order {
    struct str file; /* of the voice */
    char speed[8], pitch[8], volume[8];
};

/* errors  ERR_INVALID_ARGUMENT, ERR_NOT_FOUND what the request asks for cannot be had, and what
 *         can; those of speaker_voices() */
MUST_CHECK bool speaker_order(struct speaker *speaker, const struct media_request *request,
                              struct speaker_order *ret, struct err *e);

#define SPEAKER_RATE_HZ 22050 /* of its voices; one channel, two bytes a sample */

/* Whether `text` lasts longer than so many seconds, at the speed of the request and whoever
 * says it. It errs on the side of false: a text that it lets pass may still last longer. */
bool speaker_outlasts(const struct media_request *request, uint64_t seconds);

/* Append `text` without what the program would take for commands. */
void speaker_append_text(struct str text, struct buf *out);

/* Only with an order of its own making.
 * errors  those of child_start() */
MUST_CHECK bool speaker_start(struct speaker *speaker, struct loop *loop,
                              const struct speaker_order *order, struct str text,
                              const struct child_sink *sink, void *ctx, struct child **ret,
                              struct err *e);

#endif
