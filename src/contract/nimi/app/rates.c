#include "contract/nimi/app/rates.h"

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"

#include <pthread.h>
#include <stdlib.h>

#define KEY_MAX_BYTES (8 * KIB + 16)

/* The times of the last `max` messages of a sender or a pair, in a ring. */
struct counted {
    struct list link; /* in book->used, the one used longest ago first */
    struct text key;
    uint64_t broken_until_ms; /* of a pair */
    int way;                  /* of a pair's last message: see way_of() */
    size_t max, at;
    uint64_t times_ms[]; /* 0: none yet */
};

struct book {
    struct map *counted; /* key -> struct counted */
    struct list used;
};

struct rates {
    pthread_mutex_t lock;
    struct book senders, pairs;
};

static void book_init(struct book *book) {
    book->counted = map_new();
    list_init(&book->used);
}

static void counted_drop(struct book *book, struct counted *counted) {
    map_remove(book->counted, text_str(counted->key));
    list_remove(&counted->link);
    text_done(&counted->key);
    free(counted);
}

static void book_done(struct book *book) {
    LIST_EACH(&book->used, link) counted_drop(book, CONTAINER_OF(link, struct counted, link));
    map_free(book->counted);
}

struct rates *rates_new(void) {
    struct rates *rates = MEM_NEW(struct rates);
    pthread_mutex_init(&rates->lock, NULL);
    book_init(&rates->senders);
    book_init(&rates->pairs);
    return rates;
}

void rates_free(struct rates *rates) {
    if (!rates) return;
    book_done(&rates->senders);
    book_done(&rates->pairs);
    pthread_mutex_destroy(&rates->lock);
    free(rates);
}

static struct counted *counted_get(struct book *book, struct str key, size_t max) {
    struct counted *counted = map_find(book->counted, key);
    if (counted) {
        list_remove(&counted->link);
        list_append(&book->used, &counted->link);
        return counted;
    }
    if (map_count(book->counted) >= RATES_KEYS_MAX)
        counted_drop(book, CONTAINER_OF(book->used.next, struct counted, link));
    counted = mem_zero(1, sizeof(*counted) + max * sizeof(counted->times_ms[0]));
    counted->key = text_copy(key);
    counted->max = max;
    list_append(&book->used, &counted->link);
    map_put(book->counted, text_str(counted->key), counted);
    return counted;
}

/* Whether the oldest of the last `max` is still within the window. */
static bool counted_is_full(const struct counted *counted, uint64_t now_ms) {
    uint64_t oldest_ms = counted->times_ms[counted->at];
    return oldest_ms && now_ms < oldest_ms + RATES_WINDOW_MS;
}

static void counted_note(struct counted *counted, uint64_t now_ms) {
    counted->times_ms[counted->at] = now_ms;
    counted->at = (counted->at + 1) % counted->max;
}

/* 1 one way, -1 the other way, 0 an app's to itself. */
static int way_of(struct str from, struct str to) {
    if (from.len != to.len) return from.len < to.len ? 1 : -1;
    int order = memcmp(from.at, to.at, from.len);
    return (order < 0) - (order > 0);
}

/* Ids hold no control characters, so no two pairs have the same key. */
static struct str pair_key(struct buf *out, struct str from, struct str to) {
    bool swap = way_of(from, to) < 0;
    buf_append(out, swap ? to : from);
    buf_append_byte(out, '\n');
    buf_append(out, swap ? from : to);
    return buf_str(out);
}

static enum rates_verdict rates_judge(struct rates *rates, struct str from,
                                      struct str pair_name, int way, uint64_t now_ms) {
    struct counted *pair = counted_get(&rates->pairs, pair_name, RATES_PAIR_MAX);
    struct counted *sender = counted_get(&rates->senders, from, RATES_SENDER_MAX);
    if (now_ms < pair->broken_until_ms) return RATES_LOOP;
    if (counted_is_full(sender, now_ms)) return RATES_TOO_MANY;
    bool answers = way == 0 || way != pair->way;
    if (answers && counted_is_full(pair, now_ms)) {
        pair->broken_until_ms = now_ms + RATES_BROKEN_MS;
        return RATES_LOOP;
    }
    counted_note(sender, now_ms);
    if (answers) counted_note(pair, now_ms);
    pair->way = way;
    return RATES_OK;
}

enum rates_verdict rates_send(struct rates *rates, struct str from, struct str to,
                              uint64_t now_ms) {
    struct buf name;
    buf_init(&name, KEY_MAX_BYTES);
    struct str pair_name = pair_key(&name, from, to);
    pthread_mutex_lock(&rates->lock);
    enum rates_verdict verdict = rates_judge(rates, from, pair_name, way_of(from, to), now_ms);
    pthread_mutex_unlock(&rates->lock);
    buf_done(&name);
    return verdict;
}
