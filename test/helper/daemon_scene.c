#include "helper/daemon_scene.h"

#include "helper/assert_str.h"
#include "helper/test_folder.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORTS_MAX 8

struct scene {
    char folder[64], file[96];
    const struct contract_table *contracts;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    bool ready, over;
    struct {
        const char *listener;
        int port;
    } ports[PORTS_MAX];
    size_t port_count;
    struct err failed;
};

/* --- the daemon --------------------------------------------------------------------------- */

static void note_ports(struct scene *scene, const struct daemon *daemon) {
    for (size_t i = 0; i < scene->contracts->count; i++) {
        const struct contract *row = scene->contracts->rows[i];
        for (size_t n = 0; n < row->listener_count && scene->port_count < PORTS_MAX; n++) {
            const char *name = row->listeners[n].name;
            scene->ports[scene->port_count].listener = name;
            scene->ports[scene->port_count++].port = daemon_port(daemon, name);
        }
    }
}

static void scene_ready(const struct daemon *daemon, void *ctx) {
    struct scene *scene = ctx;
    pthread_mutex_lock(&scene->lock);
    note_ports(scene, daemon);
    scene->ready = true;
    pthread_cond_signal(&scene->changed);
    pthread_mutex_unlock(&scene->lock);
}

static bool serve(struct scene *scene, struct err *e) {
    const char *args[] = {"-c", scene->file};
    const char *environment[] = {"HOME=/nowhere", NULL};
    const struct config_input input = {.args = args,
                                       .arg_count = ARRAY_LEN(args),
                                       .environment = environment,
                                       .cpus = 2,
                                       .more = contract_rows,
                                       .more_ctx = scene->contracts};
    struct config *config;
    if (!config_load(&input, &config, e)) return false;
    const struct daemon_options options = {.config = config,
                                           .input = &input,
                                           .contracts = scene->contracts,
                                           .on_ready = scene_ready,
                                           .ctx = scene};
    bool served = daemon_run(&options, e);
    config_free(config);
    return served;
}

static void *run_daemon(void *ctx) {
    struct scene *scene = ctx;
    struct err e = {.code = ERR_NONE};
    bool served = serve(scene, &e);
    pthread_mutex_lock(&scene->lock);
    scene->over = true;
    if (!served) scene->failed = e;
    pthread_cond_signal(&scene->changed);
    pthread_mutex_unlock(&scene->lock);
    return NULL;
}

static void write_settings(const struct scene *scene, const char *settings) {
    FILE *file = fopen(scene->file, "w");
    assert_non_null(file);
    fprintf(file, "data: data\nthreads: 2\nlog: {level: error}\n%s", settings);
    assert_int_equal(fclose(file), 0);
}

/* The daemon's thread takes them out again: no other one is to get them. */
static void hold_signals(void) {
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &held, NULL);
}

struct scene *scene_start(const struct contract_table *contracts, const char *settings) {
    struct scene *scene = MEM_NEW(struct scene);
    scene->contracts = contracts;
    test_folder_make(scene->folder);
    snprintf(scene->file, sizeof(scene->file), "%s/weir.yaml", scene->folder);
    write_settings(scene, settings);
    pthread_mutex_init(&scene->lock, NULL);
    pthread_cond_init(&scene->changed, NULL);
    hold_signals();
    assert_int_equal(pthread_create(&scene->thread, NULL, run_daemon, scene), 0);
    pthread_mutex_lock(&scene->lock);
    while (!scene->ready && !scene->over) pthread_cond_wait(&scene->changed, &scene->lock);
    pthread_mutex_unlock(&scene->lock);
    if (!scene->ready) fail_msg("%s", scene->failed.text);
    return scene;
}

void scene_stop(struct scene *scene) {
    if (!scene) return;
    kill(getpid(), SIGTERM);
    pthread_join(scene->thread, NULL);
    test_folder_remove(scene->folder);
    assert_int_equal(scene->failed.code, ERR_NONE);
    pthread_mutex_destroy(&scene->lock);
    pthread_cond_destroy(&scene->changed);
    free(scene);
}

void scene_reload(struct scene *scene, const char *settings) {
    write_settings(scene, settings);
    kill(getpid(), SIGHUP);
}

int scene_port(const struct scene *scene, const char *listener) {
    for (size_t i = 0; i < scene->port_count; i++)
        if (strcmp(scene->ports[i].listener, listener) == 0) return scene->ports[i].port;
    return 0;
}

/* --- the peer ----------------------------------------------------------------------------- */

