/* media_local: speech and embeddings made on this machine, without a key or a network.
 *
 *     espeak-ng   speech, by the program of that name, which must be installed
 *     hash-256    the vectors of hashing.h: lexical, not semantic
 *
 * espeak-ng is run as a child process and never linked: its library keeps one state for the
 * whole process, and it is under the GPL. The text goes to its standard input, so a text that
 * begins with '-' is not taken as an option. Markup is spoken literally. espeak-ng's own
 * commands inside a text (control characters, "[[") are removed.
 *
 * Formats: "wav" (audio/wav) and "pcm" (audio/pcm: little-endian, signed, 16 bits), with one
 * channel. A sample rate other than the voice's own is resampled (wire/wave.h). Speed 1 is 175
 * words per minute; the range is 80 to 450 words. Pitch is exact within 12 semitones up and
 * down, and clamped beyond. Volume is at most 2.
 *
 * media_local_new() starts one thread that lists the voices. A caller that needs them before
 * they are ready waits at most LOCAL_VOICES_MS.
 *
 * Memory   the options are copied.
 * Threads  as media.h. media_free() ends the thread, and waits for it.
 * Source   espeak-ng(1); contracts/nimi.md 6.2 for the limits.
 */
#ifndef WEIR_PROVIDER_MEDIA_LOCAL_H
#define WEIR_PROVIDER_MEDIA_LOCAL_H

#include "provider/media.h"

#define LOCAL_SPEECH_MODEL "espeak-ng"
#define LOCAL_EMBEDDING_MODEL "hash-256"
#define LOCAL_VOICES_MS 5000

#define LOCAL_RATE_MIN_HZ 4000
#define LOCAL_RATE_MAX_HZ 192000

struct media_local_options {
    struct str name;    /* as configured */
    struct str program; /* empty: "espeak-ng" */
    struct str path;    /* where to look for it, as $PATH; at NULL: $PATH */
};

struct media *media_local_new(const struct media_local_options *options);

/* The path of espeak-ng, for `weir doctor`; like child_find(). */
struct buf;
MUST_CHECK bool media_local_find(struct buf *ret);

#endif
