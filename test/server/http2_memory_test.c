/* Sessions that rest are packed, and nobody can tell. */
#include "server/http2_memory.h"

#include "fake.h"
#include "server/http2.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these before it. */
#include <cmocka.h>

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define SETTINGS "\0\0\0\4\0\0\0\0\0"
#define SETTINGS_ACK "\0\0\0\4\1\0\0\0\0"
#define PING "\0\0\x08\6\0\0\0\0\0abcdefgh"

static struct http2 *session_of(const struct fake *fake) {
    return fake->conn->protocol_state;
}

static bool is_packed(const struct fake *fake) {
    return region_is_packed(&session_of(fake)->memory.region);
}

static void put_frame(struct buf *buf, uint8_t type, uint8_t flags, uint32_t id,
                      struct str payload) {
    const char head[9] = {
        0,           (char)(payload.len >> 8), (char)payload.len, (char)type,
        (char)flags, (char)(id >> 24),         (char)(id >> 16),  (char)(id >> 8),
        (char)id};
    buf_append(buf, str_of(head, 9));
    buf_append(buf, payload);
}

/* Requests whose later fields are indices into what HPACK remembers of the earlier ones. */
static struct str fields_of(uint32_t number) {
    /* :method POST, :scheme http, :path /, :authority a, x-one: 1 ... as literals to remember */
    static const char first[] = "\x83\x86\x84\x41\x01"
                                "a\x40\x05x-one\x01"
                                "1\x40\x05x-two\x01"
                                "2";
    static const char later[] = "\x83\x86\x84\xc0\xbf\xbe";
    return number == 0 ? str_of(first, sizeof(first) - 1) : str_of(later, sizeof(later) - 1);
}

static void put_request(struct buf *buf, uint32_t number, struct str body) {
    uint32_t id = 2 * number + 1;
    put_frame(buf, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, id, fields_of(number));
    put_frame(buf, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, id, body);
}

struct scene {
    struct fake fake;
    struct echo echo;
    struct buf out;
};

static int open_scene(void **state) {
    struct scene *scene = MEM_NEW(struct scene);
    buf_init(&scene->out, MIB);
    fake_open(&scene->fake, echo_start, &scene->echo);
    fake_receive(&scene->fake, STR(PREFACE SETTINGS SETTINGS_ACK));
    *state = scene;
    return 0;
}

static int shut_scene(void **state) {
    struct scene *scene = *state;
    fake_shut(&scene->fake);
    assert_int_equal(scene->echo.begun, scene->echo.closed);
    buf_done(&scene->out);
    free(scene);
    return 0;
}

static void send_out(struct scene *scene) {
    fake_receive(&scene->fake, buf_str(&scene->out));
    buf_clear(&scene->out);
}

static void rest(struct scene *scene) {
    loop_advance(scene->fake.loop, HTTP2_REST_MS);
    assert_true(is_packed(&scene->fake));
}

/* --- who rests ---------------------------------------------------------------------------- */

static void an_unused_session_is_packed_and_wakes_with_the_next_frame(void **state) {
    struct scene *scene = *state;
    loop_advance(scene->fake.loop, HTTP2_REST_MS - 1);
    assert_false(is_packed(&scene->fake));
    rest(scene);
    assert_in_range(region_packed_bytes(&session_of(&scene->fake)->memory.region), 100, 2000);
    buf_clear(&scene->fake.sent);
    fake_receive(&scene->fake, STR(PING));
    assert_false(is_packed(&scene->fake));
    assert_int_equal(scene->fake.sent.len, sizeof(PING) - 1);
    rest(scene);
}

static void a_session_in_use_stays(void **state) {
    struct scene *scene = *state;
    for (int i = 0; i < 10; i++) {
        loop_advance(scene->fake.loop, HTTP2_REST_MS - 100);
        assert_false(is_packed(&scene->fake));
        fake_receive(&scene->fake, STR("\0\0\4\x08\0\0\0\0\0\0\0\0\1")); /* a byte of window */
    }
    rest(scene);
}

static void a_session_with_an_exchange_rests_later(void **state) {
    struct scene *scene = *state;
    loop_advance(scene->fake.loop, HTTP2_REST_MS / 2);
    put_frame(&scene->out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, fields_of(0));
    send_out(scene);
    loop_advance(scene->fake.loop, HTTP2_BUSY_REST_MS - 1);
    assert_false(is_packed(&scene->fake));
    loop_advance(scene->fake.loop, HTTP2_REST_MS);
    assert_true(is_packed(&scene->fake));
    assert_false(timer_waits(&scene->fake.home.look));
    put_frame(&scene->out, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, STR("late"));
    send_out(scene);
    assert_int_equal(scene->echo.closed, 1);
    assert_int_equal(scene->echo.how, EXCHANGE_COMPLETE);
    rest(scene);
}

