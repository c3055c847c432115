/* When acknowledgements may wait, and that the kernel then sends fewer. */
#include "client/acks.h"

#include "base/clock.h"
#include "helper/assert_str.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* The header of glibc knows fewer counters. */
#include <linux/tcp.h>

#define FIRST_MS 1000

/* `count` pieces of `len` bytes, `every_ms` apart; how often acknowledgements were let wait. */
static unsigned feed(struct acks *acks, unsigned count, size_t len, uint64_t every_ms,
                     uint64_t *now_ms) {
    unsigned told = 0;
    for (unsigned i = 0; i < count; i++) {
        *now_ms += every_ms;
        told += acks_may_wait(acks, len, *now_ms);
    }
    return told;
}

static void only_quick_small_pieces_let_acknowledgements_wait(void **state) {
    (void)state;
    static const struct {
        unsigned count;
        size_t len;
        uint64_t every_ms;
        unsigned told;
    } cases[] = {
        {1, 200, 10, 0},
        {ACKS_RUN, 200, 10, 0}, /* the first one comes after a gap */
        {ACKS_RUN + 1, 200, 10, 1},
        {100000, 200, 0, 1},
        {1000, 200, ACKS_GAP_MS - 1, 1},
        {1000, 200, ACKS_GAP_MS, 0},
        {1000, ACKS_PIECE_BYTES, 10, 1},
        {1000, ACKS_PIECE_BYTES + 1, 10, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct acks acks = {0};
        uint64_t now_ms = FIRST_MS;
        unsigned told = feed(&acks, cases[i].count, cases[i].len, cases[i].every_ms, &now_ms);
        if (told != cases[i].told) fail_msg("case %zu: told %u times", i, told);
    }
}

static void after_a_pause_the_kernel_is_told_again(void **state) {
    (void)state;
    struct acks acks = {0};
    uint64_t now_ms = FIRST_MS;
    for (int i = 0; i < 10; i++) {
        now_ms += 500;
        assert_int_equal(feed(&acks, 100, 200, 10, &now_ms), 1);
    }
}

/* A server with Nagle's algorithm: each time that the kernel is told, the second piece after that
 * is 40 ms late. */
static void a_server_that_waits_for_acknowledgements_gets_them(void **state) {
    (void)state;
    struct acks acks = {0};
    uint64_t now_ms = FIRST_MS;
    unsigned told = 0;
    for (int i = 0; i < 1000; i++) {
        unsigned now = feed(&acks, 1, 200, 10, &now_ms);
        told += now;
        if (!now) continue;
        (void)feed(&acks, 1, 200, 10, &now_ms);
        (void)feed(&acks, 1, 200, 40, &now_ms);
    }
    assert_int_equal(told, ACKS_FAILURES_MAX);
}

static void gaps_that_are_not_in_a_row_prove_nothing(void **state) {
    (void)state;
    struct acks acks = {0};
    uint64_t now_ms = FIRST_MS;
    for (int i = 0; i < 100; i++) {
        now_ms += 500;
        assert_int_equal(feed(&acks, ACKS_RUN + 1, 200, 10, &now_ms), 1); /* a gap follows */
        now_ms += 500;
        assert_int_equal(feed(&acks, 100, 200, 10, &now_ms), 1);
    }
}

/* --- the kernel --------------------------------------------------------------------------- */

struct pair {
    int sender, receiver;
};

static struct pair pair_open(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    struct pair pair;
    int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    pair.receiver = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(pair.receiver, (struct sockaddr *)&at, size), 0);
    pair.sender = accept(listener, NULL, NULL);
    assert_true(pair.sender >= 0);
    assert_int_equal(setsockopt(pair.sender, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
    close(listener);
    return pair;
}

static unsigned segments_received(int fd) {
    struct tcp_info info = {0};
    socklen_t size = sizeof(info);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    return info.tcpi_segs_in;
}

/* How many acknowledgements the sender of so many pieces got. */
static unsigned acknowledged(struct acks *acks) {
    struct pair pair = pair_open();
    char piece[200] = {0}, room[4096];
    for (int i = 0; i < 400; i++) {
        assert_int_equal(send(pair.sender, piece, sizeof(piece), 0), sizeof(piece));
        ssize_t len = recv(pair.receiver, room, sizeof(room), 0);
        assert_int_equal(len, sizeof(piece));
        if (acks) acks_after_read(acks, pair.receiver, (size_t)len, clock_mono_ms());
    }
    unsigned segments = segments_received(pair.sender);
    close(pair.sender);
    close(pair.receiver);
    return segments;
}

/* On a busy machine the test itself may stand still for the kernel's 40 ms, which brings the old way
 * back for some pieces; hence the real clock, and more than one try. */
static void the_kernel_sends_fewer(void **state) {
    (void)state;
    unsigned before = acknowledged(NULL), after = before;
    for (int tries = 5; tries > 0 && after * 4 >= before * 3; tries--) {
        struct acks acks = {0};
        after = acknowledged(&acks);
        print_message("%u acknowledgements, and %u\n", before, after);
    }
    assert_true(after * 4 < before * 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_quick_small_pieces_let_acknowledgements_wait),
        cmocka_unit_test(after_a_pause_the_kernel_is_told_again),
        cmocka_unit_test(a_server_that_waits_for_acknowledgements_gets_them),
        cmocka_unit_test(gaps_that_are_not_in_a_row_prove_nothing),
        cmocka_unit_test(the_kernel_sends_fewer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
