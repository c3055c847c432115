#include "sidecar/replays.h"

#include "base/map.h"
#include "base/mem.h"
#include "wire/digest.h"

#include <stdlib.h>

struct replay {
    struct list link; /* among the answered ones, the oldest first */
    struct text key;
    uint8_t digest[DIGEST_BYTES];
    struct list waiting;
    bool answered;
    uint64_t until_ms;
    int status;
    struct text content_type, trace_id, body;
};

struct replays {
    struct map *by_key;
    struct list answered;
    size_t answered_bytes;
    uint64_t keep_ms;
};

struct replays *replays_new(uint64_t keep_ms) {
    struct replays *replays = MEM_NEW(struct replays);
    replays->by_key = map_new();
    replays->keep_ms = keep_ms;
    list_init(&replays->answered);
    return replays;
}

static void replay_free(struct replay *replay) {
    text_done(&replay->key);
    text_done(&replay->content_type);
    text_done(&replay->trace_id);
    text_done(&replay->body);
    free(replay);
}

/* Its own size counts, too. */
static size_t size_of(const struct replay *replay) {
    return sizeof(*replay) + replay->key.len + replay->body.len;
}

static void replays_forget(struct replays *replays, struct replay *replay) {
    map_remove(replays->by_key, text_str(replay->key));
    if (replay->answered) {
        list_remove(&replay->link);
        replays->answered_bytes -= size_of(replay);
    }
    replay_free(replay);
}

static struct replay *oldest(struct replays *replays) {
    if (list_empty(&replays->answered)) return NULL;
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left the list */
    return CONTAINER_OF(replays->answered.next, struct replay, link);
}

static void expire(struct replays *replays, uint64_t now_ms) {
    struct replay *first;
    while ((first = oldest(replays)) && first->until_ms <= now_ms)
        replays_forget(replays, first);
}

void replays_free(struct replays *replays) {
    struct replay *first;
    if (!replays) return;
    while ((first = oldest(replays))) replays_forget(replays, first);
    map_free(replays->by_key);
    free(replays);
}

static struct replay_answer replays_answer_of(const struct replay *replay) {
    return (struct replay_answer){replay->status, text_str(replay->content_type),
                                  text_str(replay->trace_id), text_str(replay->body)};
}

enum replay_claim replays_claim(struct replays *replays, struct str key, struct str request,
                                uint64_t now_ms, struct replay_waiter *waiter,
                                struct replay **ret_run, struct replay_answer *ret_answer) {
    uint8_t digest[DIGEST_BYTES];
    digest_text(request, digest);
    expire(replays, now_ms);
    struct replay *replay = map_find(replays->by_key, key);
    if (replay && memcmp(replay->digest, digest, DIGEST_BYTES) != 0) return REPLAY_CONFLICT;
    if (replay && replay->answered) {
        *ret_answer = replays_answer_of(replay);
        return REPLAY_ANSWERED;
    }
    if (replay) {
        list_append(&replay->waiting, &waiter->link);
        return REPLAY_WAIT;
    }
    if (map_count(replays->by_key) >= REPLAYS_MAX && oldest(replays))
        replays_forget(replays, oldest(replays));
    if (map_count(replays->by_key) >= REPLAYS_MAX) return REPLAY_FULL;
    replay = MEM_NEW(struct replay);
    replay->key = text_copy(key);
    memcpy(replay->digest, digest, DIGEST_BYTES);
    list_init(&replay->waiting);
    list_init(&replay->link);
    map_put(replays->by_key, key, replay);
    *ret_run = replay;
    return REPLAY_RUN;
}

static void replays_keep(struct replays *replays, struct replay *run,
                         const struct replay_answer *answer, uint64_t now_ms) {
    run->answered = true;
    run->status = answer->status;
    run->content_type = text_copy(answer->content_type);
    run->trace_id = text_copy(answer->trace_id);
    run->body = text_copy(answer->body);
    run->until_ms = now_ms + replays->keep_ms;
    list_append(&replays->answered, &run->link);
    replays->answered_bytes += size_of(run);
}

void replays_end(struct replays *replays, struct replay *run,
                 const struct replay_answer *answer, uint64_t now_ms) {
    struct list waiting, *link;
    list_init(&waiting);
    list_move(&run->waiting, &waiting);
    if (answer)
        replays_keep(replays, run, answer, now_ms);
    else
        replays_forget(replays, run);
    while ((link = list_pop(&waiting))) {
        struct replay_waiter *waiter = CONTAINER_OF(link, struct replay_waiter, link);
        waiter->on_answer(answer, waiter->ctx);
    }
    while (replays->answered_bytes > REPLAYS_MAX_BYTES && oldest(replays))
        replays_forget(replays, oldest(replays));
}

bool replays_check_key(struct str key, struct err *e) {
    bool good = key.len > 0 && key.len <= REPLAYS_KEY_MAX_BYTES;
    for (size_t i = 0; good && i < key.len; i++) good = key.at[i] >= ' ' && key.at[i] <= '~';
    return good ||
           err_set(e, ERR_MALFORMED, "an idempotency key is 1 to %d printable ASCII characters",
                   REPLAYS_KEY_MAX_BYTES);
}
