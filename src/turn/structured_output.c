#include "turn/structured_output.h"

#include "turn/turn.h"
#include "wire/json.h"

/* Strip a fence of backquotes, with or without the word json, which models often add. */
static struct str without_fence(struct str text) {
    text = str_trim(text);
    if (!str_starts(text, STR("```")) || !str_ends(text, STR("```")) || text.len < 6)
        return text;
    struct str inside = str_skip(str_head(text, text.len - 3), 3);
    size_t line = str_find_byte(inside, '\n');
    struct str word = str_trim(str_head(inside, line));
    if (str_equal_nocase(word, STR("json")) || word.len == 0) inside = str_skip(inside, line);
    return str_trim(inside);
}

static bool structured_output_check(const struct run *run, struct str text, struct err *e) {
    struct json value;
    return json_read(text, &value, e) && schema_check(run_schema(run), value, e);
}

/* Ask for a correction. Its text and our request stay in the conversation, because the model
 * has seen them. */
static void ask_for_repair(struct run *run, struct str text, const struct err *why) {
    struct event event = {.kind = EVENT_ITEM, .item = {.type = STR(REPAIR_ITEM)}};
    struct buf words, item;
    buf_init(&words, 2 * KIB);
    buf_init(&item, text.len + 4 * KIB);
    buf_printf(&words,
               "That is not the JSON that was asked for: %s. Answer again with nothing but "
               "JSON that follows the schema.",
               why->text);
    run->model_round.repairing = true;
    bool fits = conversation_repair(run->agent->slug, text, buf_str(&words), &item);
    event.item.bytes = buf_str(&item);
    if (fits) {
        run_append(run, &event);
    } else {
        run_fail_memory(run);
    }
    buf_done(&words);
    buf_done(&item);
    if (!run->ending_begun) run_ask(run);
}

bool run_shape(struct run *run, struct str text, struct str *ret) {
    struct err why;
    struct str bare = without_fence(text);
    if (structured_output_check(run, bare, &why)) {
        run->model_round.repairing = false;
        *ret = bare;
        return true;
    }
    if (run->model_round.repairing) {
        struct buf words;
        buf_init(&words, KIB);
        buf_printf(&words, "the model's answer does not follow its schema: %s", why.text);
        run_fail(run, ERR_INTERNAL, STR("OUTPUT_INVALID"), buf_str(&words));
        buf_done(&words);
    } else {
        ask_for_repair(run, text, &why);
    }
    return false;
}
