/* The prompt that a model gets for a conversation over nimi.runtime.v1. */
#include "contract/nimi/prompt.h"

#include "helper/assert_str.h"

static struct arena *arena;

static int set_up(void **state) {
    (void)state;
    arena = arena_new(64 * MIB);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

#define SAID(who, what)                                                                        \
    { .role = STR_INIT(who), .content = STR_INIT(what) }
#define TEXT(what)                                                                             \
    { .which_content = NIMI_CHAT_CONTENT_PART_TEXT, .text = STR_INIT(what) }

static bool build(const struct nimi_chat_message *input, size_t count, struct prompt *ret,
                  struct fault *fault) {
    const struct nimi_text_generate_scenario_spec spec = {
        .input = input, .input_count = count, .system_prompt = STR_INIT("Be terse.")};
    return prompt_build(&spec, STR("m"), arena, ret, fault);
}

static void assert_messages(const struct prompt *prompt, const char *expected) {
    static const char letters[] = {
        [MESSAGE_USER] = 'U', [MESSAGE_AGENT] = 'A', [MESSAGE_SYSTEM] = 'S'};
    struct buf out;
    buf_init(&out, MIB);
    for (size_t i = 0; i < prompt->request.message_count; i++) {
        const struct message *message = &prompt->request.messages[i];
        assert_int_equal(message->agent.len, 0);
        buf_printf(&out, "%c " STR_FMT, letters[message->role], STR_ARG(message->text));
        if (message->parts.len) buf_printf(&out, " " STR_FMT, STR_ARG(message->parts));
        buf_append(&out, STR("|"));
    }
    assert_str(buf_str(&out), expected);
    buf_done(&out);
}

/* Upstream's SDK writes each text twice. */
static void a_text_in_content_and_in_a_part_is_shown_once(void **state) {
    (void)state;
    static const struct nimi_chat_content_part ada[] = {TEXT("My name is Ada.")},
                                               hello[] = {TEXT("Hello Ada.")},
                                               two[] = {TEXT("And"), TEXT("my name?")};
    static const struct nimi_chat_message input[] = {
        {.role = STR_INIT("user"),
         .content = STR_INIT("My name is Ada."),
         .parts = ada,
         .parts_count = 1},
        {.role = STR_INIT("assistant"),
         .content = STR_INIT("Hello Ada."),
         .parts = hello,
         .parts_count = 1},
        {.role = STR_INIT(""), .content = STR_INIT("other"), .parts = two, .parts_count = 2},
    };
    struct prompt prompt;
    struct fault fault;
    assert_true(build(input, 3, &prompt, &fault));
    assert_messages(&prompt, "U My name is Ada.|A Hello Ada.|U And\nmy name?|");
    assert_str(prompt.asked, "And\nmy name?");
    assert_int_equal(prompt.request.turn_start, 2);
}

static void instructions_stand_first_or_where_they_were_said(void **state) {
    (void)state;
    static const struct nimi_chat_message input[] = {
        SAID("system", "s"),   SAID("developer", "t"), SAID("user", "a"),
        SAID("assistant", ""), SAID("system", "u"),    SAID("user", "b")};
    struct prompt prompt;
    struct fault fault;
    assert_true(build(input, ARRAY_LEN(input), &prompt, &fault));
    assert_messages(&prompt, "U a|S u|U b|");
    assert_str(prompt.request.system, "Be terse.\n\ns\n\nt");
}

static const struct nimi_chat_content_image_url at_url = {.url = STR_INIT("https://a.example/"),
                                                          .detail = STR_INIT("low")};
static const struct nimi_chat_content_image_url in_url = {
    .url = STR_INIT("data:image/png;base64,aGk=")};
static const struct nimi_chat_content_artifact_ref uploaded = {.artifact_id =
                                                                   STR_INIT("upload_1")};

#define IMAGE(which)                                                                           \
    { .which_content = NIMI_CHAT_CONTENT_PART_IMAGE_URL, .image_url = &(which) }
#define ARTIFACT                                                                               \
    { .which_content = NIMI_CHAT_CONTENT_PART_ARTIFACT_REF, .artifact_ref = &uploaded }

static void pictures_stand_among_the_texts(void **state) {
    (void)state;
    static const struct nimi_chat_content_part parts[] = {TEXT("see"), IMAGE(at_url),
                                                          IMAGE(in_url)};
    static const struct nimi_chat_message input[] = {{.role = STR_INIT("user"),
                                                      .content = STR_INIT("see"),
                                                      .parts = parts,
                                                      .parts_count = 3}};
    struct prompt prompt;
    struct fault fault;
    assert_true(build(input, 1, &prompt, &fault));
    assert_messages(&prompt,
                    "U see [{\"type\":\"text\",\"text\":\"see\"},{\"type\":\"image\",\"url\":"
                    "\"https://a.example/\",\"detail\":\"low\"},{\"type\":\"image\","
                    "\"media_type\":\"image/png\",\"data\":\"aGk=\"}]|");
}

static void an_artifact_is_put_in_where_it_is_referred_to(void **state) {
    (void)state;
    static const struct nimi_chat_content_part parts[] = {ARTIFACT, TEXT("see"), ARTIFACT};
    static const struct nimi_chat_message input[] = {
        {.role = STR_INIT("user"), .parts = parts, .parts_count = 3}};
    struct prompt prompt;
    struct fault fault;
    assert_true(build(input, 1, &prompt, &fault));
    assert_int_equal(prompt.artifact_count, 2);
    assert_str(prompt.artifacts[1].id, "upload_1");
    for (size_t i = 0; i < 2; i++)
        assert_true(prompt_attach(&prompt.artifacts[i], STR("image/jpeg; x=y"),
                                  i ? STR("no") : STR("hi"), arena, &fault));
    assert_messages(&prompt,
                    "U see [{\"type\":\"image\",\"media_type\":\"image/jpeg\",\"data\":\"aGk="
                    "\"},{\"type\":\"text\",\"text\":\"see\"},{\"type\":\"image\","
                    "\"media_type\":\"image/jpeg\",\"data\":\"bm8=\"}]|");
    assert_true(build(input, 1, &prompt, &fault));
    assert_false(
        prompt_attach(&prompt.artifacts[0], STR("audio/wav"), STR("hi"), arena, &fault));
    assert_int_equal(fault.reason, NIMI_AI_MODALITY_NOT_SUPPORTED);
}

static void what_cannot_be_taken_is_refused_with_its_place(void **state) {
    (void)state;
    static const struct nimi_chat_content_image_url file = {.url = STR_INIT("file:///x")};
    static const struct nimi_chat_content_artifact_ref nothing = {.local_artifact_id =
                                                                      STR_INIT("x")};
    static const struct nimi_chat_content_part sound[] = {
        TEXT("a"),
        {.which_content = NIMI_CHAT_CONTENT_PART_AUDIO_URL, .audio_url = STR_INIT("b")}};
    static const struct nimi_chat_content_part picture[] = {IMAGE(at_url)},
                                               wrong[] = {IMAGE(file)};
    static const struct nimi_chat_content_part unnamed[] = {
        {.which_content = NIMI_CHAT_CONTENT_PART_ARTIFACT_REF, .artifact_ref = &nothing}};
    static const struct {
        struct nimi_chat_message second;
        int reason;
        const char *says;
    } bad[] = {
        {{.role = STR_INIT("user"), .parts = sound, .parts_count = 2},
         NIMI_AI_MODALITY_NOT_SUPPORTED,
         "input[1].parts[1]: only text and pictures are read by this version"},
        {{.role = STR_INIT("assistant"), .parts = picture, .parts_count = 1},
         NIMI_AI_MODALITY_NOT_SUPPORTED,
         "input[1].parts[0]: only a user's message may hold a picture"},
        {{.role = STR_INIT("user"), .parts = wrong, .parts_count = 1},
         NIMI_AI_INPUT_INVALID,
         "input[1].parts[0]: the image's URL must be https:, http: or data:, not 'file:///x'"},
        {{.role = STR_INIT("user"), .parts = unnamed, .parts_count = 1},
         NIMI_AI_INPUT_INVALID,
         "input[1].parts[0]: an artifact is referred to by the artifact_id that UploadArtifact "
         "answered"},
        {SAID("tool", "x"), NIMI_AI_INPUT_INVALID,
         "input[1]: no role 'tool'; messages are of user, assistant or system"},
        {SAID("system", "x"), NIMI_AI_INPUT_INVALID,
         "input[1]: the last message is a system message; the last one is what is asked"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const struct nimi_chat_message input[] = {SAID("user", "a"), bad[i].second};
        struct prompt prompt;
        struct fault fault;
        assert_false(build(input, 2, &prompt, &fault));
        assert_int_equal(fault.reason, bad[i].reason);
        assert_str(err_text(&fault.why), bad[i].says);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_in_content_and_in_a_part_is_shown_once),
        cmocka_unit_test(instructions_stand_first_or_where_they_were_said),
        cmocka_unit_test(pictures_stand_among_the_texts),
        cmocka_unit_test(an_artifact_is_put_in_where_it_is_referred_to),
        cmocka_unit_test(what_cannot_be_taken_is_refused_with_its_place),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
