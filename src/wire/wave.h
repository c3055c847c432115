/* wave: sound in a RIFF/WAVE file, 16 bits a sample.
 *
 *     "RIFF" length "WAVE"  { "fmt " length format }  ... { "data" length samples }
 *
 * What is read may have been streamed: whoever wrote the head before the sound could not know
 * its length, so the samples go on to the end of the bytes when the head promises more. What is
 * written always tells the right length. All numbers are little-endian.
 *
 * Memory   borrows what is read; appends to the caller's buffer.
 * Threads  none; values only.
 * Source   Multimedia Programming Interface and Data Specifications 1.0 (IBM, Microsoft, 1991),
 *          "WAVE".
 */
#ifndef WEIR_WIRE_WAVE_H
#define WEIR_WIRE_WAVE_H

#include "base/buf.h"
#include "base/err.h"

#define WAVE_HEAD_BYTES 44 /* of what wave_append_head() writes */
#define WAVE_SAMPLE_BYTES 2

struct wave {
    uint32_t sample_rate_hz; /* at least 1 */
    unsigned channels;       /* at least 1 */
    struct str samples;      /* whole ones of all channels; borrowed */
};

/* errors  ERR_MALFORMED it is no such file, or ends inside its head
 *         ERR_UNIMPLEMENTED its samples are compressed, or not of 16 bits */
MUST_CHECK bool wave_read(struct str bytes, struct wave *ret, struct err *e);

/* Append the head of a file whose samples follow. */
void wave_append_head(struct buf *out, const struct wave *wave);

/* Append the sound of one channel as if it had been sampled at `rate_hz`: each new sample lies
 * on the straight line between its two old neighbours. Nothing is filtered, so going down
 * folds what is too high for the new rate; for speech that is a slight hiss. Stops at the limit
 * of `out`. */
void wave_resample(const struct wave *from, uint32_t rate_hz, struct buf *out);

/* How long it lasts, rounded down. */
int64_t wave_duration_ms(const struct wave *wave);

#endif
