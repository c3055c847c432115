#include "library/inner.h"

#include "base/mem.h"
#include "base/version.h"
#include "client/url.h"
#include "proto/health.pb.h"
#include "proto/nimi.pb.h"
#include "proto/runtime.pb.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define ADDRESS_MAX_BYTES (1 * KIB)
#define SECRET_MAX_BYTES (16 * KIB)
#define USUAL_APP_ID "weir-client"

/* --- the thread --------------------------------------------------------------------------- */

static void *run(void *ctx) {
    struct weir_client *client = ctx;
    loop_run(client->loop);
    return NULL;
}

static void stop(void *ctx) {
    struct weir_client *client = ctx;
    http_pool_leave(client->pool, client->loop);
    loop_stop(client->loop);
}

/* Signals belong to the program's own threads. */
static bool client_start_thread(struct weir_client *client, struct err *e) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&client->thread, NULL, run, client);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0 || err_set(e, ERR_UNAVAILABLE, "cannot start a thread");
}

/* --- making one --------------------------------------------------------------------------- */

/* "host:port" is http: too. */
static bool read_address(struct weir_client *client, const char *address, struct err *e) {
    struct url url;
    struct buf whole;
    if (!address || !address[0])
        return err_set(
            e, ERR_INVALID_ARGUMENT,
            "no address; give \"host:port\", \"http://host:port\" or \"https://host\"");
    buf_init(&whole, ADDRESS_MAX_BYTES);
    if (!strstr(address, "://")) buf_append(&whole, STR("http://"));
    buf_append(&whole, str_from(address));
    bool good = buf_ok(&whole) && url_read(buf_str(&whole), &url) == URL_FINE && !url.user.at &&
                str_is_plain(str_skip(url.path, 0), "/") && url.path.len <= 1 &&
                url.query.len == 0;
    if (good) {
        client->host = text_copy(url.host);
        client->port = url.port;
        client->secure = url.secure;
        buf_clear(&whole);
        bool six = str_find_byte(str_from(client->host.at), ':') < client->host.len;
        buf_printf(&whole, six ? "%s://[%s]:%u" : "%s://%s:%u",
                   client->secure ? "https" : "http", client->host.at, client->port);
        client->base = text_copy(buf_str(&whole));
    }
    buf_done(&whole);
    return good || err_set(e, ERR_INVALID_ARGUMENT,
                           "'%.100s' is no address: \"host:port\", \"http://host:port\" or "
                           "\"https://host\", without a path",
                           address);
}

static bool is_header_value(const char *text) {
    for (; *text; text++) {
        if (*text < ' ' || *text > '~') return false;
    }
    return true;
}

static bool read_secrets(struct weir_client *client, const char *token, const char *app_id,
                         struct err *e) {
    struct buf bearer;
    if (token && (!is_header_value(token) || strlen(token) > SECRET_MAX_BYTES))
        return err_set(e, ERR_INVALID_ARGUMENT, "the token is too long or not printable ASCII");
    if (app_id && (!is_header_value(app_id) || strlen(app_id) > ADDRESS_MAX_BYTES))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the app id is too long or not printable ASCII");
    client->app_id = text_copy(str_from(app_id && app_id[0] ? app_id : USUAL_APP_ID));
    if (!token || !token[0]) return true;
    buf_init(&bearer, SECRET_MAX_BYTES + KIB);
    buf_printf(&bearer, "Bearer %s", token);
    client->authorization = text_copy(buf_str(&bearer));
    memset(bearer.at, 0, bearer.len);
    buf_done(&bearer);
    return true;
}

static bool load_names(struct weir_client *client, struct err *e) {
    const struct str sets[] = {nimi_descriptor, crawbl_runtime_descriptor,
                               grpc_health_descriptor};
    return protojson_new(sets, ARRAY_LEN(sets), &client->json, e);
}

/* Free what no thread uses. */
static void client_free(struct weir_client *client) {
    if (client->pool) http_pool_free(client->pool);
    if (client->loop) loop_free(client->loop);
    protojson_free(client->json);
    text_done(&client->host);
    text_done(&client->base);
    text_done(&client->app_id);
    text_wipe(&client->authorization);
    pthread_mutex_destroy(&client->lock);
    free(client);
}

static bool set_up(struct weir_client *client, const struct weir_client_options *options,
                   struct err *e) {
    if (!read_address(client, options->address, e) ||
        !read_secrets(client, options->token, options->app_id, e) || !load_names(client, e))
        return false;
    client->loop = loop_new();
    client->pool = http_pool_new();
    if (options->authorities && options->authorities[0])
        http_pool_trust(client->pool, str_from(options->authorities));
    http_pool_add(client->pool, client->loop);
    return http_pool_need(client->pool, e) && client_start_thread(client, e);
}

static void client_say(char *error, size_t room, const struct err *why) {
    if (error && room) snprintf(error, room, "%s", why->text);
}

struct weir_client *weir_client_new(const struct weir_client_options *from, char *error,
                                    size_t error_room) {
    struct weir_client_options options = {0};
    struct weir_client *client = MEM_NEW(struct weir_client);
    struct err why;
    memcpy(&options, from, from->size < sizeof(options) ? from->size : sizeof(options));
    pthread_mutex_init(&client->lock, NULL);
    client->holders = 1;
    if (set_up(client, &options, &why)) return client;
    client_say(error, error_room, &why);
    client_free(client);
    return NULL;
}

void client_drop(struct weir_client *client) {
    pthread_mutex_lock(&client->lock);
    bool last = --client->holders == 0;
    pthread_mutex_unlock(&client->lock);
    if (!last) return;
    loop_post(client->loop, &client->stop, stop, client);
    pthread_join(client->thread, NULL);
    client_free(client);
}

void weir_client_free(struct weir_client *client) {
    if (client) client_drop(client);
}

/* --- facts -------------------------------------------------------------------------------- */

const char *weir_client_version(void) {
    return WEIR_VERSION;
}

const char *weir_fault_name(unsigned fault) {
    struct str name = reader_fault_name((enum reader_fault)fault);
    return name.len ? name.at : "";
}

const char *weir_fault_meaning(unsigned fault) {
    struct str meaning = reader_fault_meaning((enum reader_fault)fault);
    return meaning.len ? meaning.at : "";
}

uint64_t weir_backoff_ms(unsigned attempt) {
    uint64_t random = 0;
    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0) random = 0;
    return stream_outcome_backoff_ms(attempt, random);
}
