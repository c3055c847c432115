#include "stream/pages.h"

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/striped.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define STRIPES 16
#define PAGE_FIRST_EVENTS 16

struct page {
    struct list link; /* in its stripe, most recently read first */
    struct pages_run *run;
    uint64_t first_seq;
    struct buf bytes;
    uint32_t *ends; /* the end of each event */
    size_t count, room;
    size_t held;      /* bytes as counted in the cache */
    uint64_t touched; /* the cache's clock when it was last put or read */
    enum pages_end end;
    enum err_code code;
};

struct stripe {
    pthread_mutex_t lock;
    struct map *runs;
    struct list pages;
    _Atomic uint64_t oldest; /* when its last page was touched; NEVER without pages */
};

#define NEVER UINT64_MAX

struct pages_run {
    struct pages *pages;
    struct stripe *stripe;
    uint64_t run;
    size_t users;
    struct page **sorted; /* by first_seq */
    size_t count, room;
};

struct pages {
    size_t max_bytes;
    atomic_size_t held;
    _Atomic uint64_t generation;
    _Atomic uint64_t clock; /* advances with each put */
    struct striped *stripes;
};

static struct str run_key(const uint64_t *run) {
    return str_of((const char *)run, sizeof(*run));
}

/* --- creating and freeing ----------------------------------------------------------------- */

struct pages *pages_new(size_t max_bytes) {
    struct pages *pages = MEM_NEW(struct pages);
    pages->max_bytes = max_bytes;
    atomic_init(&pages->held, 0);
    atomic_init(&pages->generation, 1);
    atomic_init(&pages->clock, 0);
    pages->stripes = STRIPED_NEW(STRIPES, struct stripe);
    for (size_t i = 0; i < STRIPES; i++) {
        struct stripe *stripe = striped_at(pages->stripes, i);
        stripe->runs = map_new();
        list_init(&stripe->pages);
        atomic_init(&stripe->oldest, NEVER);
    }
    return pages;
}

void pages_free(struct pages *pages) {
    if (!pages) return;
    pages_shrink(pages, 0);
    for (size_t i = 0; i < STRIPES; i++) {
        struct stripe *stripe = striped_at(pages->stripes, i);
        assert(map_count(stripe->runs) == 0);
        map_free(stripe->runs);
    }
    striped_free(pages->stripes);
    free(pages);
}

uint64_t pages_generation(const struct pages *pages) {
    return atomic_load_explicit(&pages->generation, memory_order_acquire);
}

size_t pages_held(const struct pages *pages) {
    return atomic_load_explicit(&pages->held, memory_order_relaxed);
}

size_t pages_max(const struct pages *pages) {
    return pages->max_bytes;
}

/* Called with the lock held. */
static void run_release(struct pages_run *run) {
    if (run->users || run->count) return;
    map_remove(run->stripe->runs, run_key(&run->run));
    free(run->sorted);
    free(run);
}

struct pages_run *pages_open(struct pages *pages, uint64_t id) {
    struct stripe *stripe = striped_lock(pages->stripes, run_key(&id));
    struct pages_run *run = map_find(stripe->runs, run_key(&id));
    if (!run) {
        run = MEM_NEW(struct pages_run);
        *run = (struct pages_run){.pages = pages, .stripe = stripe, .run = id};
        map_put(stripe->runs, run_key(&id), run);
    }
    run->users++;
    pthread_mutex_unlock(&stripe->lock);
    return run;
}

void pages_close(struct pages_run *run) {
    if (!run) return;
    struct stripe *stripe = run->stripe;
    pthread_mutex_lock(&stripe->lock);
    run->users--;
    run_release(run);
    pthread_mutex_unlock(&stripe->lock);
}

/* --- pages of a run ----------------------------------------------------------------------- */

static uint64_t last_seq(const struct page *page) {
    return page->first_seq + page->count - 1;
}

