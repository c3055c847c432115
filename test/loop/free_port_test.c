/* Ports for children: below those that the kernel gives to any program, and rarely the same. */
#include "loop/free_port.h"

#include "base/file.h"
#include "helper/assert_str.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void the_kernel_s_ports_are_not_drawn_from(void **state) {
    (void)state;
    static const struct {
        const char *range;
        uint16_t count;
    } rows[] = {
        {"32768\t60999\n", 22768},
        {"10001\t10002\n", 1},
        {"10000\t65535\n", 0},
        {"1024\t65535\n", 0},
        {"65535\t65535", 55535},
        {"65536\t65537\n", 0},
        {"", 0},
        {"\n", 0},
        {"many\t60999\n", 0},
        {"-5\t60999\n", 0},
        {"32768", 22768},
        {"16000 65535\n", 6000},
        {"16000 \t65535\n", 6000},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(free_port_count(str_from(rows[i].range)), rows[i].count);
}

static void a_reserved_port_is_known(void **state) {
    (void)state;
    static const struct {
        const char *reserved;
        uint16_t port;
        bool is;
    } rows[] = {
        {"\n", 10000, false},
        {"", 0, false},
        {"11211\n", 11211, true},
        {"11211\n", 11210, false},
        {"8080,10250-10259,27017\n", 10249, false},
        {"8080,10250-10259,27017\n", 10250, true},
        {"8080,10250-10259,27017\n", 10259, true},
        {"8080,10250-10259,27017\n", 10260, false},
        {"8080,10250-10259,27017\n", 27017, true},
        {"some,27017,30000-many\n", 27017, true},
        {"some,27017,30000-many\n", 30000, true},
        {"some,27017,30000-many\n", 30001, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(free_port_is_reserved(str_from(rows[i].reserved), rows[i].port),
                         rows[i].is);
}

static int listen_on(uint16_t port) {
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static uint16_t count_here(void) {
    struct buf range;
    struct err e;
    buf_init(&range, 256);
    uint16_t count = file_read(STR("/proc/sys/net/ipv4/ip_local_port_range"), &range, &e)
                         ? free_port_count(buf_str(&range))
                         : 0;
    buf_done(&range);
    return count;
}

/* Each is listened on until the end, so that none is drawn twice. */
static void ports_are_free_and_below_the_kernel_s(void **state) {
    (void)state;
    uint16_t ports[32], count = count_here();
    int fds[ARRAY_LEN(ports)];
    bool rises = true;
    for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
        struct err e;
        assert_true(free_port(&ports[i], &e));
        fds[i] = listen_on(ports[i]);
        if (count) assert_in_range(ports[i], FREE_PORT_LOWEST, FREE_PORT_LOWEST + count - 1);
        rises = rises && (i == 0 || ports[i] > ports[i - 1]);
    }
    assert_false(count > ARRAY_LEN(ports) && rises); /* two programs at once would meet */
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) close(fds[i]);
}

static int compare_ports(const void *a, const void *b) {
    return *(const uint16_t *)a - *(const uint16_t *)b;
}

/* Nothing listens on one before the next is drawn. */
static void ports_of_children_that_do_not_listen_yet_are_all_different(void **state) {
    (void)state;
    static uint16_t ports[FREE_PORT_APART];
    if (count_here() < 2 * ARRAY_LEN(ports)) skip();
    for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
        struct err e;
        assert_true(free_port(&ports[i], &e));
    }
    qsort(ports, ARRAY_LEN(ports), sizeof(ports[0]), compare_ports);
    for (size_t i = 1; i < ARRAY_LEN(ports); i++) assert_int_not_equal(ports[i], ports[i - 1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_s_ports_are_not_drawn_from),
        cmocka_unit_test(a_reserved_port_is_known),
        cmocka_unit_test(ports_are_free_and_below_the_kernel_s),
        cmocka_unit_test(ports_of_children_that_do_not_listen_yet_are_all_different),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
