#include "orchestrator/talks_inner.h"

#include <stdlib.h>

void talk_unref(struct talk *talk) {
    if (--talk->refs) return;
    struct talks *talks = talk->talks;
    list_remove(&talk->link);
    for (size_t i = 0; i < talk->turn_count; i++) talk_turn_done(&talk->turns[i]);
    workspace_unref(talk->workspace);
    text_done(&talk->message);
    text_done(&talk->text);
    text_done(&talk->asked);
    text_done(&talk->local_id);
    text_done(&talk->attachments);
    free(talk);
    talks_check_stopped(talks);
}
