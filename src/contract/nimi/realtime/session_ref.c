/* The references to a session, and its end with the last one. */
#include "contract/nimi/realtime/session.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

void realtime_input_free(struct realtime_input *input) {
    if (!input) return;
    buf_done(&input->spec);
    buf_done(&input->sound);
    free(input);
}

struct realtime_session *realtime_ref(struct realtime_session *session) {
    atomic_fetch_add_explicit(&session->refs, 1, memory_order_relaxed);
    return session;
}

void realtime_unref(struct realtime_session *session) {
    if (!session || atomic_fetch_sub_explicit(&session->refs, 1, memory_order_acq_rel) != 1)
        return;
    assert(!session->turn && !session->live && !list_linked(&session->link));
    LIST_EACH(&session->inputs, link) {
        realtime_input_free(CONTAINER_OF(link, struct realtime_input, link));
    }
    topic_unref(session->topic);
    mem_uncount(session->counted);
    dialogue_done(&session->dialogue);
    text_done(&session->app);
    text_done(&session->subject);
    text_done(&session->owner);
    text_done(&session->audio_format);
    buf_done(&session->head);
    buf_done(&session->system);
    pthread_mutex_destroy(&session->lock);
    free(session);
}
