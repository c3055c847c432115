/* The client's side of TLS against servers of all kinds, in memory: which ones it trusts, the
 * error for the others, and the alert that the server gets. */
#include "tls/visit.h"

#include "base/mem.h"
#include "helper/assert_str.h"
#include "helper/certificates.h"
#include "tls/openssl.h"
#include "tls/tickets.h"

#include <dlfcn.h>

/* What only a server of a test needs is not in our table. */
static struct {
    __typeof__(SSL_get_servername) *SSL_get_servername;
    __typeof__(SSL_version) *SSL_version;
    __typeof__(SSL_renegotiate) *SSL_renegotiate;
    __typeof__(SSL_new_session_ticket) *SSL_new_session_ticket;
    __typeof__(SSL_CTX_set_security_level) *SSL_CTX_set_security_level;
} more;

static void find_more(void) {
    void *ssl = dlopen("libssl.so.3", RTLD_NOW);
#define FIND(name)                                                                             \
    do {                                                                                       \
        void *found = dlsym(ssl, #name);                                                       \
        assert_non_null(found);                                                                \
        memcpy(&more.name, &found, sizeof(found));                                             \
    } while (0)
    FIND(SSL_get_servername);
    FIND(SSL_version);
    FIND(SSL_renegotiate);
    FIND(SSL_new_session_ticket);
    FIND(SSL_CTX_set_security_level);
}

/* --- both sides --------------------------------------------------------------------------- */

struct server {
    SSL_CTX *context;
    const char *ciphers; /* NULL: all */
    long version;        /* 0: any */
    bool wants_certificate, speaks_2, knows_no_protocol;
};

struct scene {
    const struct openssl *ssl;
    struct server server;
    struct trust *trust;
    struct visit visit;
    struct records *theirs;
    struct buf to_them, to_us;          /* under way */
    struct buf heard_there, heard_here; /* plain */
    enum records_verdict verdict, their_verdict;
    size_t piece; /* bytes that arrive at once here; 0: all */
};

static struct trust *trust_of(const char *name) {
    struct trust *trust;
    struct err e;
    struct trust_options options = {.file = str_from(certificates_path(name, "pem"))};
    if (!trust_load(&options, &trust, &e)) fail_msg("%s", e.text);
    return trust;
}

static int choose(SSL *state, const unsigned char **ret, unsigned char *ret_len,
                  const unsigned char *names, unsigned len, void *ctx) {
    const struct server *server = ctx;
    struct str wanted = server->speaks_2 ? STR("h2") : STR("http/1.1");
    (void)state;
    for (unsigned at = 0; at < len && !server->knows_no_protocol; at += 1u + names[at]) {
        if (!str_equal(str_of(names + at + 1, names[at]), wanted)) continue;
        *ret = names + at + 1;
        *ret_len = names[at];
        return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void open_server(struct scene *scene, const char *certificate) {
    const struct openssl *ssl = scene->ssl;
    struct server *server = &scene->server;
    SSL_CTX *context = server->context = ssl->SSL_CTX_new(ssl->TLS_server_method());
    more.SSL_CTX_set_security_level(context, 0);
    if (server->ciphers)
        assert_int_equal(ssl->SSL_CTX_set_cipher_list(context, server->ciphers), 1);
    if (server->version) {
        ssl->SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, server->version, NULL);
        ssl->SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, server->version, NULL);
    }
    if (server->wants_certificate)
        ssl->SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                                NULL);
    ssl->SSL_CTX_set_session_id_context(context, (const unsigned char *)"test", 4);
    ssl->SSL_CTX_set_alpn_select_cb(context, choose, server);
    assert_int_equal(
        ssl->SSL_CTX_use_certificate_chain_file(context, certificates_path(certificate, "pem")),
        1);
    assert_int_equal(ssl->SSL_CTX_use_PrivateKey_file(
                         context, certificates_path(certificate, "key"), SSL_FILETYPE_PEM),
                     1);
}

