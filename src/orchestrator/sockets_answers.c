/* What a person chose of a card of questions, as the message that a runtime gets. */
#include "base/arena.h"
#include "orchestrator/sockets.h"

#define ARENA_MAX_BYTES (8 * MIB)
/* Of one card. */
#define ANSWERS_MAX 256

static struct json with_id(struct json list, const char *key, struct json id,
                           struct arena *arena) {
    struct json_reader reader = json_enter(list);
    struct json item;
    struct str wanted, found;
    if (!json_str(id, arena, &wanted)) return (struct json){.kind = JSON_NONE};
    while (json_next_item(&reader, &item)) {
        if (json_str(json_find(item, str_from(key)), arena, &found) && str_equal(found, wanted))
            return item;
    }
    return (struct json){.kind = JSON_NONE};
}

static void append_choice(struct json question, struct json answer, struct arena *arena,
                          struct buf *out) {
    struct json_reader reader = json_enter(json_find(answer, STR("option_ids")));
    struct json id;
    bool any = false;
    while (json_next_item(&reader, &id)) {
        struct json option = with_id(json_find(question, STR("options")), "id", id, arena);
        if (option.kind == JSON_NONE) continue;
        if (any) buf_append(out, STR(", "));
        any = json_text(json_find(option, STR("label")), out) || any;
    }
    struct json custom = json_find(answer, STR("custom_text"));
    if (custom.kind == JSON_STRING && custom.raw.len > 2) {
        if (any) buf_append(out, STR(", "));
        (void)json_text(custom, out);
    }
}

static void append_answers(struct json questions, struct json answers, struct arena *arena,
                           struct buf *out) {
    struct json_reader reader = json_enter(questions);
    struct json question;
    while (json_next_item(&reader, &question)) {
        struct json answer =
            with_id(answers, "question_id", json_find(question, STR("id")), arena);
        if (answer.kind == JSON_NONE) continue;
        if (out->len) buf_append_byte(out, '\n');
        (void)json_text(json_find(question, STR("prompt")), out);
        buf_append(out, STR(": "));
        append_choice(question, answer, arena, out);
    }
}

/* The question of any turn of the card that this answer is to; JSON_NONE: there is none. */
static struct json question_of(struct json content, struct json answer, struct arena *arena) {
    struct json_reader reader = json_enter(json_find(content, STR("turns")));
    struct json found = {.kind = JSON_NONE}, turn, id = json_find(answer, STR("question_id"));
    while (found.kind == JSON_NONE && json_next_item(&reader, &turn))
        found = with_id(json_find(turn, STR("questions")), "id", id, arena);
    return found;
}

static bool options_fit(struct json question, struct json answer, struct arena *arena) {
    struct json_reader reader = json_enter(json_find(answer, STR("option_ids")));
    struct json options = json_find(question, STR("options")), id;
    struct json mode = json_find(question, STR("mode"));
    size_t count = 0;
    for (; json_next_item(&reader, &id); count++) {
        struct json option = with_id(options, "id", id, arena);
        if (option.kind == JSON_NONE) return false;
    }
    return count < 2 || !json_is(mode, STR("single"));
}

static bool custom_fits(struct json question, struct json answer) {
    struct json custom = json_find(answer, STR("custom_text"));
    struct json allow = json_find(question, STR("allow_custom"));
    bool allowed = true, has = custom.kind == JSON_STRING && custom.raw.len > 2;
    if (!json_bool(allow, &allowed)) allowed = true;
    return !has || allowed;
}

static size_t answers_to(struct json answers, struct str question, struct arena *arena) {
    struct json_reader reader = json_enter(answers);
    struct json answer;
    struct str id;
    size_t count = 0;
    while (json_next_item(&reader, &answer)) {
        struct json said = json_find(answer, STR("question_id"));
        if (json_str(said, arena, &id) && str_equal(id, question)) count++;
    }
    return count;
}

static bool answer_fits(struct json content, struct json answers, struct json answer,
                        struct arena *arena) {
    struct json question = question_of(content, answer, arena);
    if (question.kind == JSON_NONE) return false;
    struct json id = json_find(question, STR("id"));
    struct str text;
    return json_str(id, arena, &text) && answers_to(answers, text, arena) == 1 &&
           options_fit(question, answer, arena) && custom_fits(question, answer);
}

bool sockets_answers_fit(struct json content, struct json answers) {
    struct json_reader reader = json_enter(answers);
    struct json answer;
    size_t count = 0;
    bool fit = true;
    for (; fit && json_next_item(&reader, &answer); count++) {
        struct arena *arena = arena_new(ARENA_MAX_BYTES);
        fit = count < ANSWERS_MAX && answer_fits(content, answers, answer, arena);
        arena_free(arena);
    }
    return fit && count;
}

void sockets_answer_text(struct json content, struct json answers, struct buf *out) {
    struct arena *arena = arena_new(ARENA_MAX_BYTES);
    struct json_reader reader = json_enter(json_find(content, STR("turns")));
    struct json turn;
    while (json_next_item(&reader, &turn))
        append_answers(json_find(turn, STR("questions")), answers, arena, out);
    arena_free(arena);
}
