/* Ports for children: below those that the kernel gives to any program, and rarely the same. */
#include "loop/free_port.h"

#include "base/file.h"
#include "helper/assert_str.h"

#include <arpa/inet.h>
#include <stdio.h>
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
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(free_port_count(str_from(rows[i].range)), rows[i].count);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_s_ports_are_not_drawn_from),
        cmocka_unit_test(ports_are_free_and_below_the_kernel_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
