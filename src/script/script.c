#include "script/script.h"

#include "base/arena.h"
#include "base/utf8.h"
#include "wire/json.h"

void script_free(struct script *script) {
    if (!script) return;
    arena_free(script->arena); /* also frees the script, which is in it */
}

/* --- looking -------------------------------------------------------------------------- */

const struct script_agent *script_agent_find(const struct script *script, struct str slug) {
    for (size_t i = 0; i < script->agent_count; i++) {
        if (str_equal(script->agents[i].slug, slug)) return &script->agents[i];
    }
    return NULL;
}

const struct script_tool *script_tool_find(const struct script *script, struct str name) {
    for (size_t i = 0; i < script->tool_count; i++) {
        if (str_equal(script->tools[i].name, name)) return &script->tools[i];
    }
    return NULL;
}

static bool scene_fits(const struct script_scene *scene, struct str agent, struct str input) {
    if (scene->agent.len && !str_equal(scene->agent, agent)) return false;
    if (scene->exact) return str_equal(scene->match, input);
    if (scene->match.len == 0) return true;
    return str_find_nocase(input, scene->match) < input.len;
}

const struct script_scene *script_scene_find(const struct script *script, struct str agent,
                                             struct str input) {
    for (size_t i = 0; i < script->scene_count; i++) {
        if (scene_fits(&script->scenes[i], agent, input)) return &script->scenes[i];
    }
    return NULL;
}

const struct script_steps *script_reply_get(const struct script_scene *scene, size_t index,
                                            bool approved) {
    if (index >= scene->reply_count) {
        if (scene->once) return NULL;
        index = scene->reply_count - 1;
    }
    const struct script_reply *reply = &scene->replies[index];
    if (!reply->branches) return &reply->plain;
    return approved ? &reply->approved : &reply->refused;
}

/* --- text with holes ------------------------------------------------------------------ */

bool script_text_literal(const struct script_text *text, struct str *ret) {
    if (text->count > 1) return false;
    if (text->count == 1 && text->pieces[0].hole != HOLE_NONE) return false;
    *ret = text->count ? text->pieces[0].text : STR_EMPTY;
    return true;
}

/* Like json_put_str(), without the quotes. */
static bool script_append_escaped(struct buf *out, struct str text) {
    size_t start = out->len;
    if (!json_put_str(out, text)) return false;
    size_t inside = out->len - start - 2;
    memmove(out->at + start, out->at + start + 1, inside);
    out->len = start + inside;
    return true;
}

static bool script_append(struct buf *out, struct str text, bool json) {
    return json ? script_append_escaped(out, text) : buf_append(out, text);
}

/* Append one member of a JSON object: a string without its quotes, any other value as it is. If
 * the object does not parse or lacks the member, nothing is appended. */
static bool append_member(struct buf *out, struct str object, struct str key, bool json) {
    struct json root;
    struct err ignored;
    if (!json_read(object, &root, &ignored)) return true;
    struct json member = json_find(root, key);
    if (member.kind == JSON_NONE) return true;
    if (member.kind != JSON_STRING) return script_append(out, member.raw, json);

    struct buf text;
    buf_init(&text, member.raw.len);
    bool done = json_text(member, &text) && script_append(out, buf_str(&text), json);
    buf_done(&text);
    return done;
}

/* The first line of what the user said, cut to the length of a title. */
static struct str topic_of(struct str input) {
    struct str line = str_trim(input);
    line = str_head(line, str_find_byte(line, '\n'));
    return str_trim(str_head(line, utf8_cut(line, SCRIPT_TOPIC_BYTES)));
}

static struct str value_of(enum script_hole hole, const struct script_values *values) {
    switch (hole) {
    case HOLE_NONE: break;
    case HOLE_INPUT: return values->input;
    case HOLE_TOPIC: return topic_of(values->input);
    case HOLE_RESULT: return values->result;
    case HOLE_ANSWER: return values->answer;
    case HOLE_AGENT: return values->agent;
    case HOLE_ARGS: return values->args;
    }
    return STR_EMPTY;
}

bool script_text_render(const struct script_text *text, const struct script_values *values,
                        struct buf *out) {
    for (size_t i = 0; i < text->count; i++) {
        const struct script_piece *piece = &text->pieces[i];
        struct str value = value_of(piece->hole, values);
        bool done;
        if (piece->hole == HOLE_NONE) {
            done = buf_append(out, piece->text); /* escaped when it was parsed */
        } else if (piece->text.len) {
            done = append_member(out, value, piece->text, text->json);
        } else {
            done = script_append(out, value, text->json);
        }
        if (!done) return false;
    }
    return true;
}
