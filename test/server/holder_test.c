#include "server/holder.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
/* cmocka wants these before it. */
#include <cmocka.h>

static int listen_on(struct address *address) {
    int fd = socket(address->as.any.sa_family, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, &address->as.any, address->len), 0);
    assert_int_equal(listen(fd, 1), 0);
    address->len = sizeof(address->as);
    assert_int_equal(getsockname(fd, &address->as.any, &address->len), 0);
    return fd;
}

static void expect_us(const struct address *address) {
    char who[64], us[64];
    assert_true(holder_find(address, who, sizeof(who)));
    snprintf(us, sizeof(us), "pid %d (holder_test)", (int)getpid());
    assert_string_equal(who, us);
}

static void a_port_is_held_by_its_listening_process(void **state) {
    (void)state;
    static const struct str texts[] = {STR_INIT("127.0.0.1:0"), STR_INIT("[::1]:0"),
                                       STR_INIT(":0")};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct address address;
        struct err e;
        assert_true(address_parse(texts[i], &address, &e));
        int fd = listen_on(&address);
        expect_us(&address);
        close(fd);
        char who[64];
        assert_false(holder_find(&address, who, sizeof(who)));
    }
}

static void a_unix_socket_is_found_by_its_path(void **state) {
    (void)state;
    char text[64];
    struct address address;
    struct err e;
    snprintf(text, sizeof(text), "unix:/tmp/weir holder %d.sock", (int)getpid());
    assert_true(address_parse(str_from(text), &address, &e));
    int fd = listen_on(&address);
    assert_true(address_parse(str_from(text), &address, &e));
    expect_us(&address);
    close(fd);
    unlink(address.as.local.sun_path);
}

static void a_small_space_cuts_the_answer(void **state) {
    (void)state;
    struct address address;
    struct err e;
    assert_true(address_parse(STR("127.0.0.1:0"), &address, &e));
    int fd = listen_on(&address);
    char who[8];
    assert_true(holder_find(&address, who, sizeof(who)));
    assert_int_equal(strlen(who), 7);
    close(fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_is_held_by_its_listening_process),
        cmocka_unit_test(a_unix_socket_is_found_by_its_path),
        cmocka_unit_test(a_small_space_cuts_the_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
