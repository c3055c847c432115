#include "server/server.h"

#include "fake/close_fake.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
/* cmocka wants some of these before it. */
#include <cmocka.h>

struct stage {
    struct loop *loop;
    struct server *server;
};

static void halt(void *ctx) {
    const struct stage *stage = ctx;
    loop_stop(stage->loop);
}

static void on_closed(struct exchange *exchange, enum exchange_close how, void *ctx) {
    (void)exchange, (void)how, (void)ctx;
}

/* The first request stops the server, which answers it and closes all that it has. */
static void on_request(struct exchange *exchange, void *ctx) {
    static const struct exchange_events none = {.on_closed = on_closed};
    struct stage *stage = ctx;
    exchange_accept(exchange, &none, stage);
    exchange_head(exchange, 200, NULL, 0);
    exchange_end(exchange, NULL, 0);
    server_stop(stage->server, 1000, halt, stage);
}

static int ask(int port) {
    static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(write(fd, request, sizeof(request) - 1), sizeof(request) - 1);
    return fd;
}

static void a_descriptor_is_closed_after_its_loop_has_let_go_of_it(void **state) {
    (void)state;
    struct stage stage = {.loop = loop_new()};
    struct err e;
    char answer[16] = "";
    stage.server = server_new(&stage.loop, 1);
    const struct listener_options options = {.name = STR("http"),
                                             .address = STR("127.0.0.1:0"),
                                             .on_request = on_request,
                                             .ctx = &stage};
    assert_true(server_listen(stage.server, &options, &e));
    int fd = ask(server_port(stage.server, STR("http")));
    close_fake_watch(stage.loop);
    loop_run(stage.loop);
    assert_int_equal(close_fake_early(), 0);
    close_fake_watch(NULL);
    assert_true(read(fd, answer, sizeof(answer) - 1) > 0);
    assert_memory_equal(answer, "HTTP/1.1 200", strlen("HTTP/1.1 200"));
    close(fd);
    server_free(stage.server);
    loop_free(stage.loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_descriptor_is_closed_after_its_loop_has_let_go_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
