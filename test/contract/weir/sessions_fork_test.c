/* Forks whose caller leaves, at every moment, and what is left of them when all else is gone. */
#include "contract/weir/api.h"

#include "fake/exchange_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "helper/assert_str.h"

#include "base/mem.h"
#include "loop/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#define OLD_RUN 7

/* The loop is a real one: on a fake one no job is at work when its owner leaves. There is one thread
 * for jobs (main), so they end in the order in which they begin. */
struct scene {
    struct loop *loop;
    struct store *store;
    struct session_table *sessions;
    struct engine engine;
    struct run_host host;
    struct api_settings settings;
    struct api_instance *instance;
    struct route_table table;
    const struct route_table *tables[1];
    struct route_site *site;
};

static bool is_secured(void *ctx) {
    (void)ctx;
    return false;
}

static bool identify(struct str bearer, struct contract_identity *ret, void *ctx) {
    (void)bearer;
    (void)ret;
    (void)ctx;
    return false;
}

static void put_old_session(struct store *store) {
    struct buf events;
    struct event event = {.kind = EVENT_STARTED, .agent = STR_INIT("manager")};
    event.started.workspace = STR("default");
    event.started.user = STR("anonymous");
    event.started.session = STR("old");
    event.started.text = STR("hello");
    event.started.contract = STR("test");
    buf_init(&events, KIB);
    assert_true(event_encode(&event, &events));
    event = (struct event){.kind = EVENT_DONE, .agent = STR_INIT("manager")};
    assert_true(event_encode(&event, &events));
    fake_store_put(store, OLD_RUN, 1, buf_str(&events));
    buf_done(&events);
}

static struct scene *scene_new(void) {
    struct scene *s = MEM_NEW(struct scene);
    s->loop = loop_new();
    s->store = fake_store_new();
    put_old_session(s->store);
    s->sessions = session_table_new(s->store);
    s->engine = (struct engine){.sessions = s->sessions, .refs = 1};
    s->host = (struct run_host){.engine = &s->engine, .loop = s->loop};
    s->instance = MEM_NEW(struct api_instance);
    *s->instance = (struct api_instance){.settings = &s->settings,
                                         .loop = s->loop,
                                         .host = &s->host,
                                         .sessions = s->sessions,
                                         .directory = session_table_directory(s->sessions),
                                         .store = s->store,
                                         .callers = {is_secured, identify, NULL},
                                         .loaded = true};
    list_init(&s->instance->ends);
    list_init(&s->instance->forks);
    api_table(s->instance, &s->table);
    s->tables[0] = &s->table;
    s->site = route_site_new(s->loop, s->tables, 1);
    return s;
}

/* All that a daemon has closed and freed before the loops have ended, in its order. */
static void scene_close(struct scene *s) {
    fake_store_free(s->store);
    route_site_free(s->site);
    free(s->instance);
    session_table_free(s->sessions);
}

static void scene_free(struct scene *s) {
    loop_free(s->loop);
    free(s);
}

static void serve(struct exchange *exchange, void *ctx) {
    route_serve(ctx, exchange);
}

static struct exchange *ask(struct scene *s, const char *to) {
    char body[64];
    struct exchange *x = fake_new(s->loop, "POST", "/weir/v1/sessions/old/fork");
    fake_field(x, "content-type", "application/json");
    fake_start(x, serve, s->site);
    snprintf(body, sizeof(body), "{\"run\":\"%d\",\"session_id\":\"%s\"}", OLD_RUN, to);
    fake_body(x, str_from(body));
    fake_body_end(x);
    return x;
}

/* --- time --------------------------------------------------------------------------------- */

static void turn(struct scene *s) {
    for (int i = 0; i < 4; i++) uv_run(loop_uv(s->loop), UV_RUN_NOWAIT);
}

static bool serve_store(struct scene *s) {
    if (fake_store_loads(s->store))
        fake_store_answer(s->store, 0);
    else if (fake_store_tasks(s->store))
        fake_store_run(s->store, 0);
    else if (fake_store_writes(s->store))
        fake_store_commit(s->store, 0);
    else
        return false;
    turn(s);
    return true;
}

static void nothing(void *ctx) {
    (void)ctx;
}

static void note(void *ctx) {
    *(bool *)ctx = true;
}

/* Every job that has begun ends, and what follows from it in the loop happens. */
static void end_jobs(struct scene *s) {
    struct job last = {NULL};
    bool ended = false;
    job_start(&last, s->loop, nothing, note, &ended);
    while (!ended) uv_run(loop_uv(s->loop), UV_RUN_ONCE);
    turn(s);
}

static void settle(struct scene *s) {
    do {
        end_jobs(s);
    } while (serve_store(s));
}

/* One thing happens: the store answers, or the jobs end. */
static void step(struct scene *s) {
    if (!serve_store(s)) end_jobs(s);
}

/* Until a job reads the old session: the store has then answered what was said in the new one,
 * whether that exists, and the old one. The loop does not look at its jobs after that. */
