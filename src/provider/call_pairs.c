#include "provider/call_pairs.h"

#include "base/map.h"
#include "base/mem.h"

#include <stdlib.h>

/* The calls with one id that wait for a result, all of one reply. */
struct call_line {
    size_t reply;  /* where the reply's calls begin */
    size_t first;  /* the oldest that waits; CALL_PAIRS_NONE: none does */
    size_t newest; /* whether it waits or not */
};

struct pairing {
    struct call_pairs *pairs;
    struct map *lines; /* by id, from `room` */
    struct call_line *room;
    size_t line_count;
    size_t *after; /* by call: the next call of its line */
};

static struct call_line *line_of(struct pairing *pairing, struct str id) {
    struct call_line *line = map_find(pairing->lines, id);
    if (line) return line;
    line = &pairing->room[pairing->line_count++];
    line->first = CALL_PAIRS_NONE;
    map_put(pairing->lines, id, line);
    return line;
}

static bool is_same_reply(const struct message *messages, size_t index, struct str own) {
    const struct message *before = &messages[index - 1], *call = &messages[index];
    return before->role == MESSAGE_TOOL_CALL &&
           str_equal(before->agent.len ? before->agent : own,
                     call->agent.len ? call->agent : own);
}

static void pair_call(struct pairing *pairing, struct str id, size_t index, size_t reply) {
    struct call_line *line = line_of(pairing, id);
    if (line->reply != reply || line->first == CALL_PAIRS_NONE)
        line->first = index;
    else
        pairing->after[line->newest] = index;
    pairing->after[index] = CALL_PAIRS_NONE;
    line->reply = reply;
    line->newest = index;
}

static void pair_result(struct pairing *pairing, struct str id, size_t index) {
    struct call_line *line = map_find(pairing->lines, id);
    if (!line) return;
    pairing->pairs->of[index] = line->newest;
    if (line->first == CALL_PAIRS_NONE) return;
    pairing->pairs->of[line->first] = index;
    line->first = pairing->after[line->first];
}

void call_pairs_init(struct call_pairs *pairs, const struct message *messages, size_t count,
                     struct str own) {
    size_t reply = 0;
    struct pairing pairing = {.pairs = pairs,
                              .lines = map_new(),
                              .room = mem_zero(count, sizeof(struct call_line)),
                              .after = mem_zero(count, sizeof(size_t))};
    pairs->of = mem_zero(count, sizeof(size_t));
    for (size_t i = 0; i < count; i++) {
        pairs->of[i] = CALL_PAIRS_NONE;
        if (messages[i].role == MESSAGE_TOOL_CALL) {
            if (i == 0 || !is_same_reply(messages, i, own)) reply = i;
            pair_call(&pairing, messages[i].call_id, i, reply);
        } else if (messages[i].role == MESSAGE_TOOL_RESULT) {
            pair_result(&pairing, messages[i].call_id, i);
        }
    }
    map_free(pairing.lines);
    free(pairing.room);
    free(pairing.after);
}

void call_pairs_done(struct call_pairs *pairs) {
    free(pairs->of);
    pairs->of = NULL;
}
