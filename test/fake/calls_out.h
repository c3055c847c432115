/* calls_out: the calls that a fake was asked for and that are not over, the oldest first. */
#ifndef WEIR_TEST_FAKE_CALLS_OUT_H
#define WEIR_TEST_FAKE_CALLS_OUT_H

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define CALLS_OUT_MAX 64

struct calls_out {
    void *calls[CALLS_OUT_MAX];
    size_t count, ever; /* now; and how many there ever were */
};

static inline void calls_out_add(struct calls_out *out, void *call) {
    assert(out->count < CALLS_OUT_MAX);
    out->calls[out->count++] = call;
    out->ever++;
}

static inline void calls_out_remove(struct calls_out *out, const void *call) {
    size_t at = 0;
    while (out->calls[at] != call) {
        at++;
        assert(at < out->count);
    }
    out->count--;
    memmove(&out->calls[at], &out->calls[at + 1], (out->count - at) * sizeof(void *));
}

static inline void *calls_out_at(const struct calls_out *out, size_t index) {
    assert(index < out->count);
    return out->calls[index];
}

#endif
