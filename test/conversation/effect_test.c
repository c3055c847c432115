/* What is recorded of a call whose answer is unknown. */
#include "conversation/effect.h"

#include "helper/assert_str.h"
#include "wire/json.h"

#include <stdio.h>

static void write_effect(enum effect effect, struct str cause, struct buf *out,
                         struct err *ret) {
    buf_init(out, EFFECT_MAX_BYTES);
    effect_write(effect, cause, out, ret);
    assert_true(buf_ok(out));
}

static void each_effect_is_said_to_the_model_and_to_people(void **state) {
    (void)state;
    static const struct {
        enum effect effect;
        const char *name, *words;
    } effects[] = {
        {EFFECT_NONE, "none", "it broke: this call was not made"},
        {EFFECT_HARMLESS, "harmless", "it broke: its answer is lost; it may be made again"},
        {EFFECT_UNKNOWN, "unknown",
         "it broke: it may or may not have had its effect. Find out before you call it again"},
    };
    for (size_t i = 0; i < ARRAY_LEN(effects); i++) {
        struct buf out;
        struct err why;
        char expected[256];
        write_effect(effects[i].effect, STR("it broke"), &out, &why);
        snprintf(expected, sizeof(expected), "{\"effect\":\"%s\",\"error\":\"%s\"}",
                 effects[i].name, effects[i].words);
        assert_str(buf_str(&out), expected);
        assert_str(err_text(&why), effects[i].words);
        assert_int_equal(why.code, ERR_EFFECT_UNKNOWN);
        buf_done(&out);
    }
}

static void a_cause_may_hold_and_be_anything(void **state) {
    (void)state;
    static char bytes[2000];
    static const char fills[] = {'a', '"', '\x01', '\xFF'};
    for (size_t i = 0; i < sizeof(fills); i++) {
        struct buf out;
        struct err why, e;
        struct json object;
        memset(bytes, fills[i], sizeof(bytes));
        write_effect(EFFECT_UNKNOWN, str_of(bytes, sizeof(bytes)), &out, &why);
        assert_true(json_read(buf_str(&out), &object, &e));
        assert_true(json_is(json_find(object, STR("effect")), STR("unknown")));
        assert_true(str_ends(err_text(&why), STR("Find out before you call it again")));
        buf_done(&out);
    }
}

static void a_long_cause_is_cut_between_characters(void **state) {
    (void)state;
    struct buf cause, out;
    struct err why;
    buf_init(&cause, KIB);
    buf_append(&cause, STR("x"));
    for (int i = 0; i < 200; i++) buf_append(&cause, STR("\xC3\xA9"));
    write_effect(EFFECT_NONE, buf_str(&cause), &out, &why);
    assert_true(str_starts(err_text(&why), str_head(buf_str(&cause), 255)));
    assert_str(str_skip(err_text(&why), 255), ": this call was not made");
    buf_done(&cause);
    buf_done(&out);
}

static void a_byte_that_is_no_text_takes_no_more_of_the_cause_than_its_room(void **state) {
    (void)state;
    char cause[300];
    struct buf out;
    struct err why;
    memset(cause, 'a', sizeof(cause));
    cause[0] = '\xFF';
    write_effect(EFFECT_NONE, str_of(cause, sizeof(cause)), &out, &why);
    assert_true(str_starts(err_text(&why), STR("\xEF\xBF\xBD")));
    assert_true(str_starts(str_skip(err_text(&why), 3), str_of(cause + 1, 253)));
    assert_str(str_skip(err_text(&why), 256), ": this call was not made");
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_effect_is_said_to_the_model_and_to_people),
        cmocka_unit_test(a_cause_may_hold_and_be_anything),
        cmocka_unit_test(a_long_cause_is_cut_between_characters),
        cmocka_unit_test(a_byte_that_is_no_text_takes_no_more_of_the_cause_than_its_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
