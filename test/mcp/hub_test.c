/* The hub's stop against the release of the last reference to a server. */
#include "mcp/hub_inner.h"

#include "helper/as_guard.h"
#include "helper/assert_str.h"
#include "helper/moves.h"

#include "client/http.h"

#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define TOO_LONG_S 30 /* ends the test by SIGALRM */

static void a_server_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {"starting listed", "starting away", "listed listed",
                                        "listed away",     "away listed",   "away away"};
    assert_moves(mcp_server_states, MCP_SERVER_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

static void hold(void *ctx) {
    sem_t *sem = ctx;
    sem_wait(sem);
}

static void nothing(void *ctx) {
    (void)ctx;
}

static void *stop(void *ctx) {
    mcp_hub_stop(ctx);
    return NULL;
}

static struct mcp_server *start_server(struct mcp_hub *hub) {
    static const char *const program[] = {"sh", "-c", "sleep 600", NULL};
    static const char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
    const struct mcp_server_options options = {
        .name = STR("test"), .program = program, .environment = environment};
    return mcp_server_get(hub, &options);
}

/* A reference may be released by the hub's own thread after the call's owner has gone on: then
 * the server is neither in the mailbox nor in the list, and its program would run on. */
static void a_server_released_while_the_hub_stops_ends(void **state) {
    struct http_pool *pool = http_pool_new();
    struct mcp_hub *hub = mcp_hub_new(pool, STR_EMPTY);
    struct mcp_server *server = start_server(hub);
    struct mail held, probe[1000];
    size_t probes = 0;
    pthread_t stopping;
    sem_t go;
    (void)state;
    sem_init(&go, 0, 0);
    assert_true(mcp_hub_post(hub, &held, hold, &go));
    assert_int_equal(pthread_create(&stopping, NULL, stop, hub), 0);
    while (probes < ARRAY_LEN(probe) && mcp_hub_post(hub, &probe[probes], nothing, NULL)) {
        probes++;
        usleep(1000);
    }
    assert_true(probes < ARRAY_LEN(probe));
    mcp_server_unref(server); /* the last one, between the stop and what it does */
    sem_post(&go);
    pthread_join(stopping, NULL);
    mcp_hub_free(hub);
    http_pool_free(pool);
    sem_destroy(&go);
}

static void a_server_may_be_released_before_and_after_the_stop(void **state) {
    struct http_pool *pool = http_pool_new();
    (void)state;
    for (int after = 0; after < 2; after++) {
        struct mcp_hub *hub = mcp_hub_new(pool, STR_EMPTY);
        struct mcp_server *server = start_server(hub);
        if (after) mcp_hub_stop(hub);
        mcp_server_unref(server);
        mcp_hub_free(hub);
    }
    http_pool_free(pool);
}

int main(int arg_count, char **args) {
    as_guard(arg_count, args);
    alarm(TOO_LONG_S);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_moves_as_drawn),
        cmocka_unit_test(a_server_released_while_the_hub_stops_ends),
        cmocka_unit_test(a_server_may_be_released_before_and_after_the_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
