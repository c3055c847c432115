#include "orchestrator/agent_asks_inner.h"

#include <stdlib.h>

void agent_ask_unref(struct agent_ask *ask) {
    if (--ask->refs) return;
    list_remove(&ask->link);
    timer_stop(&ask->again);
    turn_free(ask->turn);
    workspace_unref(ask->workspace);
    text_done(&ask->slug);
    text_done(&ask->request);
    text_done(&ask->message);
    text_done(&ask->root);
    text_done(&ask->path);
    text_done(&ask->asked);
    buf_done(&ask->failure);
    free(ask);
}