/* Number of pages that begin at or before `seq`. */
static size_t pages_until(const struct pages_run *run, uint64_t seq) {
    size_t low = 0, high = run->count;
    if (high && run->sorted[high - 1]->first_seq <= seq) return high; /* usual: live readers */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (run->sorted[middle]->first_seq <= seq) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct page *page_new(struct pages_run *run, size_t place, uint64_t seq) {
    struct page *page = MEM_NEW(struct page);
    page->run = run;
    page->first_seq = seq;
    buf_init(&page->bytes, SIZE_MAX / 2);
    if (run->count == run->room) {
        run->room = run->room ? 2 * run->room : 4;
        run->sorted = mem_resize(run->sorted, run->room * sizeof(struct page *));
    }
    memmove(run->sorted + place + 1, run->sorted + place,
            (run->count - place) * sizeof(struct page *));
    run->sorted[place] = page;
    run->count++;
    list_init(&page->link);
    list_prepend(&run->stripe->pages, &page->link);
    return page;
}

/* Called with the lock held, when the last page or its time has changed. */
static void stripe_note_oldest(struct stripe *stripe) {
    struct list *last = stripe->pages.prev;
    bool none = last == &stripe->pages;
    uint64_t oldest = none ? NEVER : CONTAINER_OF(last, struct page, link)->touched;
    atomic_store_explicit(&stripe->oldest, oldest, memory_order_relaxed);
}

static void page_free(struct page *page) {
    struct pages_run *run = page->run;
    struct stripe *stripe = run->stripe;
    size_t place = pages_until(run, page->first_seq) - 1;
    assert(run->sorted[place] == page);
    run->count--;
    memmove(run->sorted + place, run->sorted + place + 1,
            (run->count - place) * sizeof(struct page *));
    atomic_fetch_sub_explicit(&run->pages->held, page->held, memory_order_relaxed);
    list_remove(&page->link);
    stripe_note_oldest(stripe);
    buf_done(&page->bytes);
    free(page->ends);
    free(page);
    run_release(run);
}

static void page_touch(struct page *page, uint64_t now) {
    struct stripe *stripe = page->run->stripe;
    page->touched = now;
    if (stripe->pages.next != &page->link) {
        list_remove(&page->link);
        list_prepend(&stripe->pages, &page->link);
    }
    stripe_note_oldest(stripe);
}

static void page_recount(struct page *page) {
    size_t held = sizeof(*page) + page->bytes.room + page->room * sizeof(uint32_t);
    atomic_fetch_add_explicit(&page->run->pages->held, held - page->held, memory_order_relaxed);
    page->held = held;
}

/* --- eviction ----------------------------------------------------------------------------- */

static struct stripe *stripe_with_the_oldest(struct pages *pages) {
    struct stripe *found = NULL;
    uint64_t oldest = NEVER;
    for (size_t i = 0; i < STRIPES; i++) {
        struct stripe *stripe = striped_at(pages->stripes, i);
        uint64_t touched = atomic_load_explicit(&stripe->oldest, memory_order_relaxed);
        if (touched < oldest) {
            oldest = touched;
            found = stripe;
        }
    }
    return found;
}

/* Drop the last page of the stripe unless it is `keep`, which is not read: it may be gone. */
static bool stripe_drop_last(struct stripe *stripe, const struct page *keep) {
    bool dropped = true;
    pthread_mutex_lock(&stripe->lock);
    struct list *last = stripe->pages.prev;
    if (last != &stripe->pages) {
        struct page *page = CONTAINER_OF(last, struct page, link);
        dropped = page != keep;
        if (dropped) page_free(page);
    }
    pthread_mutex_unlock(&stripe->lock);
    return dropped;
}

static void shrink_but(struct pages *pages, size_t bytes, const struct page *keep) {
    while (pages_held(pages) > bytes) {
        struct stripe *stripe = stripe_with_the_oldest(pages);
        if (!stripe || !stripe_drop_last(stripe, keep)) return;
    }
}

void pages_shrink(struct pages *pages, size_t bytes) {
    shrink_but(pages, bytes, NULL);
}

void pages_drop_all(struct pages *pages) {
    atomic_fetch_add_explicit(&pages->generation, 1, memory_order_acq_rel);
    for (size_t i = 0; i < STRIPES; i++) {
        struct stripe *stripe = striped_at(pages->stripes, i);
        pthread_mutex_lock(&stripe->lock);
        LIST_EACH(&stripe->pages, link) {
            page_free(CONTAINER_OF(link, struct page, link));
        }
        pthread_mutex_unlock(&stripe->lock);
    }
}

/* --- putting ------------------------------------------------------------------------------ */

static void page_add(struct page *page, const struct pages_event *event) {
    if (page->count == page->room) {
        page->room = page->room ? 2 * page->room : PAGE_FIRST_EVENTS;
        page->ends = mem_resize(page->ends, page->room * sizeof(uint32_t));
    }
    bool fits = buf_append(&page->bytes, event->bytes);
    assert(fits && page->bytes.len <= UINT32_MAX);
    (void)fits;
    page->ends[page->count++] = (uint32_t)page->bytes.len;
    page->end = event->end;
    page->code = event->code;
    page_recount(page);
}

/* The page before the event, if the event can be added to it. */
static struct page *page_to_extend(struct pages_run *run, size_t place,
                                   const struct pages_event *event) {
    struct page *before = place ? run->sorted[place - 1] : NULL;
    if (!before || last_seq(before) + 1 != event->seq) return NULL;
    bool room = before->bytes.len + event->bytes.len <= PAGE_BYTES;
    return room ? before : NULL;
}

/* `place` is the result of pages_until(). */
static bool pages_is_there(const struct pages_run *run, size_t place, uint64_t seq) {
    return place && last_seq(run->sorted[place - 1]) >= seq;
}

bool pages_has(struct pages_run *run, uint64_t seq) {
    pthread_mutex_lock(&run->stripe->lock);
    bool there = pages_is_there(run, pages_until(run, seq), seq);
    pthread_mutex_unlock(&run->stripe->lock);
    return there;
}

bool pages_put(struct pages_run *run, uint64_t generation, const struct pages_event *event) {
    struct pages *pages = run->pages;
    struct stripe *stripe = run->stripe;
    struct page *page = NULL;
    pthread_mutex_lock(&stripe->lock);
    bool valid = generation == pages_generation(pages);
    size_t place = pages_until(run, event->seq);
    if (valid && !pages_is_there(run, place, event->seq)) {
        page = page_to_extend(run, place, event);
        if (!page) page = page_new(run, place, event->seq);
        page_add(page, event);
        page_touch(page, atomic_fetch_add_explicit(&pages->clock, 1, memory_order_relaxed) + 1);
    }
    pthread_mutex_unlock(&stripe->lock);
    if (page) shrink_but(pages, pages->max_bytes, page);
    return valid;
}

/* --- reading ------------------------------------------------------------------------------ */

/* Index of the first event of `page` that ends after `at`, or its count. */
static size_t event_after(const struct page *page, size_t at) {
    size_t low = 0, high = page->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (page->ends[middle] <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Copy from one page; returns the bytes copied. */
static size_t page_read(struct page *page, struct pages_place *place, size_t max_bytes,
                        struct buf *out) {
    size_t index = (size_t)(place->seq + 1 - page->first_seq);
    size_t from = (index ? page->ends[index - 1] : 0) + place->skip;
    assert(from <= page->ends[index]);
    size_t to = page->bytes.len - from > max_bytes ? from + max_bytes : page->bytes.len;
    if (!buf_append(out, str_of(page->bytes.at + from, to - from))) return 0;
    size_t next = event_after(page, to);
    size_t begins = next ? page->ends[next - 1] : 0;
    place->seq = page->first_seq + next - 1;
    place->skip = to - begins;
    return to - from;
}

bool pages_read(struct pages_run *run, struct pages_place *place, size_t max_bytes,
                struct buf *out, enum pages_end *ret_end, enum err_code *ret_code) {
    bool found = false;
    pthread_mutex_lock(&run->stripe->lock);
    while (max_bytes) {
        size_t until = pages_until(run, place->seq + 1);
        struct page *page = until ? run->sorted[until - 1] : NULL;
        if (!page || last_seq(page) <= place->seq) break;
        found = true;
        page_touch(page, atomic_load_explicit(&run->pages->clock, memory_order_relaxed));
        max_bytes -= page_read(page, place, max_bytes, out);
        if (!buf_ok(out)) break;
        if (place->seq == last_seq(page) && page->end != PAGES_GOES_ON) {
            *ret_end = page->end;
            *ret_code = page->code;
            break;
        }
    }
    pthread_mutex_unlock(&run->stripe->lock);
    return found;
}
