/* Which turn a tool call comes from: runtimes say what an agent asks before they ask it. */
#include "orchestrator/talks_inner.h"

static bool talk_claim_is_of(const struct talk *talk, const struct workspace *workspace) {
    return str_equal(talk->workspace->id, workspace->id) &&
           str_equal(talk->workspace->conversation, workspace->conversation);
}

static bool claim(struct talk *talk, struct str slug, struct str message,
                  struct talk_asker *ret, bool *ret_turns) {
    for (size_t i = 0; i < talk->turn_count; i++) {
        struct talk_turn *turn = &talk->turns[i];
        if (!turn->turn || turn_ended(turn->turn)) continue;
        *ret_turns = true;
        const struct turn_part *part = turn_claim(turn->turn, slug, message);
        if (!part) continue;
        *ret = (struct talk_asker){part->agent->slug, part->id, text_str(talk->message)};
        return true;
    }
    return false;
}

bool talks_claim(struct talks *talks, const struct workspace *workspace, struct str slug,
                 struct str message, struct talk_asker *ret, bool *ret_turns) {
    *ret_turns = false;
    LIST_EACH(&talks->all, link) {
        struct talk *talk = CONTAINER_OF(link, struct talk, link);
        if (talk_claim_is_of(talk, workspace) && claim(talk, slug, message, ret, ret_turns))
            return true;
    }
    return false;
}
