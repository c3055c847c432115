#include "cli/model_discovery.h"

#include "base/clock.h"
#include "base/mem.h"
#include "text/terminal_text.h"
#include "wire/json.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MAX_BYTES (64 * KIB)
#define STACK_BYTES (128 * KIB)
#define NAME_MAX_BYTES 256 /* of a model */

/* --- keys --------------------------------------------------------------------------------- */

static const struct {
    const char *variable, *provider;
} keys[] = {
    {"OPENAI_API_KEY", "openai"},         {"ANTHROPIC_API_KEY", "anthropic"},
    {"GEMINI_API_KEY", "gemini"},         {"GOOGLE_API_KEY", "gemini"},
    {"OPENROUTER_API_KEY", "openrouter"},
};

static bool is_set(const struct config_input *input, const char *name) {
    size_t len = strlen(name);
    for (const char *const *entry = input->environment; entry && *entry; entry++) {
        if (strncmp(*entry, name, len) == 0 && (*entry)[len] == '=' && (*entry)[len + 1])
            return true;
    }
    return false;
}

void model_discovery_keys(const struct config_input *input, model_discovery_fn *found,
                          void *ctx) {
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        char model[64];
        struct str provider = str_from(keys[i].provider);
        if (!is_set(input, keys[i].variable)) continue;
        snprintf(model, sizeof(model), "%s/" STR_FMT, keys[i].provider,
                 STR_ARG(config_usual_model(provider)));
        found(str_from(keys[i].variable), str_from(model), ctx);
    }
}

/* --- servers ------------------------------------------------------------------------------ */

static const struct server {
    const char *title, *provider;
    uint16_t port;
} servers[] = {
    {"Ollama", "ollama", 11434},
    {"LM Studio", "lmstudio", 1234},
    {"vLLM", "vllm", 8000},
    {"llama.cpp", "llamacpp", 8080},
};

/* One request to one server. */
struct question {
    int socket; /* -1: finished */
    bool asked;
    struct buf answer;
};

static void model_discovery_give_up(struct question *question) {
    if (question->socket >= 0) close(question->socket);
    question->socket = -1;
}

static void model_discovery_begin(struct question *question, uint16_t port) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    buf_init(&question->answer, ANSWER_MAX_BYTES);
    question->socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (question->socket < 0) return;
    int failed = connect(question->socket, (struct sockaddr *)&address, sizeof(address));
    if (failed && errno != EINPROGRESS) model_discovery_give_up(question);
}

/* HTTP/1.0: the response ends with the connection and is not chunked. */
static void model_discovery_ask(struct question *question) {
    static const char request[] = "GET /v1/models HTTP/1.0\r\nhost: 127.0.0.1\r\n"
                                  "accept: application/json\r\n\r\n";
    ssize_t sent = send(question->socket, request, sizeof(request) - 1, MSG_NOSIGNAL);
    question->asked = true;
    if (sent != (ssize_t)sizeof(request) - 1) model_discovery_give_up(question);
}

static void read_some(struct question *question) {
    char *room = buf_room(&question->answer, 4 * KIB);
    ssize_t got = room ? recv(question->socket, room, 4 * KIB, 0) : 0;
    if (got > 0) {
        buf_grew(&question->answer, (size_t)got);
    } else if (got == 0 || errno != EAGAIN) {
        model_discovery_give_up(question);
    }
}

/* Ask all servers at once, until each has answered or the time is over. */
static void converse(struct question *questions, uint64_t until_us) {
    struct pollfd polls[ARRAY_LEN(servers)];
    for (;;) {
        size_t open = 0;
        for (size_t i = 0; i < ARRAY_LEN(servers); i++) {
            const struct question *question = &questions[i];
            short events = question->asked ? POLLIN : POLLOUT;
            polls[i] = (struct pollfd){.fd = question->socket, .events = events};
            open += question->socket >= 0;
        }
        uint64_t now_us = clock_mono_us();
        if (!open || now_us >= until_us) return;
        if (poll(polls, ARRAY_LEN(polls), (int)((until_us - now_us) / 1000) + 1) <= 0) return;
        for (size_t i = 0; i < ARRAY_LEN(servers); i++) {
            if (questions[i].socket < 0 || !polls[i].revents) continue;
            (questions[i].asked ? read_some : model_discovery_ask)(&questions[i]);
        }
    }
}

