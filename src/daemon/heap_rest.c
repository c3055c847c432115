#include "daemon/heap_rest.h"

#include "base/heap.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/program.h"
#include "daemon/code_rest.h"
#include "store/store.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#define TIDY_EVERY_MS 15000
#define TIDY_FIRST_MS 2000      /* the start frees much memory */
#define TIDY_SECOND_MS 4000     /* after the first: the store has settled */
#define TIDY_AFTER_BURST_MS 250 /* whether a rest has begun */
#define LOOK_AFTER_MS 500
#define WORTH_BYTES                                                                            \
    (32 * KIB) /* freed since the last time are worth it, at the regular looks */
#define STACK_BYTES (64 * KIB)

/* One loop, and its part of a rest. */
struct resting {
    struct heap_rest *rest;
    struct loop *loop;
    struct mail mail;
    struct heap_cache *cache;
};

struct heap_rest {
    struct heap_rest_options options;
    struct timer tidy, look, trim;
    struct mail freed, much, taken, given;
    bool serving, stopped;
    uint64_t again_ms; /* from the next regular look to the one after it */
    struct code_rest code;
    size_t tidied;  /* things freed because of their age, since the last time */
    bool busy;      /* from a look until everything was given back */
    bool regular;   /* it began with a regular look */
    bool code_goes; /* at the end of that */
    struct resting *loops;
    struct heap_cache *caches; /* of the loops, and of the store's thread */
    size_t count;
    atomic_size_t awaited; /* caches that have not arrived yet */
    pthread_t thread;
    bool has_thread;
};

/* --- giving back, on its own thread ------------------------------------------------------- */

/* After a regular look, and what it gave back. */
static void end_regular(struct heap_rest *rest) {
    if (rest->code_goes) program_let_go();
    code_rest_looked(&rest->code, machine_used_us());
    rest->regular = rest->code_goes = false;
}

/* What the burst used does not count: if a rest follows, the next look finds it. */
static void end_burst(struct heap_rest *rest) {
    code_rest_looked(&rest->code, machine_used_us());
    timer_start(&rest->tidy, TIDY_AFTER_BURST_MS);
}

static void on_given(void *ctx) {
    struct heap_rest *rest = ctx;
    heap_rest_wait(rest);
    rest->busy = false;
    if (rest->regular)
        end_regular(rest);
    else if (rest->serving)
        end_burst(rest);
    if (rest->options.rested) rest->options.rested(rest->options.ctx);
}

static void *give_back(void *ctx) {
    struct heap_rest *rest = ctx;
    heap_give_back(rest->caches, rest->count);
    loop_post(rest->options.home, &rest->given, on_given, rest);
    return NULL;
}

/* If no thread can be created, the loop does it. */
static void heap_rest_on_taken(void *ctx) {
    struct heap_rest *rest = ctx;
    sigset_t all, before;
    pthread_attr_t small;
    if (!rest->serving) return;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    rest->has_thread = pthread_create(&rest->thread, &small, give_back, rest) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&small);
    if (!rest->has_thread) give_back(rest);
}

/* --- handing over ------------------------------------------------------------------------- */

static void heap_rest_hand_over(struct heap_rest *rest, struct heap_cache *cache) {
    *cache = heap_cache_take();
    if (atomic_fetch_sub(&rest->awaited, 1) == 1)
        loop_post(rest->options.home, &rest->taken, heap_rest_on_taken, rest);
}

static void on_loop(void *ctx) {
    struct resting *resting = ctx;
    heap_rest_hand_over(resting->rest, resting->cache);
}

static void on_store(void *ctx) {
    struct heap_rest *rest = ctx;
    heap_rest_hand_over(rest, &rest->caches[rest->options.loop_count]);
}

static void rest_now(struct heap_rest *rest) {
    rest->busy = true;
    atomic_store(&rest->awaited, rest->count);
    for (size_t i = 0; i < rest->options.loop_count; i++) {
        struct resting *resting = &rest->loops[i];
        loop_post(resting->loop, &resting->mail, on_loop, resting);
    }
    store_rest(rest->options.store, rest->options.home, on_store, rest);
}

