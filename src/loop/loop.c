#include "loop/loop.h"

#include "base/log.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>

#define HEAP_FIRST_ROOM 64
#define HEAP_SPARSE_PART 8 /* the heap halves when less than this part of it is used */
#define NEVER UINT64_MAX

/* The due time is beside the pointer, so that sorting does not touch the timers. */
struct slot {
    uint64_t due_ms, order;
    struct timer *timer;
};

struct loop {
    bool fake;
    uint64_t fake_now_ms;
    void *owner;

    struct list deferred;

    /* A heap of the waiting timers, the next one at the top. While a timer's callback runs, its
     * slot stays a hole that the next timer started may fill; mostly it is the same timer. */
    struct slot *heap;
    size_t heap_count, heap_room;
    bool hole;
    uint64_t next_order;

    /* Newest mail first. The thread that posts to an empty mailbox wakes the loop. */
    _Atomic(struct mail *) mailbox;

    /* Not on a fake loop. */
    uv_loop_t uv;
    uv_timer_t alarm; /* one for all timers of the heap */
    uint64_t alarm_ms;
    int bell_fd; /* an eventfd */
    uv_poll_t bell;
    uv_prepare_t before_wait;
    uv_check_t after_wait;
};

void loop_set_owner(struct loop *loop, void *owner) {
    loop->owner = owner;
}

void *loop_owner(const struct loop *loop) {
    return loop->owner;
}

/* --- deferred tasks ---------------------------------------------------------------------- */

void task_init(struct task *task, task_fn *fn, void *ctx) {
    list_init(&task->link);
    task->fn = fn;
    task->ctx = ctx;
}

void loop_defer(struct loop *loop, struct task *task) {
    if (!list_linked(&task->link)) list_append(&loop->deferred, &task->link);
}

void task_cancel(struct task *task) {
    list_remove(&task->link);
}

static void run_deferred(struct loop *loop) {
    struct list *link;
    while ((link = list_pop(&loop->deferred))) {
        struct task *task = CONTAINER_OF(link, struct task, link);
        task->fn(task->ctx);
    }
}

/* --- timers: the heap -------------------------------------------------------------------- */

static bool is_before(const struct slot *a, const struct slot *b) {
    if (a->due_ms != b->due_ms) return a->due_ms < b->due_ms;
    return a->order < b->order;
}

/* Places count from 1. Each has four children, which gives half the depth of a binary heap, and
 * the four are adjacent in memory. */
enum { CHILDREN = 4 };

static size_t parent_of(size_t place) {
    return (place - 2) / CHILDREN + 1;
}

static struct slot *slot_at(const struct loop *loop, size_t place) {
    return &loop->heap[place - 1];
}

static void put_at(struct loop *loop, size_t place, struct slot slot) {
    *slot_at(loop, place) = slot;
    if (slot.timer) slot.timer->place = place;
}

static void sift_up(struct loop *loop, size_t place, struct slot slot) {
    while (place > 1 && is_before(&slot, slot_at(loop, parent_of(place)))) {
        put_at(loop, place, *slot_at(loop, parent_of(place)));
        place = parent_of(place);
    }
    put_at(loop, place, slot);
}

/* The child of `place` that is due first, or 0 without children. */
static size_t first_child(const struct loop *loop, size_t place) {
    size_t child = (place - 1) * CHILDREN + 2, end = child + CHILDREN;
    if (child > loop->heap_count) return 0;
    if (end > loop->heap_count + 1) end = loop->heap_count + 1;
    size_t first = child;
    while (++child < end) {
        if (is_before(slot_at(loop, child), slot_at(loop, first))) first = child;
    }
    return first;
}

static void sift_down(struct loop *loop, size_t place, struct slot slot) {
    size_t child;
    while ((child = first_child(loop, place)) && is_before(slot_at(loop, child), &slot)) {
        put_at(loop, place, *slot_at(loop, child));
        place = child;
    }
    put_at(loop, place, slot);
}

static void sift(struct loop *loop, size_t place, struct slot slot) {
    if (place > 1 && is_before(&slot, slot_at(loop, parent_of(place)))) {
        sift_up(loop, place, slot);
    } else {
        sift_down(loop, place, slot);
    }
}

static void resize_heap(struct loop *loop, size_t room) {
    loop->heap = mem_resize(loop->heap, room * sizeof(struct slot));
    loop->heap_room = room;
}