/* The owner speaks first: what it sends, and what it gives back, wakes the session. */
static struct exchange *open_exchange(struct scene *scene) {
    put_frame(&scene->out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, fields_of(0));
    send_out(scene);
    loop_advance(scene->fake.loop, HTTP2_BUSY_REST_MS + HTTP2_REST_MS);
    assert_true(is_packed(&scene->fake));
    buf_clear(&scene->fake.sent);
    return CONTAINER_OF(scene->fake.conn->exchanges.next, struct exchange, link);
}

static void whatever_the_owner_does_wakes(void **state) {
    struct scene *scene = *state;
    struct exchange *exchange = open_exchange(scene);
    exchange_send(exchange, STR("hello"));
    loop_turn(scene->fake.loop);
    assert_false(is_packed(&scene->fake));
    assert_int_equal(scene->fake.sent.len, 9 + 5);
    loop_advance(scene->fake.loop, HTTP2_REST_MS); /* our ping comes between */
    fake_receive(&scene->fake, STR("\0\0\x08\6\1\0\0\0\0\0\0\0\0\0\0\0\0"));
    loop_advance(scene->fake.loop, HTTP2_BUSY_REST_MS + HTTP2_REST_MS);
    assert_true(is_packed(&scene->fake));
    exchange_authenticated(exchange);
    assert_false(is_packed(&scene->fake));
    exchange_abort(exchange, ABORT_CANCEL);
    loop_turn(scene->fake.loop);
    assert_int_equal(scene->echo.closed, 1);
    rest(scene);
}

static void a_packed_session_with_an_exchange_can_be_cut(void **state) {
    struct scene *scene = *state;
    open_exchange(scene);
    fake_peer_ends(&scene->fake);
    assert_int_equal(scene->echo.how, EXCHANGE_PEER_LEFT);
    assert_null(scene->fake.conn);
}

/* --- nobody can tell ---------------------------------------------------------------------- */

/* What the server says to a preface and twenty requests, with a rest after each or without. */
static void converse(bool rests, struct buf *ret_said) {
    void *state;
    open_scene(&state);
    struct scene *scene = state;
    for (uint32_t i = 0; i < 20; i++) {
        if (rests) rest(scene);
        put_request(&scene->out, i, STR("what was said comes back"));
        send_out(scene);
        assert_int_equal(scene->echo.closed, i + 1);
        assert_int_equal(scene->echo.how, EXCHANGE_COMPLETE);
    }
    if (rests) rest(scene);
    buf_append(ret_said, buf_str(&scene->fake.sent));
    shut_scene(&state);
}

static void answers_are_the_same_bytes_with_rests_between(void **state) {
    (void)state;
    struct buf with, without;
    buf_init(&with, MIB);
    buf_init(&without, MIB);
    converse(true, &with);
    converse(false, &without);
    assert_true(str_equal(buf_str(&with), buf_str(&without)));
    buf_done(&with);
    buf_done(&without);
}

static void half_the_head_of_a_frame_survives_a_rest(void **state) {
    struct scene *scene = *state;
    put_request(&scene->out, 0, STR("one"));
    fake_receive(&scene->fake, str_head(buf_str(&scene->out), 5));
    rest(scene);
    fake_receive(&scene->fake, str_skip(buf_str(&scene->out), 5));
    assert_int_equal(scene->echo.closed, 1);
    assert_int_equal(scene->echo.how, EXCHANGE_COMPLETE);
}

static void our_own_ping_wakes_and_a_dead_peer_is_cut(void **state) {
    struct scene *scene = *state;
    rest(scene);
    buf_clear(&scene->fake.sent);
    loop_advance(scene->fake.loop, server_limits_default.keepalive_ms - HTTP2_REST_MS);
    assert_true(scene->fake.sent.len > 0);
    assert_false(is_packed(&scene->fake));
    loop_advance(scene->fake.loop, HTTP2_REST_MS);
    assert_true(is_packed(&scene->fake));
    loop_advance(scene->fake.loop, server_limits_default.keepalive_timeout_ms);
    assert_null(scene->fake.conn);
}

static void a_stop_wakes(void **state) {
    struct scene *scene = *state;
    rest(scene);
    buf_clear(&scene->fake.sent);
    home_shut_down(&scene->fake.home);
    conn_shut_down(scene->fake.conn);
    loop_turn(scene->fake.loop);
    assert_true(scene->fake.sent.len > 0);
    assert_false(timer_waits(&scene->fake.home.look));
}

static void a_packed_session_can_be_cut(void **state) {
    struct scene *scene = *state;
    put_request(&scene->out, 0, STR("one"));
    send_out(scene);
    rest(scene);
    fake_peer_ends(&scene->fake);
    assert_null(scene->fake.conn);
}