static void open_scene(struct scene *scene, const char *trusted, const char *certificate) {
    struct err e;
    if (!openssl_load(&scene->ssl, &e)) fail_msg("%s", e.text);
    find_more();
    scene->trust = trust_of(trusted);
    open_server(scene, certificate);
    buf_init(&scene->to_them, MIB);
    buf_init(&scene->to_us, MIB);
    buf_init(&scene->heard_there, MIB);
    buf_init(&scene->heard_here, MIB);
}

static void connect_to(struct scene *scene, const struct visit_options *options) {
    visit_init(&scene->visit, scene->trust, options);
    scene->theirs = records_new(scene->server.context, RECORDS_SERVER);
    scene->verdict =
        records_receive(scene->visit.records, STR_EMPTY, &scene->heard_here, &scene->to_them);
    scene->their_verdict = RECORDS_FINE;
}

static void disconnect(struct scene *scene) {
    if (scene->visit.records &&
        scene->verdict != RECORDS_BROKEN) /* one that breaks is not resumed (RFC 5246 7.2.2) */
        records_end(scene->visit.records, &scene->to_them);
    visit_done(&scene->visit);
    records_free(scene->theirs);
    struct buf *const all[] = {&scene->to_them, &scene->to_us, &scene->heard_there,
                               &scene->heard_here};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) buf_clear(all[i]);
}

static void shut_scene(struct scene *scene) {
    disconnect(scene);
    trust_unref(scene->trust);
    scene->ssl->SSL_CTX_free(scene->server.context);
    buf_done(&scene->to_them);
    buf_done(&scene->to_us);
    buf_done(&scene->heard_there);
    buf_done(&scene->heard_here);
}

static void arrive_here(struct scene *scene) {
    struct buf bytes = scene->to_us;
    struct str left = buf_str(&bytes);
    buf_init(&scene->to_us, MIB);
    while (left.len && scene->verdict == RECORDS_FINE) {
        struct str piece = str_head(left, scene->piece ? scene->piece : left.len);
        scene->verdict =
            records_receive(scene->visit.records, piece, &scene->heard_here, &scene->to_them);
        left = str_skip(left, piece.len);
    }
    buf_done(&bytes);
}

static void arrive_there(struct scene *scene) {
    struct buf bytes = scene->to_them;
    buf_init(&scene->to_them, MIB);
    scene->their_verdict =
        records_receive(scene->theirs, buf_str(&bytes), &scene->heard_there, &scene->to_us);
    buf_done(&bytes);
}

/* Until both are silent. */
static void pump(struct scene *scene) {
    while (scene->to_them.len || scene->to_us.len) {
        if (scene->to_them.len && scene->their_verdict == RECORDS_FINE)
            arrive_there(scene);
        else
            buf_clear(&scene->to_them);
        arrive_here(scene);
    }
}

static bool shake_hands(struct scene *scene, const char *host) {
    connect_to(scene,
               &(struct visit_options){.host = str_from(host), .protocols = VISIT_HTTP_1});
    pump(scene);
    return scene->verdict == RECORDS_FINE && records_are_open(scene->visit.records) &&
           records_are_open(scene->theirs);
}

static void they_say(struct scene *scene, struct str text) {
    assert_true(records_seal(scene->theirs, text, &scene->to_us));
    pump(scene);
}

static void we_say(struct scene *scene, struct str text) {
    assert_true(records_seal(scene->visit.records, text, &scene->to_them));
    pump(scene);
}

static void assert_says(const struct scene *scene, const char *what, const char *fix) {
    struct err why;
    visit_explain(&scene->visit, &why);
    assert_int_equal(why.code, ERR_UNAVAILABLE);
    if (!strstr(why.text, what) || !strstr(why.text, fix))
        fail_msg("'%s' and '%s' in: %s", what, fix, why.text);
}

