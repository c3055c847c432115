#include "contract/nimi/realtime/dialogue.h"

void dialogue_init(struct dialogue *dialogue) {
    dialogue->count = 0;
    buf_init(&dialogue->bytes, DIALOGUE_MAX_BYTES);
}

void dialogue_done(struct dialogue *dialogue) {
    buf_done(&dialogue->bytes);
}

static void drop_oldest(struct dialogue *dialogue, size_t turns) {
    size_t bytes = 0;
    for (size_t i = 0; i < turns; i++) bytes += dialogue->sizes[i];
    buf_drop(&dialogue->bytes, bytes);
    dialogue->count -= turns;
    memmove(dialogue->sizes, dialogue->sizes + turns,
            dialogue->count * sizeof(dialogue->sizes[0]));
}

/* How many of the oldest turns must go so that `len` more bytes fit. */
static size_t turns_in_the_way(const struct dialogue *dialogue, size_t len) {
    size_t turns = dialogue->count == DIALOGUE_TURNS_MAX, left = dialogue->bytes.len;
    if (turns) left -= dialogue->sizes[0];
    while (turns < dialogue->count && left + len > DIALOGUE_MAX_BYTES)
        left -= dialogue->sizes[turns++];
    return turns;
}

void dialogue_add(struct dialogue *dialogue, struct str turn) {
    drop_oldest(dialogue, turns_in_the_way(dialogue, turn.len));
    if (turn.len > DIALOGUE_MAX_BYTES) return;
    buf_append(&dialogue->bytes, turn);
    dialogue->sizes[dialogue->count++] = turn.len;
}
