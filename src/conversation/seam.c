#include "conversation/seam.h"

#include "base/map.h"

/* Whether this speaker has spoken before; marks it as having spoken. */
static bool has_spoken(struct seam *seam, uint64_t speaker) {
    for (size_t i = 0; i < seam->speaker_count; i++) {
        if (seam->speakers[i] == speaker) return true;
    }
    if (seam->speaker_count == SEAM_SPEAKERS_MAX) return true;
    seam->speakers[seam->speaker_count++] = speaker;
    return false;
}

bool seam_note(struct seam *seam, const struct event *event, enum seam_of of) {
    switch (event->kind) {
    case EVENT_TEXT: break;
    case EVENT_USAGE: /* one for each reply, after its text */
    case EVENT_TOOL_CALL:
    case EVENT_APPROVAL: seam->reply_over = true; return false;
    default: return false;
    }
    seam->reply_over = false;
    return has_spoken(seam, of == SEAM_OF_STREAM ? 0 : map_hash(event->agent));
}