/* A weir lists its agents as models. It is no model server to itself, nor to another one. */
static bool is_weir(struct json entry) {
    return json_is(json_find(entry, STR("owned_by")), STR("weir"));
}

/* Any program of this machine may answer here, another user's among them. What it says is shown in
 * a terminal and written into a settings file. */
static bool is_plain(struct str id) {
    struct buf shown;
    buf_init(&shown, 8 * NAME_MAX_BYTES);
    bool plain = terminal_text_append(&shown, id, TERMINAL_ONE_LINE) &&
                 str_equal(buf_str(&shown), id) &&
                 str_find(id, STR(" ")) == id.len; /* no setting takes one */
    buf_done(&shown);
    return plain;
}

bool model_discovery_read(struct str answer, struct buf *ret) {
    struct str body = str_skip(answer, str_find(answer, STR("\r\n\r\n")) + 4);
    struct json list, first = {.kind = JSON_NONE};
    struct err e;
    if (json_read(body, &list, &e)) first = json_at(json_find(list, STR("data")), 0);
    return json_text(json_find(first, STR("id")), ret) && ret->len &&
           ret->len <= NAME_MAX_BYTES && is_plain(buf_str(ret)) && !is_weir(first);
}

static void model_discovery_report(const struct server *server, struct question *question,
                                   model_discovery_fn *found, void *ctx) {
    struct buf name, what, model;
    buf_init(&name, NAME_MAX_BYTES);
    buf_init(&what, NAME_MAX_BYTES + 64);
    buf_init(&model, NAME_MAX_BYTES + 64);
    if (model_discovery_read(buf_str(&question->answer), &name)) {
        struct str id = buf_str(&name);
        buf_printf(&what, "%s on 127.0.0.1:%u (" STR_FMT ")", server->title, server->port,
                   STR_ARG(id));
        buf_printf(&model, "%s/" STR_FMT, server->provider, STR_ARG(id));
        found(buf_str(&what), buf_str(&model), ctx);
    }
    buf_done(&model);
    buf_done(&what);
    buf_done(&name);
}

void model_discovery_servers(model_discovery_fn *found, void *ctx) {
    struct question questions[ARRAY_LEN(servers)] = {0};
    for (size_t i = 0; i < ARRAY_LEN(servers); i++)
        model_discovery_begin(&questions[i], servers[i].port);
    converse(questions, clock_mono_us() + MODEL_DISCOVERY_WAIT_MS * UINT64_C(1000));
    for (size_t i = 0; i < ARRAY_LEN(servers); i++) {
        model_discovery_give_up(&questions[i]);
        model_discovery_report(&servers[i], &questions[i], found, ctx);
        buf_done(&questions[i].answer);
    }
}

/* --- in the background of a daemon -------------------------------------------------------- */

struct model_discovery_watch {
    pthread_t thread;
    model_discovery_fn *found;
    void *ctx;
};

static void *run_watch(void *ctx) {
    const struct model_discovery_watch *watch = ctx;
    model_discovery_servers(watch->found, watch->ctx);
    return NULL;
}

struct model_discovery_watch *model_discovery_watch_start(model_discovery_fn *found,
                                                          void *ctx) {
    struct model_discovery_watch *watch = MEM_NEW(struct model_discovery_watch);
    pthread_attr_t attr;
    sigset_t all, before;
    *watch = (struct model_discovery_watch){.found = found, .ctx = ctx};
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* the daemon handles signals */
    int failed = pthread_create(&watch->thread, &attr, run_watch, watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (!failed) return watch;
    free(watch);
    return NULL;
}

void model_discovery_watch_stop(struct model_discovery_watch *watch) {
    if (!watch) return;
    pthread_join(watch->thread, NULL);
    free(watch);
}
