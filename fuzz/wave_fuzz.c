/* Any bytes as a WAVE file: what is read consists of whole samples inside the bytes, is read
 * again as the same when it was written, and lasts as long at another rate. The first byte
 * chooses the rate. */
#include "wire/wave.h"

#include <assert.h>

static void rewrite(const struct wave *wave) {
    struct err e;
    struct wave again;
    struct buf out;
    buf_init(&out, WAVE_HEAD_BYTES + wave->samples.len);
    wave_append_head(&out, wave);
    assert(out.len == WAVE_HEAD_BYTES);
    buf_append(&out, wave->samples);
    assert(buf_ok(&out));
    assert(wave_read(buf_str(&out), &again, &e));
    assert(again.sample_rate_hz == wave->sample_rate_hz && again.channels == wave->channels);
    assert(str_equal(again.samples, wave->samples));
    buf_done(&out);
}

static void resample(const struct wave *wave, uint32_t rate_hz) {
    struct buf out;
    uint64_t count = wave->samples.len / WAVE_SAMPLE_BYTES;
    buf_init(&out, 64 * KIB);
    wave_resample(wave, rate_hz, &out);
    uint64_t expected = WAVE_SAMPLE_BYTES * (count * rate_hz / wave->sample_rate_hz);
    assert(buf_ok(&out) ? out.len == expected : expected > 64 * KIB);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint32_t rates[] = {1, 4000, 8000, 22050, 44100, 192000, UINT32_MAX};
    if (size < 1) return 0;
    struct str bytes = str_of(data + 1, size - 1);
    struct wave wave;
    struct err e;
    if (!wave_read(bytes, &wave, &e)) {
        assert(e.code == ERR_MALFORMED || e.code == ERR_UNIMPLEMENTED);
        return 0;
    }
    assert(wave.channels && wave.sample_rate_hz);
    assert(wave.samples.len % (WAVE_SAMPLE_BYTES * wave.channels) == 0);
    assert(wave.samples.at >= bytes.at &&
           wave.samples.at + wave.samples.len <= bytes.at + bytes.len);
    assert(wave_duration_ms(&wave) >= 0);
    rewrite(&wave);
    if (wave.channels == 1) resample(&wave, rates[data[0] % ARRAY_LEN(rates)]);
    return 0;
}