struct peer {
    struct reply *reply;
    struct str body; /* what is still to be sent */
    size_t body_len;
    bool closed;
};

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *ctx) {
    (void)session, (void)frame, (void)flags;
    struct reply *reply = ((struct peer *)ctx)->reply;
    struct str key = str_of(name, name_len), text = str_of(value, value_len);
    size_t len = strlen(reply->fields);
    if (str_equal(key, STR(":status"))) reply->status = atoi((const char *)value);
    if (str_equal(key, STR("grpc-status"))) reply->grpc_status = atoi((const char *)value);
    snprintf(reply->fields + len, sizeof(reply->fields) - len, STR_FMT ": " STR_FMT "\n",
             STR_ARG(key), STR_ARG(text));
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream,
                   const uint8_t *bytes, size_t len, void *ctx) {
    (void)session, (void)flags, (void)stream;
    struct peer *peer = ctx;
    size_t room = sizeof(peer->reply->body) - 1 - peer->body_len;
    size_t count = len < room ? len : room;
    memcpy(peer->reply->body + peer->body_len, bytes, count);
    peer->body_len += count;
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *ctx) {
    (void)session, (void)stream, (void)code;
    ((struct peer *)ctx)->closed = true;
    return 0;
}

static ssize_t give_body(nghttp2_session *session, int32_t stream, uint8_t *to, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *ctx) {
    (void)session, (void)stream, (void)source;
    struct peer *peer = ctx;
    size_t count = peer->body.len < room ? peer->body.len : room;
    if (count) memcpy(to, peer->body.at, count);
    peer->body = str_skip(peer->body, count);
    if (!peer->body.len) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)count;
}

static nghttp2_session *new_session(struct peer *peer) {
    nghttp2_session *session;
    nghttp2_session_callbacks *callbacks;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_client_new(&session, callbacks, peer);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session, 0, NULL, 0);
    return session;
}

#define FIELDS_MAX 8

static nghttp2_nv field_of(const char *name, const char *value) {
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static void submit(nghttp2_session *session, const struct question *question, bool grpc,
                   bool has_body) {
    const nghttp2_data_provider body = {.read_callback = give_body};
    nghttp2_nv fields[FIELDS_MAX] = {
        field_of(":method", question->method), field_of(":scheme", "http"),
        field_of(":authority", "localhost"), field_of(":path", question->path)};
    size_t count = 4;
    const char *type = grpc ? "application/grpc" : "application/json";
    if (has_body) fields[count++] = field_of("content-type", type);
    if (grpc) fields[count++] = field_of("te", "trailers");
    if (question->token) fields[count++] = field_of("authorization", question->token);
    assert_true(nghttp2_submit_request(session, NULL, fields, count, has_body ? &body : NULL,
                                       NULL) > 0);
}

static int dial(int port) {
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = inet_addr("127.0.0.1")};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void send_all(nghttp2_session *session, int fd) {
    const uint8_t *bytes;
    for (ssize_t len; (len = nghttp2_session_mem_send(session, &bytes)) > 0;)
        assert_int_equal(send(fd, bytes, (size_t)len, MSG_NOSIGNAL), len);
}

static void talk(nghttp2_session *session, int fd, const struct peer *peer) {
    uint8_t bytes[16 * 1024];
    send_all(session, fd);
    while (!peer->closed) {
        ssize_t len = recv(fd, bytes, sizeof(bytes), 0);
        if (len <= 0) fail_msg("the daemon closed the connection");
        assert_int_equal(nghttp2_session_mem_recv(session, bytes, (size_t)len), len);
        send_all(session, fd);
    }
}

static void ask(const struct scene *scene, const struct question *question, struct str body,
                bool grpc, struct peer *peer) {
    *peer->reply = (struct reply){.grpc_status = -1};
    peer->body = body;
    int fd = dial(scene_port(scene, question->listener));
    nghttp2_session *session = new_session(peer);
    submit(session, question, grpc, body.at != NULL);
    talk(session, fd, peer);
    nghttp2_session_del(session);
    close(fd);
}

void scene_ask(const struct scene *scene, const struct question *question, struct reply *ret) {
    struct peer peer = {.reply = ret};
    ask(scene, question, question->body ? str_from(question->body) : STR_EMPTY, false, &peer);
}

#define PREFIX_BYTES 5 /* not compressed, and the length; PROTOCOL-HTTP2.md */

void scene_call(const struct scene *scene, const struct question *question, struct reply *ret) {
    struct peer peer = {.reply = ret};
    struct question post = *question;
    char message[4096];
    size_t len = question->body ? strlen(question->body) : 0;
    uint32_t prefix = htonl((uint32_t)len);
    assert_true(PREFIX_BYTES + len <= sizeof(message));
    message[0] = 0;
    memcpy(message + 1, &prefix, sizeof(prefix));
    if (len) memcpy(message + PREFIX_BYTES, question->body, len);
    post.method = "POST";
    ask(scene, &post, str_of(message, PREFIX_BYTES + len), true, &peer);
    if (peer.body_len < PREFIX_BYTES) return;
    memmove(ret->body, ret->body + PREFIX_BYTES, peer.body_len - PREFIX_BYTES + 1);
}
