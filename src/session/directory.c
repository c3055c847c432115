#include "session/directory.h"

#include "base/mem.h"
#include "base/striped.h"
#include "session/dormant_runs.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#define STRIPE_BITS 8

struct run_stripe {
    pthread_mutex_t lock;
    struct list runs;
};

struct directory {
    struct striped *stripes; /* by run id */
    struct dormant_runs *dormant;
};

/* A message on its way to the run's loop. */
struct order {
    struct mail mail;
    struct directory *directory;
    uint64_t run;
    void (*obey)(const struct live *live, const struct order *order);
    struct leaving leaving;
    struct str text, print;
    char room[]; /* for both */
};

struct directory *directory_new(void) {
    struct directory *directory = MEM_NEW(struct directory);
    directory->dormant = dormant_runs_new();
    directory->stripes = STRIPED_NEW(1u << STRIPE_BITS, struct run_stripe);
    struct run_stripe *stripe;
    for (size_t i = 0; (stripe = striped_at(directory->stripes, i)); i++)
        list_init(&stripe->runs);
    return directory;
}

void directory_free(struct directory *directory) {
    if (!directory) return;
    const struct run_stripe *stripe;
    for (size_t i = 0; (stripe = striped_at(directory->stripes, i)); i++)
        assert(list_empty(&stripe->runs));
    striped_free(directory->stripes);
    dormant_runs_free(directory->dormant);
    free(directory);
}

struct dormant_runs *directory_dormant(const struct directory *directory) {
    return directory->dormant;
}

/* The numbers of runs are our own, so the hash needs no secret. Knuth, "The Art of Computer
 * Programming" 6.4: multiplicative hashing. */
static size_t stripe_index(uint64_t run) {
    return (size_t)(run * UINT64_C(0x9E3779B97F4A7C15) >> (64 - STRIPE_BITS));
}

static struct run_stripe *lock_stripe(struct directory *directory, uint64_t run) {
    struct run_stripe *stripe = striped_at(directory->stripes, stripe_index(run));
    pthread_mutex_lock(&stripe->lock);
    return stripe;
}

void directory_add(struct directory *directory, struct live *live) {
    struct run_stripe *stripe = lock_stripe(directory, live->run);
    list_append(&stripe->runs, &live->link);
    pthread_mutex_unlock(&stripe->lock);
}

void directory_remove(struct directory *directory, struct live *live) {
    struct run_stripe *stripe = lock_stripe(directory, live->run);
    list_remove(&live->link);
    pthread_mutex_unlock(&stripe->lock);
}

static struct live *run_directory_find(struct run_stripe *stripe, uint64_t run) {
    LIST_EACH(&stripe->runs, link) {
        struct live *live = CONTAINER_OF(link, struct live, link);
        if (live->run == run) return live;
    }
    return NULL;
}

bool directory_find(struct directory *directory, uint64_t run, struct live_view *ret) {
    struct run_stripe *stripe = lock_stripe(directory, run);
    const struct live *live = run_directory_find(stripe, run);
    if (live) {
        *ret = (struct live_view){.journal = journal_ref(live->journal),
                                  .workspace = live->workspace,
                                  .user = live->user,
                                  .session = live->session,
                                  .state = atomic_load(&live->state)};
        struct str *texts[] = {&ret->workspace, &ret->user, &ret->session};
        buf_keep_texts(&ret->names, texts, ARRAY_LEN(texts));
    }
    pthread_mutex_unlock(&stripe->lock);
    return live != NULL;
}

void live_view_done(struct live_view *view) {
    journal_unref(view->journal);
    buf_done(&view->names);
    *view = (struct live_view){0};
}

static bool is_of(const struct live *live, struct str workspace, struct str user,
                  struct str session) {
    return str_equal(live->session, session) && str_equal(live->workspace, workspace) &&
           (!user.at || str_equal(live->user, user));
}

void directory_each(struct directory *directory,
                    void (*each)(const struct live *live, void *ctx), void *ctx) {
    struct run_stripe *stripe;
    for (size_t i = 0; (stripe = striped_at(directory->stripes, i)); i++) {
        pthread_mutex_lock(&stripe->lock);
        LIST_EACH(&stripe->runs, link) {
            each(CONTAINER_OF(link, struct live, link), ctx);
        }
        pthread_mutex_unlock(&stripe->lock);
    }
}

