/* A script of any bytes is read or refused, and what is read can be played to its end: every
 * reply is asked for and every hole is filled, with values that fight back. */
#include "base/attr.h"
#include "script/script.h"
#include "wire/json.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct script_values values = {
    .input = STR_INIT("say \"hi\"\\ to 日本\n{input}"),
    .result = STR_INIT("{\"title\":\"a \\\"b\\\" \\u0000\",\"n\":[1,{}]}"),
    .answer = STR_INIT("yes"),
    .agent = STR_INIT("manager"),
    .args = STR_INIT("{\"q\":\"\\ud83d\\ude00\"}"),
};

static void render(const struct script_text *text) {
    struct buf out;
    struct err e;
    struct json value;
    buf_init(&out, MIB);
    bool done = script_text_render(text, &values, &out);
    if (done && text->json && text->count) {
        if (!json_read(buf_str(&out), &value, &e)) abort();
        assert(value.kind == JSON_OBJECT);
    }
    buf_done(&out);
}

static void play(const struct script_steps *steps) {
    for (size_t i = 0; i < steps->count; i++) {
        render(&steps->at[i].text);
        render(&steps->at[i].args);
    }
}

static void play_scene(const struct script_scene *scene) {
    for (size_t index = 0; index <= scene->reply_count; index++) {
        for (int approved = 0; approved <= 1; approved++) {
            const struct script_steps *steps = script_reply_get(scene, index, approved);
            if (steps) play(steps);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct err e;
    struct script *script;
    if (!script_parse(STR("fuzz"), str_of(data, size), &script, &e)) {
        assert(e.code != ERR_NONE && e.text[0] != '\0');
        return 0;
    }
    for (size_t i = 0; i < script->scene_count; i++) play_scene(&script->scenes[i]);
    for (size_t i = 0; i < script->tool_count; i++) {
        const struct script_tool *tool = &script->tools[i];
        for (size_t a = 0; a < tool->answer_count; a++) render(&tool->answers[a].result);
    }
    for (size_t i = 0; i < script->agent_count; i++)
        (void)script_scene_find(script, script->agents[i].slug, values.input);
    script_free(script);
    return 0;
}
