/* Which part of a caller's conversation a session already has.
 *
 * Callers see a session as questions and final replies. So both sides are reduced to those: a
 * turn begins with a user's message, and its reply is the assistant's last text before the next
 * one. System messages, calls, results and text before a call are not compared. */
#include "conversation/import.h"

#include "base/map.h"
#include "base/mem.h"
#include "conversation/overlap.h"

#include <stdlib.h>

/* --- turns as callers see them ------------------------------------------------------------ */

struct seen {
    const struct message *asked;
    const struct message *reply; /* NULL: no visible reply */
    size_t begin;                /* index of `asked` */
    size_t end;                  /* past its last message that is not a system message */
};

/* The turns of a conversation; free() them. Messages before the first question are in no
 * turn. */
static struct seen *turns_of(const struct message *messages, size_t count, size_t *ret_count) {
    struct seen *turns = mem_zero(count + 1, sizeof(struct seen));
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const struct message *message = &messages[i];
        if (message->role == MESSAGE_USER)
            turns[found++] = (struct seen){.asked = message, .begin = i};
        if (found == 0 || message->role == MESSAGE_SYSTEM) continue;
        turns[found - 1].end = i + 1;
        if (message->role == MESSAGE_AGENT && str_trim(message->text).len)
            turns[found - 1].reply = message;
    }
    *ret_count = found;
    return turns;
}

/* --- comparing turns ---------------------------------------------------------------------- */

static bool is_same_text(struct str a, struct str b) {
    return str_equal(str_trim(a), str_trim(b));
}

/* Fields beside the list were appended to its last message as a block of JSON. A caller that
 * sends the list again has that message without the block. */
static bool is_same_but_for_a_block(struct str held, struct str brought) {
    struct json block;
    struct err ignored;
    if (!str_starts(held, brought)) return false;
    struct str rest = str_skip(held, brought.len);
    if (brought.len && !str_starts(rest, STR("\n\n"))) return false;
    rest = str_trim(rest);
    return str_starts(rest, STR("{")) && json_read(rest, &block, &ignored);
}

/* Whether both ask the same. The message in the session may have such a block in addition, and
 * then an additional text part. */
static bool is_same_question(const struct message *held, const struct message *brought) {
    if (str_equal(held->parts, brought->parts) && is_same_text(held->text, brought->text))
        return true;
    struct str pictures = brought->parts; /* without the ']', so that it is a prefix */
    if (pictures.len) pictures.len--;
    return str_starts(held->parts, pictures) && (held->parts.len > 0) == (pictures.len > 0) &&
           is_same_but_for_a_block(held->text, brought->text);
}

static bool is_same_turn(const struct seen *held, const struct seen *brought) {
    if (!is_same_question(held->asked, brought->asked)) return false;
    if (held->asked->error) return true; /* any reply the caller saw */
    if (!held->reply || !brought->reply) return !held->reply && !brought->reply;
    return is_same_text(held->reply->text, brought->reply->text);
}

/* --- common turns ------------------------------------------------------------------------- */

struct both {
    const struct seen *held, *brought;
};

static bool both_equal(size_t brought, size_t other, void *ctx) {
    const struct both *both = ctx;
    const struct seen *a = &both->brought[brought], *b = &both->brought[other];
    if (!str_equal(a->asked->parts, b->asked->parts) ||
        !str_equal(a->asked->text, b->asked->text))
        return false;
    if (!a->reply || !b->reply) return !a->reply && !b->reply;
    return is_same_text(a->reply->text, b->reply->text);
}

static bool both_match(size_t held, size_t brought, void *ctx) {
    const struct both *both = ctx;
    return is_same_turn(&both->held[held], &both->brought[brought]);
}

static bool both_may_miss(size_t held, void *ctx) {
    const struct both *both = ctx;
    return both->held[held].asked->error;
}

/* How many turns of the list are the newest turns of the session; failed turns of the session
 * may be missing in the list. */
static size_t common_turns(const struct seen *held, size_t held_count,
                           const struct seen *brought, size_t brought_count) {
    struct both both = {held, brought};
    return overlap_find(&(struct overlap){.held_count = held_count,
                                          .brought_count = brought_count,
                                          .equals = both_equal,
                                          .matches = both_match,
                                          .may_miss = both_may_miss,
                                          .ctx = &both});
}

/* The last turn of a list is the current question, with everything since. */
static size_t earlier_turns(size_t turns) {
    return turns ? turns - 1 : 0;
}