/* --- looking ------------------------------------------------------------------------------ */

/* A session takes little, and may be the last on its page. So freeing it for its age alone
 * is worth it: the caches, which have filled again since the last time, may hide it from the
 * check. */
static void on_tidy(void *ctx) {
    struct heap_rest *rest = ctx;
    uint64_t used_us = machine_used_us(); /* what the look itself uses does not count */
    timer_start(&rest->tidy, rest->again_ms);
    rest->again_ms = TIDY_EVERY_MS;
    rest->tidied += rest->options.tidy(rest->options.ctx);
    if (!rest->serving || rest->busy) return;
    bool worth = heap_may_give_back(WORTH_BYTES) || rest->tidied;
    rest->tidied = 0;
    rest->regular = true;
    rest->code_goes = code_rest_look(&rest->code, used_us);
    if (worth) {
        rest_now(rest);
    } else {
        end_regular(rest);
    }
}

static void on_trim(void *ctx) {
    struct heap_rest *rest = ctx;
    uint64_t again_ms = rest->options.trim(rest->options.ctx);
    if (again_ms) timer_start(&rest->trim, again_ms);
}

static void trim_soon(void *ctx) {
    struct heap_rest *rest = ctx;
    if (!rest->stopped) timer_start(&rest->trim, rest->options.trim_ms);
}

void heap_rest_trim(struct heap_rest *rest) {
    loop_post(rest->options.home, &rest->much, trim_soon, rest);
}

static void on_look(void *ctx) {
    struct heap_rest *rest = ctx;
    if (rest->busy) {
        timer_start(&rest->look, LOOK_AFTER_MS);
        return;
    }
    bool worth = mem_much_freed();
    mem_watch(worth ? MEM_FROM_NOW : MEM_FROM_BEFORE);
    if (worth) rest_now(rest);
}

static void look_soon(void *ctx) {
    struct heap_rest *rest = ctx;
    if (rest->serving) timer_start(&rest->look, LOOK_AFTER_MS);
}

static void on_freed(void *ctx) {
    struct heap_rest *rest = ctx;
    loop_post(rest->options.home, &rest->freed, look_soon, rest);
}

/* --- life --------------------------------------------------------------------------------- */

struct heap_rest *heap_rest_new(const struct heap_rest_options *options) {
    struct heap_rest *rest = MEM_NEW(struct heap_rest);
    rest->options = *options;
    rest->options.loops = NULL;
    rest->count = options->loop_count + 1;
    rest->again_ms = TIDY_SECOND_MS;
    rest->caches = mem_zero(rest->count, sizeof(*rest->caches));
    rest->loops = mem_zero(options->loop_count, sizeof(*rest->loops));
    for (size_t i = 0; i < options->loop_count; i++) {
        rest->loops[i] = (struct resting){
            .rest = rest, .loop = options->loops[i], .cache = &rest->caches[i]};
    }
    timer_init(&rest->tidy, options->home, on_tidy, rest);
    timer_init(&rest->look, options->home, on_look, rest);
    timer_init(&rest->trim, options->home, on_trim, rest);
    timer_start(&rest->tidy, TIDY_FIRST_MS);
    return rest;
}

void heap_rest_start(struct heap_rest *rest) {
    rest->serving = true;
    mem_freed_with(on_freed, rest);
}

void heap_rest_stop(struct heap_rest *rest) {
    rest->serving = false;
    rest->stopped = true;
    timer_stop(&rest->tidy);
    timer_stop(&rest->look);
    timer_stop(&rest->trim);
    mem_unwatch();
}

void heap_rest_wait(struct heap_rest *rest) {
    if (rest->has_thread) pthread_join(rest->thread, NULL);
    rest->has_thread = false;
}

void heap_rest_free(struct heap_rest *rest) {
    if (!rest) return;
    mem_freed_with(NULL, NULL);
    for (size_t i = 0; i < rest->count; i++) heap_cache_free(&rest->caches[i]);
    free(rest->loops);
    free(rest->caches);
    free(rest);
}
