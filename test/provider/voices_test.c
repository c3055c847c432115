#include "provider/voices.h"

#include "helper/assert_str.h"

/* As espeak-ng 1.51 says it, shortened. */
#define HEADER                                                                                 \
    "Pty Language       Age/Gender VoiceName          File                 Other Languages\n"
#define LIST                                                                                   \
    HEADER                                                                                     \
    " 5  cmn             --/M      Chinese_(Mandarin) sit/cmn              (zh-cmn 5)(zh 5)\n" \
    " 5  de              --/M      German             gmw/de               \n"                 \
    " 5  en-029          --/M      English_(Caribbean) gmw/en-029           (en 10)\n"         \
    " 2  en-gb           --/M      English_(Great_Britain) gmw/en               (en 2)\n"      \
    " 5  en-gb-x-rp      --/M      English_(Received_Pronunciation) gmw/en-GB-x-rp       "     \
    "(en-gb 4)(en 5)\n"                                                                        \
    " 2  en-us           --/F      English_(America)  gmw/en-US            (en 3)\n"           \
    " 5  eu              30/-      Basque             eu                   \n"                 \
    " 5  pt-br           --/M      Portuguese_(Brazil) roa/pt-BR            (pt 6)\n"          \
    " 7  de              --/M      german-mbrola-1    mb/de                \n"

static struct voices *listed(void) {
    struct voices *voices;
    struct err e;
    assert_true(voices_read(STR(LIST), &voices, &e));
    return voices;
}

static void each_line_is_a_voice(void **state) {
    (void)state;
    static const struct media_voice expected[] = {
        {STR_INIT("cmn"), STR_INIT("Chinese_(Mandarin)"), STR_INIT("cmn"), STR_INIT("male")},
        {STR_INIT("de"), STR_INIT("German"), STR_INIT("de"), STR_INIT("male")},
        {STR_INIT("en-029"), STR_INIT("English_(Caribbean)"), STR_INIT("en-029"),
         STR_INIT("male")},
        {STR_INIT("en"), STR_INIT("English_(Great_Britain)"), STR_INIT("en-gb"),
         STR_INIT("male")},
        {STR_INIT("en-GB-x-rp"), STR_INIT("English_(Received_Pronunciation)"),
         STR_INIT("en-gb-x-rp"), STR_INIT("male")},
        {STR_INIT("en-US"), STR_INIT("English_(America)"), STR_INIT("en-us"),
         STR_INIT("female")},
        {STR_INIT("eu"), STR_INIT("Basque"), STR_INIT("eu"), STR_INIT("")},
        {STR_INIT("pt-BR"), STR_INIT("Portuguese_(Brazil)"), STR_INIT("pt-br"),
         STR_INIT("male")},
        /* another voice is called "de" */
        {STR_INIT("mb/de"), STR_INIT("german-mbrola-1"), STR_INIT("de"), STR_INIT("male")},
    };
    size_t count;
    struct voices *voices = listed();
    const struct media_voice *all = voices_all(voices, &count);
    assert_int_equal(count, ARRAY_LEN(expected));
    for (size_t i = 0; i < count; i++) {
        assert_true(str_equal(all[i].id, expected[i].id));
        assert_true(str_equal(all[i].name, expected[i].name));
        assert_true(str_equal(all[i].language, expected[i].language));
        assert_true(str_equal(all[i].gender, expected[i].gender));
    }
    voices_free(voices);
}

static size_t whole_lines(struct str text) {
    size_t lines = 0;
    for (size_t i = 0; i < text.len; i++) lines += text.at[i] == '\n';
    return lines;
}

/* Only whole lines count: half a file name would be another voice, or none. */
static void a_list_that_is_cut_has_the_voices_of_its_whole_lines(void **state) {
    (void)state;
    struct str whole = STR(LIST);
    for (size_t cut = 0; cut <= whole.len; cut++) {
        struct err e;
        struct voices *voices;
        struct str text = exact_copy(str_head(whole, cut));
        size_t count, lines = whole_lines(text);
        if (lines < 2) {
            assert_false(voices_read(text, &voices, &e));
            assert_int_equal(e.code, ERR_MALFORMED);
        } else {
            assert_true(voices_read(text, &voices, &e));
            voices_all(voices, &count);
            assert_int_equal(count, lines - 1);
            voices_free(voices);
        }
        free((void *)(uintptr_t)text.at);
    }
}

