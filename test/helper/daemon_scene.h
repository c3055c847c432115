/* daemon_scene: the real daemon on its own thread, and a client that asks it over sockets.
 *
 *     scene_start(&scene, &contracts, "listen: {http: 127.0.0.1:0, grpc: off}\n");
 *     scene_ask(scene, &(struct question){"http", "GET", "/health"}, &it);
 *     assert_int_equal(it.status, 200);
 *     scene_stop(scene);
 *
 * The client speaks HTTP/2, which every listener accepts, with one request per connection. The
 * folder of a scene holds its settings and its store, and is deleted with it.
 *
 * Memory   scene_start() makes a scene, scene_stop() ends it.
 * Threads  the test's; the daemon has its own, and gets the signals.
 */
#ifndef WEIR_TEST_HELPER_DAEMON_SCENE_H
#define WEIR_TEST_HELPER_DAEMON_SCENE_H

#include "daemon/daemon.h"

struct scene;

/* `settings` is the text of a weir.yaml; the demo's script plays. */
struct scene *scene_start(const struct contract_table *contracts, const char *settings);
void scene_stop(struct scene *scene); /* NULL is fine */

int scene_port(const struct scene *scene, const char *listener); /* 0: it has none */

/* Write other settings, and tell the daemon to read them: soon they are in use. */
void scene_reload(struct scene *scene, const char *settings);

struct question {
    const char *listener, *method, *path;
    const char *token; /* the value of authorization; NULL: none */
    const char *body;  /* JSON, or of gRPC the message; NULL: none */
};

struct reply {
    int status;        /* of HTTP; 0: there was none */
    int grpc_status;   /* -1: there was none */
    char fields[4096]; /* "name: value\n" each, the trailers last */
    char body[65536];  /* as text; of gRPC the message without its prefix */
};

/* The answer is whole when this returns. */
void scene_ask(const struct scene *scene, const struct question *question, struct reply *ret);

/* The same as a unary call of gRPC; the method is POST whatever is said. */
void scene_call(const struct scene *scene, const struct question *question, struct reply *ret);

#endif
