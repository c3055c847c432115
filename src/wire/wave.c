#include "wire/wave.h"

#include <assert.h>

enum { RIFF_HEAD_BYTES = 12, CHUNK_HEAD_BYTES = 8, FORMAT_BYTES = 16, FORMAT_PCM = 1 };

/* --- numbers ------------------------------------------------------------------------------ */

static uint32_t u16_at(struct str bytes, size_t at) {
    const unsigned char *p = (const unsigned char *)bytes.at + at;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t u32_at(struct str bytes, size_t at) {
    return u16_at(bytes, at) | u16_at(bytes, at + 2) << 16;
}

static void append_u16(struct buf *out, uint32_t number) {
    buf_append_byte(out, (char)(number & 0xff));
    buf_append_byte(out, (char)(number >> 8 & 0xff));
}

static void append_u32(struct buf *out, uint32_t number) {
    append_u16(out, number & 0xffff);
    append_u16(out, number >> 16);
}

/* --- reading ------------------------------------------------------------------------------ */

static bool cut_short(struct err *e) {
    return err_set(e, ERR_MALFORMED, "the sound ends inside its WAVE head");
}

static bool read_format(struct str chunk, struct wave *ret, struct err *e) {
    if (chunk.len < FORMAT_BYTES)
        return err_set(e, ERR_MALFORMED, "the format of this WAVE file is too short");
    uint32_t kind = u16_at(chunk, 0), channels = u16_at(chunk, 2), bits = u16_at(chunk, 14);
    uint32_t rate_hz = u32_at(chunk, 4);
    if (channels == 0 || rate_hz == 0)
        return err_set(e, ERR_MALFORMED, "this WAVE file has no channels, or no sample rate");
    if (kind != FORMAT_PCM || bits != 8 * WAVE_SAMPLE_BYTES)
        return err_set(e, ERR_UNIMPLEMENTED,
                       "this WAVE file has %u bits a sample in format %u; only PCM of 16 bits "
                       "is read",
                       (unsigned)bits, (unsigned)kind);
    ret->channels = channels;
    ret->sample_rate_hz = rate_hz;
    return true;
}

static bool read_chunks(struct str rest, struct wave *ret, struct err *e) {
    struct wave wave = {0};
    while (rest.len >= CHUNK_HEAD_BYTES) {
        struct str name = str_head(rest, 4), body = str_skip(rest, CHUNK_HEAD_BYTES);
        size_t len = u32_at(rest, 4);
        if (str_equal(name, STR("data"))) {
            if (!wave.channels)
                return err_set(e, ERR_MALFORMED, "this WAVE file has samples but no format");
            wave.samples = str_head(body, len);
            wave.samples.len -= wave.samples.len % (WAVE_SAMPLE_BYTES * wave.channels);
            *ret = wave;
            return true;
        }
        if (len > body.len) return cut_short(e);
        if (str_equal(name, STR("fmt ")) && !read_format(str_head(body, len), &wave, e))
            return false;
        rest = str_skip(body, len + len % 2); /* chunks are padded to an even length */
    }
    return cut_short(e);
}

bool wave_read(struct str bytes, struct wave *ret, struct err *e) {
    struct str head = str_head(bytes, RIFF_HEAD_BYTES);
    if (!str_starts(head, str_head(STR("RIFF"), head.len)))
        return err_set(e, ERR_MALFORMED, "this is no RIFF file");
    if (head.len < RIFF_HEAD_BYTES) return cut_short(e);
    if (!str_ends(head, STR("WAVE")))
        return err_set(e, ERR_MALFORMED, "this RIFF file holds no WAVE sound");
    return read_chunks(str_skip(bytes, RIFF_HEAD_BYTES), ret, e);
}

/* --- writing ------------------------------------------------------------------------------ */

void wave_append_head(struct buf *out, const struct wave *wave) {
    uint32_t bytes = (uint32_t)wave->samples.len;
    uint32_t frame_bytes = WAVE_SAMPLE_BYTES * wave->channels;
    assert(wave->samples.len <= UINT32_MAX - WAVE_HEAD_BYTES);
    buf_append(out, STR("RIFF"));
    append_u32(out, WAVE_HEAD_BYTES - CHUNK_HEAD_BYTES + bytes);
    buf_append(out, STR("WAVEfmt "));
    append_u32(out, FORMAT_BYTES);
    append_u16(out, FORMAT_PCM);
    append_u16(out, wave->channels);
    append_u32(out, wave->sample_rate_hz);
    append_u32(out, wave->sample_rate_hz * frame_bytes);
    append_u16(out, frame_bytes);
    append_u16(out, 8 * WAVE_SAMPLE_BYTES);
    buf_append(out, STR("data"));
    append_u32(out, bytes);
}

/* --- another rate ------------------------------------------------------------------------- */

static int32_t sample_at(struct str samples, size_t index) {
    return (int16_t)u16_at(samples, WAVE_SAMPLE_BYTES * index);
}

void wave_resample(const struct wave *from, uint32_t rate_hz, struct buf *out) {
    size_t count = from->samples.len / WAVE_SAMPLE_BYTES;
    assert(from->channels == 1 && from->sample_rate_hz && rate_hz);
    uint64_t made = (uint64_t)count * rate_hz / from->sample_rate_hz;
    for (uint64_t i = 0; i < made && buf_ok(out); i++) {
        uint64_t place = i * from->sample_rate_hz; /* position in old samples, times rate_hz */
        size_t left = (size_t)(place / rate_hz);
        int64_t part = (int64_t)(place % rate_hz);
        int32_t a = sample_at(from->samples, left);
        int32_t b = left + 1 < count ? sample_at(from->samples, left + 1) : a;
        int64_t between = a + (b - a) * part / rate_hz;
        append_u16(out, (uint32_t)between & 0xffff);
    }
}

int64_t wave_duration_ms(const struct wave *wave) {
    uint64_t frames = wave->samples.len / (WAVE_SAMPLE_BYTES * wave->channels);
    return (int64_t)(frames * 1000 / wave->sample_rate_hz);
}
