/* What a person chose of a card of questions, as the message that a runtime gets. */
#include "base/arena.h"
#include "orchestrator/sockets.h"

#define ARENA_MAX_BYTES (8 * MIB)

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

void sockets_answer_text(struct json content, struct json answers, struct buf *out) {
    struct arena *arena = arena_new(ARENA_MAX_BYTES);
    struct json_reader reader = json_enter(json_find(content, STR("turns")));
    struct json turn;
    while (json_next_item(&reader, &turn))
        append_answers(json_find(turn, STR("questions")), answers, arena, out);
    arena_free(arena);
}
