#include "wire/reply_event.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

void reply_event_each(const struct reply_event *event, reply_event_fn *fn, void *ctx) {
    if (event->kind != REPLY_TEXT || !event->pieces) {
        fn(event, ctx);
        return;
    }
    const struct reply_pieces *pieces = event->pieces;
    struct reply_event piece = *event;
    struct str rest = event->text;
    piece.pieces = NULL;
    for (size_t i = 0; i < pieces->count; i++) {
        piece.text = str_head(rest, pieces->lens[i]);
        rest = str_skip(rest, pieces->lens[i]);
        fn(&piece, ctx);
    }
    assert(rest.len == 0);
}

/* Returns where the next text goes. */
static char *copy_text(struct str *text, char *at) {
    if (text->len) memcpy(at, text->at, text->len);
    *text = str_of(at, text->len);
    return at + text->len;
}

struct reply_copy *reply_event_copy(const struct reply_event *event) {
    bool counts = event->kind == REPLY_USAGE;
    size_t len = event->text.len + event->call_id.len + event->name.len + event->args.len;
    if (counts) len += event->usage->model.len;
    assert(event->kind != REPLY_ARTIFACT && event->kind != REPLY_VECTOR);
    struct reply_copy *copy = mem_alloc(sizeof(*copy) + len); /* its text comes after it */
    list_init(&copy->link);
    copy->event = *event;
    if (event->kind == REPLY_TEXT) copy->event.pieces = NULL;
    char *at = copy_text(&copy->event.text, (char *)(copy + 1));
    at = copy_text(&copy->event.call_id, at);
    at = copy_text(&copy->event.name, at);
    at = copy_text(&copy->event.args, at);
    if (!counts) return copy;
    copy->usage = *event->usage;
    copy->event.usage = &copy->usage;
    copy_text(&copy->usage.model, at);
    return copy;
}

void reply_copy_free(struct reply_copy *copy) {
    if (!copy) return;
    list_remove(&copy->link);
    free(copy);
}
