/* media_local: speech and vectors of this machine, without a key and without a network.
 *
 *     espeak-ng   speech, by the program of that name, which must be installed
 *     hash-256    vectors of hashing.h: lexical, not semantic
 *
 * espeak-ng is only ever run as a child process, never linked: its library has one state for
 * the whole process, and is under the GPL. The text reaches it through its standard input, so
 * that one that begins with '-' is no option; markup is spoken as it stands; its own commands
 * inside a text (control characters, "[[") are taken out.
 *
 * What it can: "wav" (audio/wav) and "pcm" (audio/pcm: little-endian, signed, 16 bits), one
 * channel. Another rate than the voice's own is resampled (wire/wave.h). Speed 1 is 175 words a
 * minute, 80 to 450 can be had; pitch is exact within 12 semitones up and down and stays there
 * beyond; volume ends at 2.
 *
 * Its voices are asked for once, on a thread, as soon as there is such a media; who needs them
 * earlier than they are there waits, at most LOCAL_VOICES_MS.
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

/* Where espeak-ng stands, for `weir doctor`; as child_find(). */
struct buf;
MUST_CHECK bool media_local_find(struct buf *ret);

#endif