size_t import_known(const struct message *history, size_t history_count,
                    const struct message *brought, size_t brought_count) {
    size_t held_turns, brought_turns;
    struct seen *held = turns_of(history, history_count, &held_turns);
    struct seen *list = turns_of(brought, brought_count, &brought_turns);
    size_t common = common_turns(held, held_turns, list, earlier_turns(brought_turns));
    size_t known = common ? list[common - 1].end : 0;
    free(held);
    free(list);
    return known;
}

/* The newest message of each call, itself or its result, by its id. map_free() it. */
static struct map *newest_of_calls(const struct message *history, size_t count) {
    struct map *newest = map_new();
    for (size_t i = 0; i < count; i++) {
        bool paired =
            history[i].role == MESSAGE_TOOL_RESULT || history[i].role == MESSAGE_TOOL_CALL;
        if (paired) map_put(newest, history[i].call_id, (void *)&history[i]);
    }
    return newest;
}

static bool is_open_call(const struct map *newest, struct str call_id) {
    const struct message *message = map_find(newest, call_id);
    return message && message->role == MESSAGE_TOOL_CALL;
}

static bool brings_results(const struct message *brought, size_t count) {
    for (size_t i = count; i-- > 0;) {
        if (brought[i].role == MESSAGE_TOOL_RESULT) return true;
    }
    return false;
}

size_t import_results(const struct message *history, size_t history_count,
                      const struct message *brought, size_t brought_count) {
    size_t first = brought_count;
    if (!brings_results(brought, brought_count)) return first;
    struct map *newest = newest_of_calls(history, history_count);
    for (size_t i = brought_count; i-- > 0;) {
        bool result = brought[i].role == MESSAGE_TOOL_RESULT;
        if (result && is_open_call(newest, brought[i].call_id)) first = i;
        if (!result && first < brought_count) break; /* those of one reply stand together */
    }
    map_free(newest);
    return first;
}

bool import_forks(const struct message *history, size_t history_count,
                  const struct message *brought, size_t brought_count) {
    size_t held_turns, brought_turns;
    free(turns_of(history, history_count, &held_turns));
    free(turns_of(brought, brought_count, &brought_turns));
    if (held_turns == 0 || earlier_turns(brought_turns) == 0) return false;
    return import_known(history, history_count, brought, brought_count) == 0;
}

/* --- turns packed into one text ----------------------------------------------------------- */

#define USER STR("User: ")
#define ASSISTANT STR("Assistant: ")
#define BETWEEN STR("\n\n")

/* If `text` starts with `part`, remove it. */
static bool import_known_take(struct str *text, struct str part) {
    if (!str_starts(*text, part)) return false;
    *text = str_skip(*text, part.len);
    return true;
}

/* Skip what the dashboard shows for a turn without a reply: nothing, or one of these texts. */
static void take_bubble(struct str *text) {
    struct str next = STR("\n\nUser: ");
    bool any = str_starts(*text, STR("Assistant: (empty response)")) ||
               str_starts(*text, STR("Assistant: Error: "));
    size_t end = any ? str_find(*text, next) : text->len;
    if (end < text->len) *text = str_skip(*text, end + BETWEEN.len);
}

/* Skip one turn and the separator after it. False, and `text` unchanged, if it is another
 * turn. */
static bool take_turn(struct str *text, const struct seen *turn) {
    struct str rest = *text;
    if (turn->asked->parts.len || !import_known_take(&rest, USER) ||
        !import_known_take(&rest, str_trim(turn->asked->text)) ||
        !import_known_take(&rest, BETWEEN))
        return false;
    bool told = turn->reply && !turn->asked->error;
    if (told) {
        if (!import_known_take(&rest, ASSISTANT) ||
            !import_known_take(&rest, turn->reply->text) || !import_known_take(&rest, BETWEEN))
            return false;
    } else {
        take_bubble(&rest);
    }
    *text = rest;
    return true;
}

/* The text after the turns, or all of `text` if it does not begin with them. */
static struct str unpack(const struct seen *turns, size_t count, struct str text) {
    struct str rest = text;
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        bool taken = take_turn(&rest, &turns[i]);
        if (!taken && !turns[i].asked->error) return text;
        any = any || taken;
    }
    return any && import_known_take(&rest, USER) ? rest : text;
}

bool import_is_packed(struct str text) {
    return str_starts(text, USER);
}

struct str import_unpack(const struct message *history, size_t history_count, struct str text) {
    size_t count;
    if (!import_is_packed(text)) return text;
    struct seen *turns = turns_of(history, history_count, &count);
    struct str asked = text;
    for (size_t from = 0; from < count && asked.len == text.len; from++)
        asked = unpack(turns + from, count - from, text);
    free(turns);
    return asked;
}