static void go_on_to_job(struct scene *s) {
    bool looked = false;
    while (!looked || !fake_store_loads(s->store)) {
        if (!fake_store_loads(s->store)) looked = fake_store_tasks(s->store) > 0;
        assert_true(serve_store(s));
    }
    fake_store_answer(s->store, 0);
    uv_run(loop_uv(s->loop), UV_RUN_NOWAIT);
}

/* A job that the test holds up, or is told of. */
struct own_job {
    struct job job;
    uv_sem_t gate;
    bool ended;
};

static void open_gate(void *ctx) {
    struct own_job *own = ctx;
    uv_sem_post(&own->gate);
}

static void wait_at_gate(void *ctx) {
    struct own_job *own = ctx;
    uv_sem_wait(&own->gate);
}

static void end_own(void *ctx) {
    struct own_job *own = ctx;
    uv_sem_destroy(&own->gate);
    own->ended = true;
}

/* The jobs before this one have done their work; the loop has not heard of it. */
static void let_jobs_work(struct scene *s, struct own_job *own) {
    *own = (struct own_job){.ended = false};
    uv_sem_init(&own->gate, 0);
    job_start(&own->job, s->loop, open_gate, end_own, own);
    uv_sem_wait(&own->gate);
}

/* The jobs after this one wait until open_gate(). */
static void hold_jobs(struct scene *s, struct own_job *own) {
    *own = (struct own_job){.ended = false};
    uv_sem_init(&own->gate, 0);
    job_start(&own->job, s->loop, wait_at_gate, end_own, own);
}

/* --- tests -------------------------------------------------------------------------------- */

static void assert_made(struct scene *s, struct exchange *x) {
    settle(s);
    if (fake_status(x) != 201) fail_msg("%d " STR_FMT, fake_status(x), STR_ARG(fake_sent(x)));
    fake_free(x);
}

/* Nothing holds the new session any more. The tables of the fake store list no session, so it may be
 * made again where it was made. */
static void assert_free(struct scene *s, const char *to) {
    assert_made(s, ask(s, to));
}

/* False: the answer came before the caller could leave. */
static bool leave_after(int steps) {
    struct scene *s = scene_new();
    struct exchange *one = ask(s, "one"), *two = ask(s, "two");
    for (int i = 0; i < steps; i++) step(s);
    bool left = fake_status(one) == 0;
    if (left) fake_leave(one);
    turn(s);
    assert_made(s, two);
    assert_free(s, "one");
    assert_true(fake_closed(one));
    fake_free(one);
    scene_close(s);
    scene_free(s);
    return left;
}

static void a_caller_may_leave_at_any_moment_and_the_next_fork_is_made(void **state) {
    (void)state;
    int steps = 0;
    while (leave_after(steps)) steps++;
    assert_in_range(steps, 5, 20);
}

static void a_caller_leaves_while_the_job_waits_for_a_thread(void **state) {
    (void)state;
    struct scene *s = scene_new();
    struct own_job gate;
    struct exchange *one = ask(s, "one"), *two = ask(s, "two");
    hold_jobs(s, &gate);
    go_on_to_job(s);
    fake_leave(one);
    turn(s);
    assert_true(fake_closed(one));
    go_on_to_job(s); /* of the second fork, before the first could have worked */
    assert_false(gate.ended);
    open_gate(&gate);
    assert_made(s, two);
    assert_free(s, "one");
    fake_free(one);
    scene_close(s);
    scene_free(s);
}

static void a_caller_leaves_while_the_job_is_at_work(void **state) {
    (void)state;
    struct scene *s = scene_new();
    struct own_job worked;
    struct exchange *one = ask(s, "one"), *two = ask(s, "two");
    go_on_to_job(s);
    let_jobs_work(s, &worked);
    fake_leave(one);
    turn(s);
    assert_true(fake_closed(one));
    assert_made(s, two);
    assert_free(s, "one");
    fake_free(one);
    scene_close(s);
    scene_free(s);
}

static void close_scene(void *ctx) {
    scene_close(ctx);
}

/* The caller leaves, the daemon closes everything, and only then the loop hears of the job. */
static void a_job_at_work_outlives_the_store_and_the_instance(void **state) {
    (void)state;
    struct scene *s = scene_new();
    struct own_job worked;
    struct task closing;
    struct exchange *one = ask(s, "one");
    go_on_to_job(s);
    let_jobs_work(s, &worked);
    fake_leave(one);
    task_init(&closing, close_scene, s);
    loop_defer(s->loop, &closing); /* both come before the loop looks at its jobs */
    uv_run(loop_uv(s->loop), UV_RUN_NOWAIT);
    assert_true(fake_closed(one));
    fake_free(one);
    scene_free(s);
    assert_true(worked.ended);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_caller_may_leave_at_any_moment_and_the_next_fork_is_made),
        cmocka_unit_test(a_caller_leaves_while_the_job_waits_for_a_thread),
        cmocka_unit_test(a_caller_leaves_while_the_job_is_at_work),
        cmocka_unit_test(a_job_at_work_outlives_the_store_and_the_instance),
    };
    setenv("UV_THREADPOOL_SIZE", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
