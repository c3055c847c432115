/* shaping: an answer that must be JSON of a certain shape.
 *
 * Such an answer is held back until it is whole. What is wrong with it is told to the model
 * once, with the place; a second bad answer ends the turn. */
#include "run/inner.h"
#include "wire/json.h"

#include <string.h>

/* Models like to wrap JSON in a fence of backquotes, with or without the word json. */
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

static bool check(const struct run *run, struct str text, struct err *e) {
    struct json value;
    return json_read(text, &value, e) && schema_check(run->agent->schema, value, e);
}

static void ask_for_repair(struct run *run, struct str text, const struct err *why) {
    struct message said = {.role = MESSAGE_AGENT, .agent = run->agent->slug};
    struct message wrong = {.role = MESSAGE_USER};
    struct buf words;
    buf_init(&words, 2 * KIB);
    buf_printf(&words,
               "That is not the JSON that was asked for: %s. Answer again with nothing but "
               "JSON that follows the schema.",
               why->text);
    run->repair_from = run->message_count;
    run->repairing = true;
    bool kept = run_keep(run, text, &said.text) && run_keep(run, buf_str(&words), &wrong.text);
    buf_done(&words);
    if (!kept) return;
    if (said.text.len) run_add_message(run, said);
    run_add_message(run, wrong);
    run_ask(run);
}

bool run_shape(struct run *run, struct str text, struct str *ret) {
    struct err why;
    struct str bare = without_fence(text);
    if (run->repairing) run->message_count = run->repair_from; /* nobody else's business */
    if (check(run, bare, &why)) {
        run->repairing = false;
        *ret = bare;
        return true;
    }
    if (run->repairing) {
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
