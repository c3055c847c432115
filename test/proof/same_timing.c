/* same_timing: can the time of a comparison tell how much of a secret was right?
 *
 * Two classes of input are compared with one secret in random order: the secret itself, and
 * random bytes. Each comparison is timed with the processor's counter; Welch's t-test says
 * whether the two classes differ, over all measurements and over those below a number of
 * percentiles, since interrupts make the slow end noise. The largest |t| must stay below 5.
 * memcmp() is measured the same way, to show that the method would notice.
 *
 * Exit status 0 when same_bytes() and same_secret() pass. Not part of the tests: a measurement
 * needs a quiet machine. It links with the library alone.
 *
 * Source  Reparaz, Balasch and Verbauwhede, "Dude, is my code constant time?", 2017.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "base/same.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MEASUREMENTS 1000000
#define SECRET_BYTES 32
#define INNER_RUNS 4 /* comparisons in one measurement, above the counter's own grain */
#define T_MAX 5.0
#define CUTS 20

static uint64_t ticks(void) {
#if defined(__x86_64__)
    uint32_t low, high, core;
    __asm__ volatile("lfence\n\trdtscp\n\tlfence"
                     : "=a"(low), "=d"(high), "=c"(core)::"memory");
    return (uint64_t)high << 32 | low;
#else
    return clock_mono_us();
#endif
}

static uint64_t next_random(void) {
    static uint64_t seed = 88172645463325252u;
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

typedef bool compare_fn(const void *given, const void *secret, size_t len);

static bool by_same_secret(const void *given, const void *secret, size_t len) {
    return same_secret(str_of(given, len), str_of(secret, len));
}

static bool by_memcmp(const void *given, const void *secret, size_t len) {
    return memcmp(given, secret, len) == 0;
}

struct sample {
    uint32_t ticks;
    bool random;
};

/* Inputs are made before the clock runs, and without a branch on their class: what the
 * processor remembers of the making must be the same for both. */
#define BATCH 500

static void make_batch(const unsigned char *secret, unsigned char given[BATCH][SECRET_BYTES],
                       struct sample *samples) {
    for (size_t i = 0; i < BATCH; i++) {
        samples[i].random = next_random() >> 40 & 1;
        unsigned char keep_noise = (unsigned char)(0 - samples[i].random);
        for (size_t at = 0; at < SECRET_BYTES; at++) {
            unsigned char noise = (unsigned char)(next_random() >> 32);
            given[i][at] = (unsigned char)(secret[at] ^ ((noise ^ secret[at]) & keep_noise));
        }
    }
}

static void measure(compare_fn *compare, struct sample *samples) {
    static unsigned char given[BATCH][SECRET_BYTES];
    unsigned char secret[SECRET_BYTES];
    for (size_t i = 0; i < SECRET_BYTES; i++) secret[i] = (unsigned char)next_random();
    compare_fn *volatile opaque = compare; /* no inlining: both classes run the same code */
    volatile bool matches;
    for (size_t begin = 0; begin < MEASUREMENTS; begin += BATCH) {
        make_batch(secret, given, samples + begin);
        for (size_t i = 0; i < BATCH; i++) {
            uint64_t from = ticks();
            for (int run = 0; run < INNER_RUNS; run++)
                matches = opaque(given[i], secret, SECRET_BYTES);
            uint64_t took = ticks() - from;
            samples[begin + i].ticks = took > UINT32_MAX ? UINT32_MAX : (uint32_t)took;
        }
    }
    (void)matches;
}

static int by_ticks(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Welch's t over the samples of at most `most` ticks. */
static double welch_t(const struct sample *samples, uint32_t most) {
    double count[2] = {0}, mean[2] = {0}, squares[2] = {0};
    for (size_t i = 0; i < MEASUREMENTS; i++) {
        if (samples[i].ticks > most) continue;
        int class = samples[i].random;
        double delta = samples[i].ticks - mean[class];
        count[class]++;
        mean[class] += delta / count[class];
        squares[class] += delta * (samples[i].ticks - mean[class]);
    }
    if (count[0] < 1000 || count[1] < 1000) return 0;
    double variance = squares[0] / (count[0] - 1) / count[0];
    variance += squares[1] / (count[1] - 1) / count[1];
    return variance > 0 ? (mean[0] - mean[1]) / sqrt(variance) : 0;
}

static double largest_t(const struct sample *samples) {
    uint32_t *sorted = mem_alloc(MEASUREMENTS * sizeof(*sorted));
    for (size_t i = 0; i < MEASUREMENTS; i++) sorted[i] = samples[i].ticks;
    qsort(sorted, MEASUREMENTS, sizeof(*sorted), by_ticks);
    double largest = fabs(welch_t(samples, UINT32_MAX));
    for (int cut = 1; cut <= CUTS; cut++) {
        /* Closer together towards the fast end, where there is the least noise. */
        double part = 1 - pow(0.5, 10.0 * cut / CUTS);
        uint32_t most = sorted[(size_t)(part * (MEASUREMENTS - 1))];
        double t = fabs(welch_t(samples, most));
        if (t > largest) largest = t;
    }
    free(sorted);
    return largest;
}

int main(void) {
    static const struct {
        const char *name;
        compare_fn *compare;
        bool must_pass;
    } subjects[] = {
        {"same_bytes", same_bytes, true},
        {"same_secret", by_same_secret, true},
        {"memcmp", by_memcmp, false},
    };
    struct sample *samples = mem_zero(MEASUREMENTS, sizeof(*samples));
    bool passed = true;
    for (size_t i = 0; i < ARRAY_LEN(subjects); i++) {
        measure(subjects[i].compare, samples); /* once to warm up */
        measure(subjects[i].compare, samples);
        double t = largest_t(samples);
        const char *verdict = t < T_MAX ? "constant" : "tells";
        printf("%-12s max |t| = %8.2f over %d measurements: %s\n", subjects[i].name, t,
               MEASUREMENTS, verdict);
        if (subjects[i].must_pass) passed = passed && t < T_MAX;
    }
    free(samples);
    return passed ? 0 : 1;
}
