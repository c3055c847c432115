/* media: one question to a model whose answer is no conversation: speech, pictures, a
 * transcript, vectors.
 *
 * A kind is one file that fills struct media_kind, as with provider.h. A call asks once and
 * answers whole: what it made (artifacts, a text, vectors), usage where the provider tells it,
 * and then exactly one ending.
 *
 *     start ─▶ REPLY_ARTIFACT | TEXT | VECTOR ... ─▶ REPLY_USAGE? ─▶ REPLY_DONE | FAILED
 *
 * Memory   the request and all it points to stay the caller's and must live until the ending or
 *          media_call_cancel(). An event is lent to the callback.
 * Threads  a call belongs to one loop; the media itself is read-only and shared.
 * Source   contracts/nimi.md 1.3, 1.5, 6.2.
 */
#ifndef WEIR_PROVIDER_MEDIA_H
#define WEIR_PROVIDER_MEDIA_H

#include "base/err.h"
#include "base/units.h"
#include "loop/loop.h"
#include "wire/reply_event.h"

#define MEDIA_ARTIFACT_MAX_BYTES (16 * MIB) /* as store/artifact.h keeps them */

enum media_task {
    MEDIA_SPEECH,     /* text ─▶ one artifact, audio */
    MEDIA_EMBEDDING,  /* inputs ─▶ a vector each */
    MEDIA_IMAGE,      /* text ─▶ `count` artifacts, images */
    MEDIA_TRANSCRIPT, /* bytes ─▶ a text */
    MEDIA_TASKS
};

struct media_request {
    enum media_task task;
    struct str model; /* as the provider calls it */
    struct str text;  /* speech: what is said; image: what is drawn; transcript: a hint */
    /* Of speech and transcripts. */
    struct str language; /* "en", "de-AT"; empty: the provider's own choice */
    struct str voice;    /* empty: one for the language */
    struct str format;   /* speech: "wav", "pcm", "mp3", ...; empty: "wav". image: "png", ... */
    int64_t sample_rate_hz;      /* 0: the provider's own */
    double speed, pitch, volume; /* 0: not set. Factors, and semitones for pitch */
    /* Of an embedding. */
    const struct str *inputs;
    size_t input_count;
    /* Of a transcript. */
    struct str bytes, content_type;
    /* Of an image. */
    int64_t count; /* 0: one */
    struct str size, quality, style, negative;
    uint64_t total_ms; /* 0: no limit of its own */
};

/* A voice that speech may be asked in. */
struct media_voice {
    struct str id, name;
    struct str language; /* its first, "en-gb" */
    struct str gender;   /* "male", "female", or empty */
};

struct media_call; /* each kind's own */
struct media;

struct media_kind {
    const char *name; /* "local", "openai" */
    unsigned tasks;   /* which it can: a set of 1 << enum media_task */
    /* on_reply as in provider.h. */
    struct media_call *(*start)(struct media *media, struct loop *loop,
                                const struct media_request *request, reply_event_fn *on_reply,
                                void *ctx);
    void (*cancel)(struct media_call *call);
    /* Those of `model`, all of them; they live as long as the media. NULL: none are known. */
    const struct media_voice *(*voices)(struct media *media, struct str model,
                                        size_t *ret_count);
    void (*free)(struct media *media);
    /* Whether it can be asked so, before anything is promised to whoever asks: a format, a
     * rate, a language it does not have. NULL: REPLY_FAILED says it. errors
     * ERR_INVALID_ARGUMENT what it cannot, and what it can */
    bool (*check)(struct media *media, const struct media_request *request, struct err *e);
};

/* What every kind's own struct begins with. */
struct media {
    const struct media_kind *kind;
    struct str name; /* as configured */
};

static inline bool media_can(const struct media *media, enum media_task task) {
    return media && media->kind->tasks >> task & 1;
}

static inline bool media_check(struct media *media, const struct media_request *request,
                               struct err *e) {
    return !media->kind->check || media->kind->check(media, request, e);
}

static inline struct media_call *media_call_start(struct media *media, struct loop *loop,
                                                  const struct media_request *request,
                                                  reply_event_fn *on_reply, void *ctx) {
    return media->kind->start(media, loop, request, on_reply, ctx);
}

static inline void media_free(struct media *media) {
    if (media) media->kind->free(media);
}

#endif
