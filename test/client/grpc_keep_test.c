/* Calls that are kept open between two exchanges, against a server on a socket. */
#include "client/grpc_keep.h"

#include "client/h2_peer.h"
#include "helper/moves.h"
#include "wire/grpc.h"

static void a_kept_call_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {"parked ending", "parked gone", "ending gone"};
    assert_moves(grpc_keep_states, GRPC_KEEP_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

/* Each message comes back; "twice" comes back once more a little later, "leave" ends the call,
 * and the end of the request ends the answer. */
static void on_request(struct h2_peer *peer, int32_t id, struct str path, bool whole) {
    (void)path;
    struct h2_peer_stream *stream = h2_peer_stream(peer, id);
    bool twice = str_ends(buf_str(&stream->heard), STR("twice"));
    bool leaves = str_ends(buf_str(&stream->heard), STR("leave"));
    if (!stream->open) h2_peer_begin(peer, id, "200", "0");
    h2_peer_say(peer, id, buf_str(&stream->heard), whole || leaves);
    if (twice) h2_peer_say(peer, id, buf_str(&stream->heard), false);
    buf_clear(&stream->heard);
}

struct world {
    struct peer_server server;
    struct loop *loop;
    struct http_pool *pool;
    struct timer pause;
    struct grpc_call *call;
    struct buf heard;
    const char *park_as; /* after the next message */
    int ends;
};

static void stop(void *ctx) {
    loop_stop(((struct world *)ctx)->loop);
}

static void on_message(struct lent message, void *ctx) {
    struct world *world = ctx;
    buf_append(&world->heard, lent_read(message));
    buf_append_byte(&world->heard, '|');
    if (world->park_as)
        grpc_keep_put(world->pool, world->loop, STR("server"), str_from(world->park_as),
                      world->call);
    timer_start(&world->pause, 10); /* what comes in the same breath comes before */
}

static void on_end(const struct grpc_call_end *end, void *ctx) {
    struct world *world = ctx;
    (void)end;
    world->ends++;
    loop_stop(world->loop);
}

static const struct grpc_call_sink sink = {.on_message = on_message, .on_end = on_end};

static void world_open(struct world *world, uint32_t max_streams) {
    *world = (struct world){.loop = loop_new(), .pool = http_pool_new()};
    buf_init(&world->heard, KIB);
    http_pool_add(world->pool, world->loop);
    timer_init(&world->pause, world->loop, stop, world);
    peer_server_start(&world->server, max_streams, on_request);
}

static void world_shut(struct world *world) {
    http_pool_leave(world->pool, world->loop);
    http_pool_free(world->pool);
    timer_stop(&world->pause);
    loop_free(world->loop);
    peer_server_stop(&world->server);
    buf_done(&world->heard);
}

static struct grpc_call *dial(struct world *world) {
    struct grpc_call *call;
    struct err e;
    const struct grpc_call_request request = {
        .host = STR("127.0.0.1"), .port = world->server.port, .path = STR("/s/m")};
    if (!grpc_call_start(world->pool, world->loop, &request, &sink, world, &call, &e))
        fail_msg("%s", e.text);
    return call;
}

/* One exchange, and the call is parked under a name, or not. */
static void say(struct world *world, struct grpc_call *call, const char *text,
                const char *park_as) {
    struct err e;
    world->call = call;
    world->park_as = park_as;
    assert_true(grpc_call_send(call, str_from(text), &e));
    loop_run(world->loop);
}

static struct grpc_call *take(struct world *world, const char *name) {
    return grpc_keep_take(world->pool, world->loop, str_from(name), &sink, world);
}

static void a_parked_call_is_taken_by_its_name(void **state) {
    (void)state;
    struct world world;
    world_open(&world, 0);
    say(&world, dial(&world), "a", "one");
    say(&world, dial(&world), "b", "two");
    assert_null(take(&world, "three"));
    struct grpc_call *one = take(&world, "one");
    assert_non_null(one);
    assert_null(take(&world, "one"));
    say(&world, one, "c", "one");
    assert_str(buf_str(&world.heard), "a|b|c|");
    assert_int_equal(atomic_load(&world.server.requests), 2);
    assert_int_equal(world.ends, 0);
    world_shut(&world); /* and cancels what is parked */
}

static void the_newest_of_a_name_is_taken(void **state) {
    (void)state;
    struct world world;
    world_open(&world, 0);
    struct grpc_call *first = dial(&world), *second = dial(&world);
    say(&world, first, "a", "one");
    say(&world, second, "b", "one");
    struct grpc_call *taken = take(&world, "one");
    assert_ptr_equal(taken, second);
    grpc_call_cancel(taken);
    taken = take(&world, "one");
    assert_ptr_equal(taken, first);
    grpc_call_cancel(taken);
    world_shut(&world);
}

static void a_parked_call_that_says_something_or_ends_is_gone(void **state) {
    (void)state;
    struct world world;
    world_open(&world, 0);
    say(&world, dial(&world), "twice", "one"); /* two echoes; only the first is read */
    assert_null(take(&world, "one"));
    say(&world, dial(&world), "leave", "two");
    assert_null(take(&world, "two"));
    assert_str(buf_str(&world.heard), "twice|leave|");
    assert_int_equal(world.ends, 0); /* its last user does not hear of it */
    world_shut(&world);
}

static void the_oldest_makes_room_for_a_call_that_queues(void **state) {
    (void)state;
    struct world world;
    world_open(&world, 2);
    struct grpc_call *first = dial(&world);
    say(&world, first, "a", "one");
    say(&world, dial(&world), "b", "two");
    struct grpc_call *third = dial(&world);
    assert_true(grpc_call_queues(third));
    grpc_keep_make_room(world.pool, world.loop, STR("another server"));
    assert_non_null(take(&world, "one"));
    grpc_keep_put(world.pool, world.loop, STR("server"), STR("one"),
                  first); /* the newest now */
    grpc_keep_make_room(world.pool, world.loop, STR("server"));
    assert_null(take(&world, "two"));
    say(&world, third, "c", NULL);
    assert_str(buf_str(&world.heard), "a|b|c|");
    assert_int_equal(atomic_load(&world.server.accepted), 1);
    grpc_call_cancel(third);
    world_shut(&world);
}

static void a_call_is_ended_in_order_without_a_callback(void **state) {
    (void)state;
    struct world world;
    world_open(&world, 0);
    struct grpc_call *call = dial(&world);
    say(&world, call, "a", NULL);
    grpc_keep_end(world.pool, world.loop, call);
    timer_start(&world.pause, 30);
    loop_run(world.loop);
    assert_int_equal(world.ends, 0);
    assert_int_equal(atomic_load(&world.server.resets), 0);
    world_shut(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kept_call_moves_as_drawn),
        cmocka_unit_test(a_parked_call_is_taken_by_its_name),
        cmocka_unit_test(the_newest_of_a_name_is_taken),
        cmocka_unit_test(a_parked_call_that_says_something_or_ends_is_gone),
        cmocka_unit_test(the_oldest_makes_room_for_a_call_that_queues),
        cmocka_unit_test(a_call_is_ended_in_order_without_a_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