/* Blocks that the region has no room for come from the heap, and go back there. */
static void a_thousand_streams_at_once_fit(void **state) {
    struct scene *scene = *state;
    scene->fake.limits.streams_max_stranger = 0;
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 900; i++) {
            uint32_t number = round * 900 + i;
            put_frame(&scene->out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 2 * number + 1,
                      fields_of(number));
        }
        send_out(scene);
        assert_int_equal(scene->fake.conn->exchange_count, 900);
        for (uint32_t i = 0; i < 900; i++)
            put_frame(&scene->out, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM,
                      2 * (round * 900 + i) + 1, STR("x"));
        send_out(scene);
        assert_int_equal(scene->echo.closed, (round + 1) * 900);
        rest(scene);
    }
}

/* --- many connections of a home ----------------------------------------------------------- */

#define CONNS (3 * HTTP2_PACKS_A_LOOK)

static struct fake *open_beside(struct scene *scene) {
    struct fake *fake = MEM_NEW(struct fake);
    fake->transport.kind = &fake_kind;
    fake->loop = scene->fake.loop;
    fake->window = SIZE_MAX;
    buf_init(&fake->sent, MIB);
    task_init(&fake->close, fake_closed, fake);
    fake->conn = conn_new(&(struct conn_options){.home = &scene->fake.home,
                                                 .transport = &fake->transport,
                                                 .listener = &scene->fake.listener,
                                                 .peer = STR("127.0.0.1:2"),
                                                 .owner = {4, {127, 0, 0, 1}}});
    fake_receive(fake, STR(PREFACE SETTINGS SETTINGS_ACK));
    return fake;
}

static void shut_beside(struct fake *fake) {
    if (fake->conn) conn_cut(fake->conn, EXCHANGE_PEER_LEFT);
    loop_turn(fake->loop);
    buf_done(&fake->sent);
    free(fake);
}

static size_t count_packed(struct fake *const *fakes, size_t count) {
    size_t packed = 0;
    for (size_t i = 0; i < count; i++) packed += is_packed(fakes[i]);
    return packed;
}

static void many_that_rest_at_once_are_packed_a_part_at_a_time(void **state) {
    struct scene *scene = *state;
    struct fake *fakes[CONNS];
    for (size_t i = 0; i < CONNS; i++) fakes[i] = open_beside(scene);
    loop_advance(scene->fake.loop, HTTP2_REST_MS);
    assert_int_equal(count_packed(fakes, CONNS) + is_packed(&scene->fake), HTTP2_PACKS_A_LOOK);
    loop_advance(scene->fake.loop, 3 * HTTP2_LOOKS_APART_MS);
    assert_int_equal(count_packed(fakes, CONNS), CONNS);
    fake_receive(fakes[5], STR(PING));
    assert_int_equal(count_packed(fakes, CONNS), CONNS - 1);
    loop_advance(scene->fake.loop, HTTP2_REST_MS);
    assert_int_equal(count_packed(fakes, CONNS), CONNS);
    assert_false(timer_waits(&scene->fake.home.look)); /* until somebody wakes */
    for (size_t i = 0; i < CONNS; i++) shut_beside(fakes[i]);
}

static void without_memory_a_connection_is_closed_and_the_others_go_on(void **state) {
    struct scene *scene = *state;
    struct fake *fakes[REGIONS_AN_AREA];
    scene->fake.home.regions.areas_max = 1;
    for (size_t i = 1; i < REGIONS_AN_AREA; i++) {
        fakes[i] = open_beside(scene);
        assert_non_null(fakes[i]->conn);
    }
    fakes[0] = open_beside(scene);
    assert_null(fakes[0]->conn);
    assert_int_equal(fakes[0]->sent.len, 0);
    shut_beside(fakes[0]);
    put_request(&scene->out, 0, STR("still there"));
    send_out(scene);
    assert_int_equal(scene->echo.how, EXCHANGE_COMPLETE);
    shut_beside(fakes[1]);
    fakes[0] = open_beside(scene);
    assert_non_null(fakes[0]->conn);
    shut_beside(fakes[0]);
    for (size_t i = 2; i < REGIONS_AN_AREA; i++) shut_beside(fakes[i]);
}

#define SCENE(name) cmocka_unit_test_setup_teardown(name, open_scene, shut_scene)

int main(void) {
    const struct CMUnitTest tests[] = {
        SCENE(an_unused_session_is_packed_and_wakes_with_the_next_frame),
        SCENE(a_session_in_use_stays),
        SCENE(a_session_with_an_exchange_rests_later),
        SCENE(whatever_the_owner_does_wakes),
        SCENE(a_packed_session_with_an_exchange_can_be_cut),
        cmocka_unit_test(answers_are_the_same_bytes_with_rests_between),
        SCENE(half_the_head_of_a_frame_survives_a_rest),
        SCENE(our_own_ping_wakes_and_a_dead_peer_is_cut),
        SCENE(a_stop_wakes),
        SCENE(a_packed_session_can_be_cut),
        SCENE(a_thousand_streams_at_once_fit),
        SCENE(many_that_rest_at_once_are_packed_a_part_at_a_time),
        SCENE(without_memory_a_connection_is_closed_and_the_others_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
