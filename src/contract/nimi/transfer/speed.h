/* speed: how fast something comes, from what has come by when.
 *
 *     sample, at most one each SPEED_STEP_MS ─▶ the newest SPEED_SAMPLES ─▶ bytes a second
 *
 * Memory   a plain value; zeroed is new.
 * Threads  none; the caller brings the time.
 */
#ifndef WEIR_CONTRACT_NIMI_TRANSFER_SPEED_H
#define WEIR_CONTRACT_NIMI_TRANSFER_SPEED_H

#include <stddef.h>
#include <stdint.h>

#define SPEED_STEP_MS 500
#define SPEED_SAMPLES 10 /* the last five seconds */

struct speed {
    struct {
        uint64_t at_ms;
        int64_t bytes;
    } samples[SPEED_SAMPLES];
    size_t count;
};

/* So many bytes have come by now. Fewer than before: it began again. */
void speed_note(struct speed *speed, uint64_t now_ms, int64_t bytes);

/* Bytes a second between the oldest sample and now; 0: not known. */
int64_t speed_now(const struct speed *speed, uint64_t now_ms, int64_t bytes);

/* Seconds until the rest is there, rounded up; 0: not known. */
int64_t speed_left_s(int64_t bytes_per_s, int64_t received, int64_t total);

#endif
