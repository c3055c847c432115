/* wave: sound in a RIFF/WAVE file, 16 bits per sample.
 *
 *     "RIFF" length "WAVE"  { "fmt " length format }  ... { "data" length samples }
 *
 * A file that was streamed may promise more samples than it holds, because its header was
 * written before the length was known. Its samples then extend to the end of the bytes. Files
 * written here always state the right length. All numbers are little-endian.
 *
 * Memory   borrows what is read; appends to the caller's buffer.
 * Threads  none; values only.
 * Source   Multimedia Programming Interface and Data Specifications 1.0 (IBM, Microsoft, 1991),
 *          "WAVE". */
#ifndef WEIR_WIRE_WAVE_H
#define WEIR_WIRE_WAVE_H

#include "base/buf.h"
#include "base/err.h"

#define WAVE_HEAD_BYTES 44 /* size of what wave_append_head() writes */
#define WAVE_SAMPLE_BYTES 2

struct wave {
    uint32_t sample_rate_hz; /* at least 1 */
    unsigned channels;       /* at least 1 */
    struct str samples;      /* whole samples of all channels; borrowed */
};

/* errors  ERR_MALFORMED not a WAVE file, or cut inside its header
 *         ERR_UNIMPLEMENTED samples are compressed, or not 16 bits */
MUST_CHECK bool wave_read(struct str bytes, struct wave *ret, struct err *e);

/* Append the header of a file; its samples follow. */
void wave_append_head(struct buf *out, const struct wave *wave);

/* Append the sound of one channel resampled to `rate_hz` by linear interpolation. There is no
 * low-pass filter, so lowering the rate causes aliasing; for speech that is a slight hiss.
 * Stops at the limit of `out`. */
void wave_resample(const struct wave *from, uint32_t rate_hz, struct buf *out);

/* Duration, rounded down. */
int64_t wave_duration_ms(const struct wave *wave);

#endif