/* --- whom it believes --------------------------------------------------------------------- */

static void what_is_in_order_is_believed(void **state) {
    (void)state;
    static const struct {
        const char *certificate, *host;
    } cases[] = {
        {"server", "localhost"},        {"server", "LocalHost"},
        {"server", "localhost."},       {"server", "second.test"},
        {"server", "127.0.0.1"},        {"server", "127.1"},
        {"server", "0x7f000001"},       {"server", "::1"},
        {"server", "0:0:0:0:0:0:0:1"},  {"wildcard", "a.example.test"},
        {"wildcard", "A.Example.Test"}, {"chain", "localhost"},
        {"both", "localhost"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scene scene = {0};
        open_scene(&scene, "root", cases[i].certificate);
        if (!shake_hands(&scene, cases[i].host))
            fail_msg("%s as %s", cases[i].certificate, cases[i].host);
        we_say(&scene, STR("hello"));
        they_say(&scene, STR("and you"));
        assert_str(buf_str(&scene.heard_there), "hello");
        assert_str(buf_str(&scene.heard_here), "and you");
        shut_scene(&scene);
    }
}

#define AUTHORITY "SSL_CERT_FILE names"
#define ADD_NAME "subjectAltName"

static void what_is_not_in_order_is_refused_and_explained(void **state) {
    (void)state;
    static const struct {
        const char *certificate, *host, *what, *fix;
    } cases[] = {
        {"server", "other.test", "not for the name in the URL but for localhost, second.test",
         ADD_NAME},
        {"server", "sub.localhost", "not for the name", ADD_NAME},
        {"wildcard", "a.b.example.test", "but for *.example.test", ADD_NAME},
        {"wildcard", "example.test", "but for *.example.test", ADD_NAME},
        {"wildcard", "aexample.test", "but for *.example.test", ADD_NAME},
        {"broad", "localhost.test", "but for *.test", ADD_NAME},
        {"partial", "wide.example.test", "but for w*.example.test", ADD_NAME},
        {"common", "common", "but for no name at all", ADD_NAME},
        {"strange", "localhost", "but for ?[31mred", ADD_NAME},
        {"server", "127.0.0.2", "not for the address in the URL but for", ADD_NAME},
        {"server", "::2", "not for the address in the URL but for", ADD_NAME},
        {"named", "127.0.0.1", "not for the address in the URL but for 127.0.0.1", ADD_NAME},
        {"addressed", "localhost", "but for 127.0.0.1", ADD_NAME},
        {"expired", "localhost", "valid no longer, since 2021-02-03 04:05 UTC", "renew it"},
        {"early", "localhost", "not valid before 2040-02-03 04:05 UTC", "the clock"},
        {"self", "localhost", "self-signed", AUTHORITY},
        {"foreign", "localhost", "authority is unknown here", AUTHORITY},
        {"foreign", "localhost", "CN=stranger", AUTHORITY},
        {"unchained", "localhost", "leaves out a certificate in between", AUTHORITY},
        {"child", "localhost", "signed by one that may not sign", "CA:TRUE"},
        {"client", "localhost", "not one for servers", "serverAuth"},
        {"short", "localhost", "its key is too short", "2048"},
        {"weak", "localhost", "signed with a hash that is broken", "SHA-256"},
    };
    static const long versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
        struct scene scene = {.server = {.version = versions[i % 2]}};
        open_scene(&scene, "root", cases[i / 2].certificate);
        if (shake_hands(&scene, cases[i / 2].host))
            fail_msg("%s as %s is believed", cases[i / 2].certificate, cases[i / 2].host);
        assert_int_equal(scene.verdict, RECORDS_BROKEN);
        assert_says(&scene, cases[i / 2].what, cases[i / 2].fix);
        assert_int_equal(scene.their_verdict, RECORDS_BROKEN); /* an alert came */
        assert_int_equal(scene.heard_there.len, 0);
        shut_scene(&scene);
    }
}