static void heap_add(struct loop *loop, struct slot slot) {
    if (loop->hole) {
        loop->hole = false;
        sift_down(loop, 1, slot);
        return;
    }
    if (loop->heap_count == loop->heap_room)
        resize_heap(loop, loop->heap_room ? loop->heap_room * 2 : HEAP_FIRST_ROOM);
    loop->heap_count++;
    sift_up(loop, loop->heap_count, slot);
}

static void heap_remove(struct loop *loop, size_t place) {
    struct slot last = *slot_at(loop, loop->heap_count);
    loop->heap_count--;
    if (place <= loop->heap_count) sift(loop, place, last);
    bool sparse = loop->heap_count < loop->heap_room / HEAP_SPARSE_PART;
    if (sparse && loop->heap_room > HEAP_FIRST_ROOM) resize_heap(loop, loop->heap_room / 2);
}

static void close_hole(struct loop *loop) {
    if (!loop->hole) return;
    loop->hole = false;
    heap_remove(loop, 1);
}

/* --- timers: public functions ------------------------------------------------------------- */

void timer_init(struct timer *timer, struct loop *loop, task_fn *fn, void *ctx) {
    *timer = (struct timer){.loop = loop, .fn = fn, .ctx = ctx};
}

void timer_start(struct timer *timer, uint64_t in_ms) {
    struct loop *loop = timer->loop;
    uint64_t now_ms = loop_now_ms(loop);
    timer->due_ms = in_ms < NEVER - now_ms ? now_ms + in_ms : NEVER;
    struct slot slot = {timer->due_ms, loop->next_order++, timer};
    if (timer->place == 0) {
        heap_add(loop, slot);
    } else {
        sift(loop, timer->place, slot);
    }
}

void timer_stop(struct timer *timer) {
    size_t place = timer->place;
    timer->place = 0;
    if (place) heap_remove(timer->loop, place);
}

static uint64_t next_due_ms(const struct loop *loop) {
    return loop->heap_count ? loop->heap[0].due_ms : NEVER;
}

/* A timer that one of these callbacks starts waits for a later turn, even if it is due at once:
 * its order is not below `end`. Timers started earlier sort before it. */
static void fire_due(struct loop *loop) {
    uint64_t now_ms = loop_now_ms(loop);
    uint64_t end = loop->next_order;
    while (next_due_ms(loop) <= now_ms && loop->heap[0].order < end) {
        struct timer *timer = loop->heap[0].timer;
        assert(timer); /* a hole is closed before the next one fires */
        timer->place = 0;
        loop->heap[0].timer = NULL;
        loop->hole = true;
        timer->fn(timer->ctx);
        close_hole(loop);
    }
}

/* --- mail -------------------------------------------------------------------------------- */

/* Not uv_async_send(): where the loop takes the processor from the sender at once, libuv's
 * receiver spins until the sender has returned from its call, for up to 50 us. */
