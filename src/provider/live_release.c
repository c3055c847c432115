#include "provider/live_inner.h"

#include <assert.h>
#include <stdlib.h>

static void live_drop_messages(struct live *live) {
    LIST_EACH(&live->messages, link) {
        struct live_message *message = CONTAINER_OF(link, struct live_message, link);
        list_remove(&message->link);
        text_done(&message->text);
        free(message);
    }
}

void live_release(struct live *live) {
    if (!live->freed || live->inside) return;
    assert(!live->call);
    live_drop_messages(live);
    task_cancel(&live->go_on);
    text_done(&live->name);
    text_done(&live->instructions);
    buf_done(&live->response);
    buf_done(&live->out);
    buf_done(&live->room);
    free(live);
}