/* Insert in order; ids rise with time. The oldest falls out of a full list. */
static void directory_insert(struct session_runs *runs, uint64_t run) {
    if (runs->count == SESSION_RUNS_MAX) {
        if (run < runs->runs[0]) return;
        memmove(runs->runs, runs->runs + 1, --runs->count * sizeof(*runs->runs));
    }
    size_t at = runs->count++;
    for (; at > 0 && runs->runs[at - 1] > run; at--) runs->runs[at] = runs->runs[at - 1];
    runs->runs[at] = run;
}

void directory_of_session(struct directory *directory, struct str workspace, struct str user,
                          struct str session, struct session_runs *ret) {
    ret->count = 0;
    struct run_stripe *stripe;
    for (size_t i = 0; (stripe = striped_at(directory->stripes, i)); i++) {
        pthread_mutex_lock(&stripe->lock);
        LIST_EACH(&stripe->runs, link) {
            const struct live *live = CONTAINER_OF(link, struct live, link);
            if (is_of(live, workspace, user, session)) directory_insert(ret, live->run);
        }
        pthread_mutex_unlock(&stripe->lock);
    }
}

/* Insert in order, newest first; the oldest falls out of a full list. */
static void insert_newest(uint64_t *runs, size_t *count, size_t max, uint64_t run) {
    size_t at = *count < max ? (*count)++ : max;
    if (at == max && (max == 0 || runs[--at] > run)) return;
    for (; at > 0 && runs[at - 1] < run; at--) runs[at] = runs[at - 1];
    runs[at] = run;
}

size_t directory_newest(struct directory *directory, uint64_t before, size_t max,
                        uint64_t *ret_runs) {
    size_t count = 0;
    struct run_stripe *stripe;
    for (size_t i = 0; (stripe = striped_at(directory->stripes, i)); i++) {
        pthread_mutex_lock(&stripe->lock);
        LIST_EACH(&stripe->runs, link) {
            const struct live *live = CONTAINER_OF(link, struct live, link);
            if (live->run < before) insert_newest(ret_runs, &count, max, live->run);
        }
        pthread_mutex_unlock(&stripe->lock);
    }
    return count;
}

static void session_directory_leave(const struct live *live, const struct order *order) {
    live->leave(order->leaving, order->text, live->ctx);
}

static void session_directory_say(const struct live *live, const struct order *order) {
    if (live->say) live->say(order->text, order->print, live->ctx);
}

/* Runs on the run's loop. A run leaves the directory on that loop too, so it cannot disappear
 * meanwhile. */
static void obey(void *ctx) {
    struct order *order = ctx;
    struct run_stripe *stripe = lock_stripe(order->directory, order->run);
    const struct live *live = run_directory_find(stripe, order->run);
    pthread_mutex_unlock(&stripe->lock);
    if (live) order->obey(live, order);
    free(order);
}

static struct str keep_behind(char *at, struct str text) {
    if (text.len) memcpy(at, text.at, text.len);
    return str_of(at, text.len);
}

/* Post a copy of `what` to the run's loop. False: there is no such run. */
static bool directory_post(const struct order *what) {
    struct run_stripe *stripe = lock_stripe(what->directory, what->run);
    const struct live *live = run_directory_find(stripe, what->run);
    if (live) {
        struct order *order =
            mem_zero(1, sizeof(struct order) + what->text.len + what->print.len);
        *order = *what;
        order->text = keep_behind(order->room, what->text);
        order->print = keep_behind(order->room + what->text.len, what->print);
        loop_post(live->loop, &order->mail, obey, order);
    }
    pthread_mutex_unlock(&stripe->lock);
    return live != NULL;
}

bool directory_leave(struct directory *directory, uint64_t run, struct leaving leaving,
                     struct str why) {
    return directory_post(&(struct order){.directory = directory,
                                          .run = run,
                                          .obey = session_directory_leave,
                                          .leaving = leaving,
                                          .text = why});
}

void directory_say(struct directory *directory, uint64_t run, struct str words,
                   struct str print) {
    (void)directory_post(&(struct order){.directory = directory,
                                         .run = run,
                                         .obey = session_directory_say,
                                         .text = words,
                                         .print = print});
}

bool directory_cancel(struct directory *directory, uint64_t run, struct str why) {
    return directory_leave(directory, run, (struct leaving){.how = LEAVING_NONE}, why);
}