static void ring(const struct loop *loop) {
    static const uint64_t one = 1;
    while (write(loop->bell_fd, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
}

static void quiet(const struct loop *loop) {
    uint64_t rings;
    while (read(loop->bell_fd, &rings, sizeof(rings)) < 0 && errno == EINTR) {
    }
}

void loop_post(struct loop *loop, struct mail *mail, task_fn *fn, void *ctx) {
    mail->fn = fn;
    mail->ctx = ctx;
    struct mail *head = atomic_load_explicit(&loop->mailbox, memory_order_relaxed);
    do {
        mail->next = head;
    } while (!atomic_compare_exchange_weak_explicit(
        &loop->mailbox, &head, mail, memory_order_release, memory_order_relaxed));
    /* `mail` may already be gone. Only the first mail of a batch needs to ring. */
    if (!head && !loop->fake) ring(loop);
}

static struct mail *oldest_first(struct mail *newest) {
    struct mail *oldest = NULL;
    while (newest) {
        struct mail *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

static void deliver(struct loop *loop) {
    struct mail *newest = atomic_exchange_explicit(&loop->mailbox, NULL, memory_order_acquire);
    for (struct mail *mail = oldest_first(newest); mail;) {
        struct mail *next = mail->next;
        mail->fn(mail->ctx);
        mail = next;
    }
}

/* --- turns of a real loop ---------------------------------------------------------------- */

/* libuv runs due timers, then prepare handlers, then waits and handles sockets and mail, then
 * runs check handlers. The deferred tasks run in both places: those of timers before the wait,
 * and those of sockets after it. */

static void set_alarm(struct loop *loop);

static void on_alarm(uv_timer_t *alarm) {
    struct loop *loop = alarm->data;
    loop->alarm_ms = NEVER;
    fire_due(loop);
}

/* Mail that is posted after quiet() is taken now, or rings again. */
static void on_bell(uv_poll_t *bell, int status, int events) {
    (void)status;
    (void)events;
    quiet(bell->data);
    deliver(bell->data);
}

static void on_before_wait(uv_prepare_t *prepare) {
    struct loop *loop = prepare->data;
    run_deferred(loop);
    set_alarm(loop);
}

static void on_after_wait(uv_check_t *check) {
    run_deferred(check->data);
}

/* Called only just before the wait, so that starting and stopping a timer is heap work
 * alone. */
static void set_alarm(struct loop *loop) {
    uint64_t due_ms = next_due_ms(loop);
    if (due_ms == loop->alarm_ms) return;
    loop->alarm_ms = due_ms;
    if (due_ms == NEVER) {
        uv_timer_stop(&loop->alarm);
        return;
    }
    uint64_t now_ms = uv_now(&loop->uv);
    uv_timer_start(&loop->alarm, on_alarm, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

/* Startup ran out of descriptors or memory: there is no fallback. */
static void must(int result) {
    if (result == 0) return;
    log_last(LOG_ERROR, "cannot start an event loop: %s", uv_strerror(result));
    abort();
}

static struct loop *new_plain(bool fake) {
    struct loop *loop = MEM_NEW(struct loop);
    loop->fake = fake;
    loop->alarm_ms = NEVER;
    list_init(&loop->deferred);
    atomic_init(&loop->mailbox, NULL);
    return loop;
}

struct loop *loop_new(void) {
    struct loop *loop = new_plain(false);
    must(uv_loop_init(&loop->uv));
    must(uv_timer_init(&loop->uv, &loop->alarm));
    loop->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    must(loop->bell_fd < 0 ? -errno : uv_poll_init(&loop->uv, &loop->bell, loop->bell_fd));
    must(uv_prepare_init(&loop->uv, &loop->before_wait));
    must(uv_check_init(&loop->uv, &loop->after_wait));
    loop->alarm.data = loop->bell.data = loop;
    loop->before_wait.data = loop->after_wait.data = loop;
    must(uv_poll_start(&loop->bell, UV_READABLE, on_bell));
    must(uv_prepare_start(&loop->before_wait, on_before_wait));
    must(uv_check_start(&loop->after_wait, on_after_wait));
    return loop;
}

struct loop *loop_new_fake(void) {
    return new_plain(true);
}

static void close_handles(struct loop *loop) {
    uv_close((uv_handle_t *)&loop->alarm, NULL);
    uv_close((uv_handle_t *)&loop->bell, NULL);
    uv_close((uv_handle_t *)&loop->before_wait, NULL);
    uv_close((uv_handle_t *)&loop->after_wait, NULL);
    while (uv_run(&loop->uv, UV_RUN_DEFAULT)) { /* the last mail may have said stop */
    }
    close(loop->bell_fd);
    int left = uv_loop_close(&loop->uv);
    assert(left == 0);
    (void)left;
}

void loop_free(struct loop *loop) {
    if (!loop) return;
    deliver(loop); /* what a thread has posted while the loop stopped */
    if (!loop->fake) close_handles(loop);
    assert(list_empty(&loop->deferred));
    assert(loop->heap_count == 0);
    assert(!atomic_load(&loop->mailbox));
    free(loop->heap);
    free(loop);
}

void loop_run(struct loop *loop) {
    assert(!loop->fake);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *loop) {
    assert(!loop->fake);
    uv_stop(&loop->uv);
}

uint64_t loop_now_ms(const struct loop *loop) {
    return loop->fake ? loop->fake_now_ms : uv_now(&loop->uv);
}

struct uv_loop_s *loop_uv(struct loop *loop) {
    return loop->fake ? NULL : &loop->uv;
}

/* --- turns of a fake loop ---------------------------------------------------------------- */

void loop_turn(struct loop *loop) {
    assert(loop->fake);
    deliver(loop);
    run_deferred(loop);
}

void loop_advance(struct loop *loop, uint64_t ms) {
    assert(loop->fake);
    uint64_t end_ms = loop->fake_now_ms + ms;
    while (next_due_ms(loop) <= end_ms) {
        if (next_due_ms(loop) > loop->fake_now_ms) loop->fake_now_ms = next_due_ms(loop);
        fire_due(loop);
        loop_turn(loop);
    }
    loop->fake_now_ms = end_ms;
}
