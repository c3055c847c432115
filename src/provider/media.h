/* media: providers of speech, images, transcripts and embeddings.
 *
 * A kind is one file that fills struct media_kind, as in provider.h. A call sends one request
 * and reports complete results (artifacts, a text, or vectors), then the usage if the provider
 * reports it, and then exactly one ending.
 *
 *     start ─▶ REPLY_ARTIFACT | TEXT | VECTOR ... ─▶ REPLY_USAGE? ─▶ REPLY_DONE | FAILED
 *
 * Memory   the caller owns the request and everything it points to, and keeps both alive until
 *          the ending or cancel(). An event is lent to the callback.
 * Threads  a call belongs to one loop; struct media itself is read-only and shared.
 * Source   contracts/nimi.md 1.3, 1.5, 6.2.
 */
#ifndef WEIR_PROVIDER_MEDIA_H
#define WEIR_PROVIDER_MEDIA_H

#include "base/err.h"
#include "base/units.h"
#include "loop/loop.h"
#include "wire/reply_event.h"
#include "wire/trace_context.h"

#define MEDIA_ARTIFACT_MAX_BYTES (16 * MIB) /* as store/artifact.h keeps them */

enum media_task {
    MEDIA_SPEECH,     /* text ─▶ one artifact, audio */
    MEDIA_EMBEDDING,  /* inputs ─▶ one vector each */
    MEDIA_IMAGE,      /* text ─▶ `count` artifacts, images */
    MEDIA_TRANSCRIPT, /* bytes ─▶ text */
    MEDIA_TASKS
};

struct media_request {
    enum media_task task;
    struct str model; /* as the provider calls it */
    struct str text;  /* speech: the text; image: the prompt; transcript: a hint */
    /* For speech and transcripts. */
    struct str language; /* "en", "de-AT"; empty: the provider chooses */
    struct str voice;    /* empty: a voice for the language */
    struct str format;   /* speech: "wav", "pcm", "mp3", ...; empty: "wav". image: "png", ... */
    int64_t sample_rate_hz;      /* 0: the provider's default */
    double speed, pitch, volume; /* 0: not set. Factors, and semitones for pitch */
    /* For embeddings. */
    const struct str *inputs;
    size_t input_count;
    /* How many numbers a vector is to have, of models that can make shorter ones; 0: as many as
     * the model makes. Other models make theirs all the same. */
    int64_t dimensions;
    /* For transcripts. */
    struct str bytes, content_type;
    /* For images. */
    int64_t count; /* 0: one */
    struct str size, quality, style, negative;
    uint64_t total_ms;                 /* 0: no limit for this request */
    const struct trace_context *trace; /* to pass on; NULL: there is none */
};

/* A voice that a speech request may name. */
struct media_voice {
    struct str id, name;
    struct str language; /* the first one it speaks, "en-gb" */
    struct str gender;   /* "male", "female", or empty */
};

struct media_call; /* defined by each kind */
struct media;

struct media_kind {
    const char *name; /* "local", "openai" */
    unsigned tasks;   /* supported tasks: a set of 1 << enum media_task */
    /* on_reply as in provider.h. */
    struct media_call *(*start)(struct media *media, struct loop *loop,
                                const struct media_request *request, reply_event_fn *on_reply,
                                void *ctx);
    void (*cancel)(struct media_call *call);
    /* All voices of `model`; they live as long as `media`. NULL: none are known. */
    const struct media_voice *(*voices)(struct media *media, struct str model,
                                        size_t *ret_count);
    void (*free)(struct media *media);
    /* Check that the request is supported (format, sample rate, language) before the caller is
     * promised an answer. NULL: such a request fails with REPLY_FAILED instead.
     * errors  ERR_INVALID_ARGUMENT what is not supported, and what is */
    bool (*check)(struct media *media, const struct media_request *request, struct err *e);
};

/* The first member of every kind's own struct. */
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
