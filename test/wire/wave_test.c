#include "wire/wave.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* What espeak-ng 1.51 writes to a pipe: it cannot go back to fill in the lengths. */
#define STREAMED_HEAD                                                                          \
    "RIFF\x24\xf0\xff\x7f"                                                                     \
    "WAVEfmt \x10\0\0\0\1\0\1\0\x22\x56\0\0\x44\xac\0\0\2\0\x10\0"                             \
    "data\0\xf0\xff\x7f"

static struct wave sound_of(const int16_t *samples, size_t count, uint32_t rate_hz) {
    return (struct wave){rate_hz, 1, str_of(samples, count * sizeof(*samples))};
}

static void a_streamed_file_goes_on_to_its_end(void **state) {
    (void)state;
    struct err e;
    struct wave wave;
    assert_true(wave_read(STR(STREAMED_HEAD "\1\2\3\4\5"), &wave, &e));
    assert_int_equal(wave.sample_rate_hz, 22050);
    assert_int_equal(wave.channels, 1);
    assert_true(str_equal(wave.samples, STR("\1\2\3\4"))); /* whole samples only */
}

static void what_is_written_is_read_again(void **state) {
    (void)state;
    static const int16_t samples[] = {0, 1, -1, INT16_MAX, INT16_MIN};
    struct err e;
    struct wave wave = sound_of(samples, ARRAY_LEN(samples), 16000), again;
    struct buf out;
    buf_init(&out, 256);
    wave_append_head(&out, &wave);
    assert_int_equal(out.len, WAVE_HEAD_BYTES);
    buf_append(&out, wave.samples);
    assert_true(wave_read(buf_str(&out), &again, &e));
    assert_int_equal(again.sample_rate_hz, 16000);
    assert_true(str_equal(again.samples, wave.samples));
    /* After the samples there may be other chunks: the length counts when it is right. */
    buf_append(&out, STR("LIST\4\0\0\0abcd"));
    assert_true(wave_read(buf_str(&out), &again, &e));
    assert_true(str_equal(again.samples, wave.samples));
    buf_done(&out);
}

static void every_truncation_of_the_head_is_refused(void **state) {
    (void)state;
    struct str whole = STR(STREAMED_HEAD "\1\2");
    for (size_t len = 0; len < whole.len - 2; len++) {
        struct err e;
        struct wave wave;
        assert_false(wave_read(str_head(whole, len), &wave, &e));
        assert_int_equal(e.code, ERR_MALFORMED);
    }
}

static void other_chunks_are_passed_over(void **state) {
    (void)state;
    struct err e;
    struct wave wave;
    struct str file = STR("RIFF\0\0\0\0WAVELIST\3\0\0\0abc\0"
                          "fmt \x12\0\0\0\1\0\2\0\x40\x1f\0\0\0\0\0\0\4\0\x10\0\0\0"
                          "data\6\0\0\0ABCDEF");
    assert_true(wave_read(file, &wave, &e));
    assert_int_equal(wave.sample_rate_hz, 8000);
    assert_int_equal(wave.channels, 2);
    assert_true(str_equal(wave.samples, STR("ABCD")));
}

static void a_sound_of_another_form_is_refused_with_the_reason(void **state) {
    (void)state;
    static const struct {
        struct str bytes;
        enum err_code code;
        const char *says;
    } cases[] = {
        {STR_INIT("ID3\4"), ERR_MALFORMED, "this is no RIFF file"},
        {STR_INIT("RIFF\0\0\0\0AVI "), ERR_MALFORMED, "this RIFF file holds no WAVE sound"},
        {STR_INIT("RIFF\0\0\0\0WAVEdata\0\0\0\0"), ERR_MALFORMED,
         "this WAVE file has samples but no format"},
        {STR_INIT("RIFF\0\0\0\0WAVEfmt \2\0\0\0\1\0"), ERR_MALFORMED,
         "the format of this WAVE file is too short"},
        {STR_INIT("RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\0\0\x40\x1f\0\0\0\0\0\0\2\0\x10\0"),
         ERR_MALFORMED, "this WAVE file has no channels, or no sample rate"},
        {STR_INIT("RIFF\0\0\0\0WAVEfmt \x10\0\0\0\7\0\1\0\x40\x1f\0\0\0\0\0\0\1\0\x08\0"),
         ERR_UNIMPLEMENTED,
         "this WAVE file has 8 bits a sample in format 7; only PCM of 16 bits is read"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e;
        struct wave wave;
        assert_false(wave_read(cases[i].bytes, &wave, &e));
        assert_int_equal(e.code, cases[i].code);
        assert_string_equal(e.text, cases[i].says);
    }
}

/* --- another rate ------------------------------------------------------------------------- */

static void assert_resampled(const struct wave *from, uint32_t rate_hz, const int16_t *expected,
                             size_t count) {
    struct buf out;
    buf_init(&out, 4096);
    wave_resample(from, rate_hz, &out);
    assert_int_equal(out.len, count * sizeof(*expected));
    assert_memory_equal(buf_str(&out).at, expected, out.len);
    buf_done(&out);
}

static void new_samples_lie_on_the_line_between_old_ones(void **state) {
    (void)state;
    static const int16_t samples[] = {0, 100, -100, INT16_MIN};
    static const int16_t twice[] = {0, 50, 100, 0, -100, -16434, INT16_MIN, INT16_MIN};
    static const int16_t half[] = {0, -100};
    struct wave wave = sound_of(samples, ARRAY_LEN(samples), 8000);
    assert_resampled(&wave, 8000, samples, ARRAY_LEN(samples));
    assert_resampled(&wave, 16000, twice, ARRAY_LEN(twice));
    assert_resampled(&wave, 4000, half, ARRAY_LEN(half));
    wave.samples.len = 0;
    assert_resampled(&wave, 44100, samples, 0);
}

static void a_second_stays_a_second_at_any_rate(void **state) {
    (void)state;
    static const uint32_t rates[] = {8000, 11025, 16000, 22050, 24000, 44100, 48000, 192000};
    static int16_t samples[22050];
    struct wave wave = sound_of(samples, ARRAY_LEN(samples), 22050);
    assert_int_equal(wave_duration_ms(&wave), 1000);
    for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
        struct buf out;
        buf_init(&out, MIB);
        wave_resample(&wave, rates[i], &out);
        assert_int_equal(out.len, rates[i] * WAVE_SAMPLE_BYTES);
        buf_done(&out);
    }
}

static void resampling_stops_at_the_limit_of_its_buffer(void **state) {
    (void)state;
    static const int16_t samples[64];
    struct wave wave = sound_of(samples, ARRAY_LEN(samples), 8000);
    struct buf out;
    buf_init(&out, 10);
    wave_resample(&wave, 192000, &out);
    assert_false(buf_ok(&out));
    assert_int_equal(out.len, 10);
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_streamed_file_goes_on_to_its_end),
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(every_truncation_of_the_head_is_refused),
        cmocka_unit_test(other_chunks_are_passed_over),
        cmocka_unit_test(a_sound_of_another_form_is_refused_with_the_reason),
        cmocka_unit_test(new_samples_lie_on_the_line_between_old_ones),
        cmocka_unit_test(a_second_stays_a_second_at_any_rate),
        cmocka_unit_test(resampling_stops_at_the_limit_of_its_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