static void lines_that_are_no_voices_are_passed_over(void **state) {
    (void)state;
    struct err e;
    struct voices *voices;
    size_t count;
    assert_true(voices_read(STR("\n\nx y z\n 5 de\n -1  de --/M German gmw/de\n"
                                " 5  de  --/M  German gmw/de\r\n"),
                            &voices, &e));
    assert_str(voices_all(voices, &count)->id, "de");
    assert_int_equal(count, 1);
    voices_free(voices);
}

static void too_many_are_refused(void **state) {
    (void)state;
    struct err e;
    struct voices *voices;
    struct buf text;
    buf_init(&text, MIB);
    for (int i = 0; i < VOICES_MAX + 1; i++) buf_printf(&text, "5 l%d --/M n%d f%d\n", i, i, i);
    assert_false(voices_read(buf_str(&text), &voices, &e));
    assert_int_equal(e.code, ERR_TOO_LARGE);
    while (text.len <= VOICES_MAX_BYTES) buf_append(&text, STR("                "));
    assert_false(voices_read(buf_str(&text), &voices, &e));
    assert_string_equal(e.text, "espeak-ng --voices said more than 256 KiB");
    buf_done(&text);
}

/* --- which one is meant ------------------------------------------------------------------- */

static void the_voice_that_is_meant_is_found(void **state) {
    (void)state;
    static const struct {
        const char *voice, *language, *file;
    } cases[] = {
        {"", "", "gmw/en"},             /* English, the best of them */
        {"en-us", "", "gmw/en-US"},     /* its id in other letters */
        {"gmw/de", "", "gmw/de"},       /* its file */
        {"mb/de", "", "mb/de"},         /* the second of a name */
        {"german", "de", "gmw/de"},     /* its name */
        {"en-GB", "", "gmw/en"},        /* a language in place of a voice */
        {"zh", "", "sit/cmn"},          /* which is not its first */
        {"eu", "de", "eu"},             /* the voice beats the language */
        {"", "de", "gmw/de"},           /* 5 comes before 7 */
        {"", "DE_at", "gmw/de"},        /* a country without a voice */
        {"", "en", "gmw/en"},           /* (en 2) comes before (en 3) */
        {"", "en-GB-oed", "gmw/en"},    /* the last part goes first */
        {"", "en_US", "gmw/en-US"},     /* the POSIX way */
        {"", "pt-PT", "roa/pt-BR"},     /* (pt 6) */
        {"", "zh-cmn-Hans", "sit/cmn"}, /* */
    };
    struct voices *voices = listed();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e;
        struct str file;
        assert_true(voices_pick(voices, str_from(cases[i].voice), str_from(cases[i].language),
                                &file, &e));
        assert_str(file, cases[i].file);
    }
    voices_free(voices);
}

static void an_unknown_voice_is_answered_with_the_nearest(void **state) {
    (void)state;
    static const struct {
        const char *voice, *language, *why;
    } cases[] = {
        {"en-uss", "", "espeak-ng has no voice 'en-uss'; did you mean 'en-US'?"},
        {"alloy", "en", "espeak-ng has no voice 'alloy'"},
        {"-v", "", "espeak-ng has no voice '-v'"},
        {"de-AT", "", "espeak-ng has no voice 'de-AT'"},
        {"", "fx", "espeak-ng has no voice for the language 'fx'"},
        {"", "en_", NULL}, /* "en" with nothing after it */
        {"", "-", "espeak-ng has no voice for the language '-'"},
    };
    struct voices *voices = listed();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e;
        struct str file = STR("untouched");
        bool found = voices_pick(voices, str_from(cases[i].voice), str_from(cases[i].language),
                                 &file, &e);
        assert_int_equal(found, !cases[i].why);
        if (found) continue;
        assert_int_equal(e.code, ERR_NOT_FOUND);
        assert_str(file, "untouched");
        assert_string_equal(e.text, cases[i].why);
    }
    voices_free(voices);
}

static void without_english_the_first_one_speaks(void **state) {
    (void)state;
    struct err e;
    struct voices *voices;
    struct str file;
    assert_true(voices_read(STR(" 5 eu --/M Basque eu\n"), &voices, &e));
    assert_true(voices_pick(voices, STR(""), STR(""), &file, &e));
    assert_str(file, "eu");
    voices_free(voices);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_is_a_voice),
        cmocka_unit_test(a_list_that_is_cut_has_the_voices_of_its_whole_lines),
        cmocka_unit_test(lines_that_are_no_voices_are_passed_over),
        cmocka_unit_test(too_many_are_refused),
        cmocka_unit_test(the_voice_that_is_meant_is_found),
        cmocka_unit_test(an_unknown_voice_is_answered_with_the_nearest),
        cmocka_unit_test(without_english_the_first_one_speaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