static void what_is_signed_by_itself_is_believed_where_it_is_named(void **state) {
    (void)state;
    struct scene scene = {0};
    open_scene(&scene, "self", "self");
    assert_true(shake_hands(&scene, "localhost"));
    shut_scene(&scene);
}

static void what_is_offered_must_be_safe(void **state) {
    (void)state;
    static const struct {
        struct server server;
        const char *what, *fix;
    } cases[] = {
        {{.version = TLS1_1_VERSION, .ciphers = "ALL:@SECLEVEL=0"},
         "no TLS that is still safe",
         "must speak TLS 1.2"},
        {{.version = TLS1_VERSION, .ciphers = "ALL:@SECLEVEL=0"},
         "no TLS that is still safe",
         "must speak TLS 1.2"},
        {{.version = TLS1_2_VERSION, .ciphers = "ECDHE+AES:!AESGCM:!AESCCM"},
         "shares no cipher with us",
         "AES-GCM"},
        {{.wants_certificate = true}, "asks for a certificate of the caller", "a proxy"},
        {{.knows_no_protocol = true}, "does not speak HTTP/1.1 over TLS", "offer http/1.1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scene scene = {.server = cases[i].server};
        open_scene(&scene, "root", "server");
        (void)shake_hands(&scene, "localhost"); /* TLS 1.3 asks for certificates at its end */
        assert_int_equal(scene.verdict, RECORDS_BROKEN);
        assert_says(&scene, cases[i].what, cases[i].fix);
        assert_int_equal(scene.heard_there.len, 0);
        shut_scene(&scene);
    }
}

static void bytes_that_are_not_tls_are_reported_as_such(void **state) {
    (void)state;
    static const struct {
        struct str text;
        const char *what;
    } cases[] = {
        {STR_INIT("HTTP/1.1 400 Bad Request\r\n\r\n"),
         "not TLS: if the server speaks plain HTTP"},
        {STR_INIT("SSH-2.0-OpenSSH_9.2p1 Debian\r\n"), "not TLS"},
        {STR_INIT("\x16\x03\x03\xff\xff\x02 longer than a record may be"), "TLS"},
        {STR_INIT("\x17\x03\x03\x00\x05hello"), "TLS"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scene scene = {0};
        open_scene(&scene, "root", "server");
        connect_to(&scene, &(struct visit_options){.host = STR("localhost")});
        scene.verdict = records_receive(scene.visit.records, cases[i].text, &scene.heard_here,
                                        &scene.to_them);
        assert_int_equal(scene.verdict, RECORDS_BROKEN);
        assert_int_equal(scene.heard_here.len, 0);
        assert_says(&scene, cases[i].what, "");
        shut_scene(&scene);
    }
}

/* --- what it says ------------------------------------------------------------------------- */

static void a_name_is_sent_and_an_address_is_not(void **state) {
    (void)state;
    static const struct {
        const char *host, *sent;
    } cases[] = {{"localhost", "localhost"},
                 {"second.test.", "second.test"},
                 {"127.0.0.1", NULL},
                 {"::1", NULL}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scene scene = {0};
        open_scene(&scene, "root", "server");
        assert_true(shake_hands(&scene, cases[i].host));
        const char *sent =
            more.SSL_get_servername(records_state(scene.theirs), TLSEXT_NAMETYPE_host_name);
        assert_true((sent == NULL) == (cases[i].sent == NULL));
        if (sent) assert_string_equal(sent, cases[i].sent);
        shut_scene(&scene);
    }
}

static void the_protocol_is_one_that_both_speak(void **state) {
    (void)state;
    static const struct {
        unsigned offered;
        bool speaks_2;
        unsigned chosen;
    } cases[] = {
        {VISIT_HTTP_1, false, VISIT_HTTP_1},
        {VISIT_HTTP_1 | VISIT_HTTP_2, false, VISIT_HTTP_1},
        {VISIT_HTTP_1 | VISIT_HTTP_2, true, VISIT_HTTP_2},
        {VISIT_HTTP_2, true, VISIT_HTTP_2},
        {0, true, VISIT_HTTP_1}, /* neither says anything of it */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scene scene = {.server = {.speaks_2 = cases[i].speaks_2}};
        open_scene(&scene, "root", "server");
        connect_to(&scene, &(struct visit_options){.host = STR("localhost"),
                                                   .protocols = cases[i].offered});
        pump(&scene);
        assert_true(records_are_open(scene.visit.records));
        assert_int_equal(visit_protocol(&scene.visit), cases[i].chosen);
        shut_scene(&scene);
    }
}

/* --- bytes -------------------------------------------------------------------------------- */

static void it_reads_the_same_however_it_is_cut(void **state) {
    (void)state;
    static const long versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    char much[40 * 1000];
    memset(much, 'm', sizeof(much));
    for (size_t i = 0; i < 2 * 5; i++) {
        struct scene scene = {.server = {.version = versions[i % 2]}};
        open_scene(&scene, "root", "chain");
        scene.piece = 1 + i / 2 * 7;
        assert_true(shake_hands(&scene, "localhost"));
        assert_int_equal(more.SSL_version(records_state(scene.theirs)), versions[i % 2]);
        they_say(&scene, str_of(much, sizeof(much)));
        assert_true(str_equal(buf_str(&scene.heard_here), str_of(much, sizeof(much))));
        we_say(&scene, str_of(much, sizeof(much)));
        assert_true(str_equal(buf_str(&scene.heard_there), str_of(much, sizeof(much))));
        shut_scene(&scene);
    }
}

/* Half of a record waits in a buffer that is to be released. */
static void nothing_is_lost_when_buffers_are_kept_or_released(void **state) {
    (void)state;
    struct scene scene = {0};
    open_scene(&scene, "root", "server");
    assert_true(shake_hands(&scene, "localhost"));
    struct records *ours = scene.visit.records;
    records_keep_buffers(ours);
    they_say(&scene, STR("one "));
    we_say(&scene, STR("a "));
    assert_true(records_seal(scene.theirs, STR("two "), &scene.to_us));
    struct str sealed = buf_str(&scene.to_us);
    for (size_t i = 0; i < sealed.len; i++) {
        records_release_buffers(ours);
        if (i % 2 == 0) records_keep_buffers(ours);
        assert_int_equal(records_receive(ours, str_head(str_skip(sealed, i), 1),
                                         &scene.heard_here, &scene.to_them),
                         RECORDS_FINE);
    }
    buf_clear(&scene.to_us);
    records_release_buffers(ours);
    they_say(&scene, STR("three"));
    we_say(&scene, STR("b"));
    assert_str(buf_str(&scene.heard_here), "one two three");
    assert_str(buf_str(&scene.heard_there), "a b");
    shut_scene(&scene);
}

static void an_end_is_said_and_understood(void **state) {
    (void)state;
    struct scene scene = {0};
    open_scene(&scene, "root", "server");
    assert_true(shake_hands(&scene, "localhost"));
    assert_true(records_seal(scene.theirs, STR("last"), &scene.to_us));
    records_end(scene.theirs, &scene.to_us);
    pump(&scene);
    assert_str(buf_str(&scene.heard_here), "last");
    assert_int_equal(scene.verdict, RECORDS_ENDED);
    records_end(scene.visit.records, &scene.to_them);
    pump(&scene);
    assert_int_equal(scene.their_verdict, RECORDS_ENDED);
    shut_scene(&scene);
}

/* RFC 8446 4.6.1 lets a server send as many as it likes; one that says nothing else is ill. */
static void tickets_without_end_break_the_connection(void **state) {
    (void)state;
    struct scene scene = {.server = {.version = TLS1_3_VERSION}};
    open_scene(&scene, "root", "server");
    assert_true(shake_hands(&scene, "localhost"));
    size_t count = 0;
    for (; scene.verdict == RECORDS_FINE && count < 10000; count++) {
        more.SSL_new_session_ticket(records_state(scene.theirs));
        (void)records_receive(scene.theirs, STR_EMPTY, &scene.heard_there, &scene.to_us);
        assert_true(scene.to_us.len > 0);
        pump(&scene);
    }
    assert_int_equal(scene.verdict, RECORDS_BROKEN);
    assert_in_range(count, 50, 2000);
    shut_scene(&scene);
}

static void renegotiation_is_refused(void **state) {
    (void)state;
    struct scene scene = {.server = {.version = TLS1_2_VERSION}};
    open_scene(&scene, "root", "server");
    assert_true(shake_hands(&scene, "localhost"));
    more.SSL_renegotiate(records_state(scene.theirs));
    (void)records_receive(scene.theirs, STR_EMPTY, &scene.heard_there, &scene.to_us);
    assert_true(scene.to_us.len > 0); /* their request */
    pump(&scene);
    assert_int_equal(scene.their_verdict, RECORDS_BROKEN);
    assert_int_equal(scene.verdict, RECORDS_BROKEN);
    shut_scene(&scene);
}

/* --- tickets ------------------------------------------------------------------------------ */

static void keep(SSL_SESSION *ticket, void *ctx) {
    tickets_put(ctx, STR("localhost"), 443, ticket, 1000);
}

static bool visit_again(struct scene *scene, struct tickets *tickets, uint64_t now_ms) {
    disconnect(scene);
    connect_to(scene, &(struct visit_options){
                          .host = STR("localhost"),
                          .ticket = tickets_take(tickets, STR("LOCALHOST"), 443, now_ms),
                          .on_ticket = keep,
                          .ctx = tickets});
    pump(scene);
    we_say(scene, STR("hello"));
    assert_str(buf_str(&scene->heard_there), "hello");
    return visit_was_resumed(&scene->visit);
}

static void a_second_visit_is_short(void **state) {
    (void)state;
    static const long versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        struct scene scene = {.server = {.version = versions[i]}};
        struct tickets tickets;
        tickets_init(&tickets);
        open_scene(&scene, "root", "server");
        assert_false(visit_again(&scene, &tickets, 1000));
        assert_true(tickets.count >= 1);
        for (int again = 0; again < 6; again++)
            assert_true(visit_again(&scene, &tickets, 1000 + TICKETS_AGE_MS - 1));
        assert_false(visit_again(&scene, &tickets, 1000 + TICKETS_AGE_MS));
        shut_scene(&scene);
        tickets_done(&tickets);
    }
}

static void a_ticket_is_of_one_server_and_used_once(void **state) {
    (void)state;
    struct scene scene = {.server = {.version = TLS1_3_VERSION}};
    struct tickets tickets;
    tickets_init(&tickets);
    open_scene(&scene, "root", "server");
    assert_false(visit_again(&scene, &tickets, 1000));
    assert_null(tickets_take(&tickets, STR("localhost"), 444, 1000));
    assert_null(tickets_take(&tickets, STR("localhos"), 443, 1000));
    size_t count = tickets.count;
    assert_in_range(count, 1, TICKETS_SERVER_MAX);
    while (count--) {
        SSL_SESSION *ticket = tickets_take(&tickets, STR("localhost"), 443, 1000);
        assert_non_null(ticket);
        scene.ssl->SSL_SESSION_free(ticket);
    }
    assert_null(tickets_take(&tickets, STR("localhost"), 443, 1000));
    shut_scene(&scene);
    tickets_done(&tickets);
}

static void tickets_are_few(void **state) {
    (void)state;
    struct scene scene = {.server = {.version = TLS1_3_VERSION}};
    struct tickets tickets;
    tickets_init(&tickets);
    open_scene(&scene, "root", "server");
    assert_false(visit_again(&scene, &tickets, 1000));
    SSL_SESSION *ticket = tickets_take(&tickets, STR("localhost"), 443, 1000);
    assert_non_null(ticket);
    for (uint16_t i = 0; i < 3 * TICKETS_MAX; i++) {
        scene.ssl->SSL_SESSION_up_ref(ticket);
        tickets_put(&tickets, STR("one"), (uint16_t)(i / 8), ticket, 1000);
        assert_true(tickets.count <= TICKETS_MAX);
    }
    size_t of_one = 0;
    for (SSL_SESSION *taken;
         (taken = tickets_take(&tickets, STR("one"), 3 * TICKETS_MAX / 8 - 1, 1000)); of_one++)
        scene.ssl->SSL_SESSION_free(taken);
    assert_int_equal(of_one, TICKETS_SERVER_MAX);
    scene.ssl->SSL_SESSION_free(ticket);
    shut_scene(&scene);
    tickets_done(&tickets);
}

/* --- authorities -------------------------------------------------------------------------- */

static void authorities_come_from_folders_too(void **state) {
    (void)state;
    char folders[256];
    struct trust *trust;
    struct err e;
    struct scene scene = {0};
    snprintf(folders, sizeof(folders), "%s/empty:%s/known", certificates_folder,
             certificates_folder);
    open_scene(&scene, "stranger", "server");
    assert_false(shake_hands(&scene, "localhost"));
    if (!trust_load(&(struct trust_options){.folders = str_from(folders)}, &trust, &e))
        fail_msg("%s", e.text);
    trust_unref(scene.trust);
    scene.trust = trust;
    disconnect(&scene);
    scene.verdict = RECORDS_FINE;
    assert_true(shake_hands(&scene, "localhost"));
    shut_scene(&scene);
}

static void authorities_that_cannot_be_read_are_named(void **state) {
    (void)state;
    static const struct {
        const char *file, *folders, *named;
    } cases[] = {
        {"gone.pem", NULL, "gone.pem' (No such file or directory)"},
        {"log", NULL, "log' ("},
        {"index", NULL, "index' ("},
        {NULL, "gone", "gone' (No such file or directory)"},
        {NULL, "empty", "no certificate in"},
        {"root.pem", "gone", "gone' ("},
        {NULL, "known:gone", "gone' ("},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char file[128], folders[256];
        struct trust *trust;
        struct err e;
        struct trust_options options = {STR_EMPTY, STR_EMPTY};
        snprintf(file, sizeof(file), "%s/%s", certificates_folder, cases[i].file);
        snprintf(folders, sizeof(folders), "%s/%s", certificates_folder, cases[i].folders);
        if (cases[i].folders && strcmp(cases[i].folders, "known:gone") == 0)
            snprintf(folders, sizeof(folders), "%s/known:%s/gone", certificates_folder,
                     certificates_folder);
        if (cases[i].file) options.file = str_from(file);
        if (cases[i].folders) options.folders = str_from(folders);
        assert_false(trust_load(&options, &trust, &e));
        assert_int_equal(e.code, ERR_UNAVAILABLE);
        if (!strstr(e.text, cases[i].named) || !strstr(e.text, "SSL_CERT_"))
            fail_msg("'%s' in: %s", cases[i].named, e.text);
    }
}

/* --- certificates ------------------------------------------------------------------------- */

#define LOCAL "subjectAltName=DNS:localhost"

static int make_certificates(void **state) {
    static const struct certificates_wish wishes[] = {
        {.name = "server",
         .issuer = "root",
         .extensions = "subjectAltName=DNS:localhost,DNS:second.test,IP:127.0.0.1,IP:::1"},
        {.name = "wildcard",
         .issuer = "root",
         .extensions = "subjectAltName=DNS:*.example.test"},
        {.name = "broad", .issuer = "root", .extensions = "subjectAltName=DNS:*.test"},
        {.name = "partial",
         .issuer = "root",
         .extensions = "subjectAltName=DNS:w*.example.test"},
        {.name = "common", .issuer = "root", .extensions = "basicConstraints=CA:FALSE"},
        {.name = "strange", .issuer = "root", .extensions = "subjectAltName=DNS:\\033[31mred"},
        {.name = "named", .issuer = "root", .extensions = "subjectAltName=DNS:127.0.0.1"},
        {.name = "addressed", .issuer = "root", .extensions = "subjectAltName=IP:127.0.0.1"},
        {.name = "expired",
         .issuer = "root",
         .extensions = LOCAL,
         .from = "20210103040506Z",
         .to = "20210203040506Z"},
        {.name = "early",
         .issuer = "root",
         .extensions = LOCAL,
         .from = "20400203040506Z",
         .to = "20410203040506Z"},
        {.name = "foreign", .issuer = "stranger", .extensions = LOCAL},
        {.name = "middle", .issuer = "root", .extensions = CERTIFICATES_CA},
        {.name = "unchained", .issuer = "middle", .extensions = LOCAL},
        {.name = "chain", .issuer = "middle", .extensions = LOCAL},
        {.name = "leaf",
         .issuer = "root",
         .extensions = "basicConstraints=CA:FALSE\\nsubjectAltName=DNS:localhost"},
        {.name = "child", .issuer = "leaf", .extensions = LOCAL},
        {.name = "client",
         .issuer = "root",
         .extensions = LOCAL "\\nextendedKeyUsage=clientAuth"},
        {.name = "both",
         .issuer = "root",
         .extensions = LOCAL "\\nextendedKeyUsage=clientAuth,serverAuth"},
        {.name = "short",
         .issuer = "root",
         .extensions = LOCAL,
         .key = "-newkey rsa:1024 -nodes"},
        {.name = "weak", .issuer = "root", .extensions = LOCAL, .digest = "sha1"},
    };
    (void)state;
    int failed = certificates_open() || certificates_self_signed("root", CERTIFICATES_CA) ||
                 certificates_self_signed("stranger", CERTIFICATES_CA) ||
                 certificates_self_signed("self", LOCAL);
    for (size_t i = 0; !failed && i < ARRAY_LEN(wishes); i++)
        failed = certificates_sign(&wishes[i]);
    return failed || certificates_run("cat middle.pem >>chain.pem; cat leaf.pem >>child.pem; "
                                      "mkdir empty known; cp log known; cp root.pem known");
}

static int remove_certificates(void **state) {
    (void)state;
    return certificates_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_in_order_is_believed),
        cmocka_unit_test(what_is_not_in_order_is_refused_and_explained),
        cmocka_unit_test(what_is_signed_by_itself_is_believed_where_it_is_named),
        cmocka_unit_test(what_is_offered_must_be_safe),
        cmocka_unit_test(bytes_that_are_not_tls_are_reported_as_such),
        cmocka_unit_test(a_name_is_sent_and_an_address_is_not),
        cmocka_unit_test(the_protocol_is_one_that_both_speak),
        cmocka_unit_test(it_reads_the_same_however_it_is_cut),
        cmocka_unit_test(nothing_is_lost_when_buffers_are_kept_or_released),
        cmocka_unit_test(an_end_is_said_and_understood),
        cmocka_unit_test(tickets_without_end_break_the_connection),
        cmocka_unit_test(renegotiation_is_refused),
        cmocka_unit_test(a_second_visit_is_short),
        cmocka_unit_test(a_ticket_is_of_one_server_and_used_once),
        cmocka_unit_test(tickets_are_few),
        cmocka_unit_test(authorities_come_from_folders_too),
        cmocka_unit_test(authorities_that_cannot_be_read_are_named),
    };
    return cmocka_run_group_tests(tests, make_certificates, remove_certificates);
}
