/* Where one reply ends and the next begins in a stream of text. */
#include "conversation/seam.h"

#include "helper/assert_str.h"

#include <stdio.h>

/* What a stream holds: a letter is text of that agent; u usage, c a call, q a question, and
 * anything else one of the kinds that nobody joins. */
static struct event event_of(const char *letter) {
    static const enum event_kind others[] = {
        ['0'] = EVENT_STARTED, ['1'] = EVENT_THINKING, ['2'] = EVENT_TOOL_RESULT,
        ['3'] = EVENT_STEP,    ['4'] = EVENT_AUDIO,    ['5'] = EVENT_ITEM,
        ['6'] = EVENT_DONE,    ['7'] = EVENT_FAILED,   ['8'] = EVENT_CANCELLED};
    if (*letter >= 'A' && *letter <= 'Z')
        return (struct event){
            .kind = EVENT_TEXT, .agent = str_of(letter, 1), .text = {STR("text")}};
    struct event event = {.kind = *letter == 'u'   ? EVENT_USAGE
                                  : *letter == 'c' ? EVENT_TOOL_CALL
                                  : *letter == 'q' ? EVENT_APPROVAL
                                                   : others[(unsigned char)*letter]};
    return event;
}

/* The stream with a bar where it has a seam. */
static void show(const char *stream, enum seam_of of, struct buf *out) {
    struct seam seam = {0};
    buf_init(out, KIB);
    for (const char *letter = stream; *letter; letter++) {
        struct event event = event_of(letter);
        if (seam_before(&seam, &event, of)) buf_append_byte(out, '|');
        buf_append_byte(out, *letter);
    }
}

static const struct {
    const char *stream, *shown;
} streams[] = {
    {"", ""},
    {"A", "A"},
    {"AAA", "AAA"},
    {"AuA", "Au|A"},
    {"AAuuAAuA", "AAuu|AAu|A"},
    {"AcA", "Ac|A"},
    {"AqA", "Aq|A"},
    {"AcccA", "Accc|A"},
    {"uA", "uA"}, /* nothing was shown before */
    {"cuAAu", "cuAAu"},
    {"A012345A", "A012345A"}, /* on in the same reply */
    {"Auc2A678A", "Auc2|A678A"},
    {"AuBuA", "Au|Bu|A"},
    {"AuBBuBuCuC", "Au|BBu|Bu|Cu|C"},
};

static void a_seam_stands_between_two_replies(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        struct buf out;
        show(streams[i].stream, SEAM_OF_STREAM, &out);
        assert_str(buf_str(&out), streams[i].shown);
        buf_done(&out);
    }
}

static void a_speaker_s_seams_are_between_his_own_replies(void **state) {
    (void)state;
    static const struct {
        const char *stream, *shown;
    } spoken[] = {
        {"AAA", "AAA"},           {"AuAcA", "Au|Ac|A"},
        {"AuB", "AuB"}, /* the first words of B */
        {"AuBuAuB", "AuBu|Au|B"}, {"AcBBuBuCuC", "AcBBu|BuCu|C"},
    };
    for (size_t i = 0; i < ARRAY_LEN(spoken); i++) {
        struct buf out;
        show(spoken[i].stream, SEAM_OF_SPEAKER, &out);
        assert_str(buf_str(&out), spoken[i].shown);
        buf_done(&out);
    }
}

static void of_more_speakers_than_are_remembered_each_has_spoken(void **state) {
    (void)state;
    struct seam seam = {0};
    struct event over = {.kind = EVENT_USAGE};
    for (int i = 0; i < 2 * SEAM_SPEAKERS_MAX; i++) {
        char name[32];
        snprintf(name, sizeof(name), "agent %d", i);
        struct event said = {
            .kind = EVENT_TEXT, .agent = str_from(name), .text = {STR("text")}};
        assert_int_equal(seam_before(&seam, &said, SEAM_OF_SPEAKER), i >= SEAM_SPEAKERS_MAX);
        assert_false(seam_before(&seam, &over, SEAM_OF_SPEAKER));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seam_stands_between_two_replies),
        cmocka_unit_test(a_speaker_s_seams_are_between_his_own_replies),
        cmocka_unit_test(of_more_speakers_than_are_remembered_each_has_spoken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
