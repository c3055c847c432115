/* TLS against OpenSSL's own client side, in memory; certificates come from the openssl
 * command. */
#include "server/tls.h"

#include "base/file.h"
#include "base/mem.h"
#include "tls/openssl.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* cmocka wants some of these before it. */
#include <cmocka.h>

static char folder[] = "/tmp/weir-tls-XXXXXX";

/* --- certificates ------------------------------------------------------------------------- */

static void run(const char *command) {
    char line[1024];
    snprintf(line, sizeof(line), "cd %s && { %s ; } >log 2>&1", folder, command);
    if (system(line) != 0) fail_msg("failed: %s", line); /* NOLINT(cert-env33-c): a test */
}

#define SELF_SIGNED(name)                                                                      \
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "       \
    "-subj /CN=" name " -keyout " name ".key -out " name ".pem"

static int make_certificates(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    run(SELF_SIGNED("one"));
    run(SELF_SIGNED("two"));
    run("openssl ec -in one.key -aes128 -passout pass:secret -out locked.key");
    run("echo 'no certificate' >text.pem; : >empty.pem");
    return 0;
}

static int remove_certificates(void **state) {
    (void)state;
    char line[64];
    snprintf(line, sizeof(line), "rm -r %s", folder);
    return system(line); /* NOLINT(cert-env33-c): a test */
}

static bool load(const char *cert, const char *key, const char *ca, struct tls **ret,
                 struct err *e) {
    char paths[3][128];
    const char *names[] = {cert, key, ca};
    struct str texts[3] = {STR_EMPTY, STR_EMPTY, STR_EMPTY};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!names[i]) continue;
        snprintf(paths[i], sizeof(paths[i]), "%s/%s", folder, names[i]);
        texts[i] = str_from(paths[i]);
    }
    return tls_load(&(struct tls_options){texts[0], texts[1], texts[2]}, ret, e);
}

/* --- the other side ----------------------------------------------------------------------- */

/* What only a client needs is not in our table. */
static struct {
    __typeof__(TLS_client_method) *TLS_client_method;
    __typeof__(SSL_set_connect_state) *SSL_set_connect_state;
    __typeof__(SSL_set_alpn_protos) *SSL_set_alpn_protos;
    __typeof__(SSL_get0_alpn_selected) *SSL_get0_alpn_selected;
    __typeof__(SSL_version) *SSL_version;
    __typeof__(SSL_key_update) *SSL_key_update;
    __typeof__(SSL_renegotiate) *SSL_renegotiate;
    __typeof__(SSL_do_handshake) *SSL_do_handshake;
    __typeof__(SSL_ctrl) *SSL_ctrl;
    __typeof__(BIO_s_mem) *BIO_s_mem;
    __typeof__(BIO_read) *BIO_read;
    __typeof__(BIO_write) *BIO_write;
} more;

static void find_more(void) {
    void *ssl = dlopen("libssl.so.3", RTLD_NOW), *crypto = dlopen("libcrypto.so.3", RTLD_NOW);
#define FIND(library, name)                                                                    \
    do {                                                                                       \
        void *found = dlsym(library, #name);                                                   \
        assert_non_null(found);                                                                \
        memcpy(&more.name, &found, sizeof(found));                                             \
    } while (0)
    FIND(ssl, TLS_client_method);
    FIND(ssl, SSL_set_connect_state);
    FIND(ssl, SSL_set_alpn_protos);
    FIND(ssl, SSL_get0_alpn_selected);
    FIND(ssl, SSL_version);
    FIND(ssl, SSL_key_update);
    FIND(ssl, SSL_renegotiate);
    FIND(ssl, SSL_do_handshake);
    FIND(ssl, SSL_ctrl);
    FIND(crypto, BIO_s_mem);
    FIND(crypto, BIO_read);
    FIND(crypto, BIO_write);
}

struct scene {
    const struct openssl *ssl;
    struct tls *tls;
    struct records *ours;
    SSL_CTX *context;
    SSL *theirs;
    BIO *to_them, *from_them; /* owned by `theirs` */
    struct buf plain, out;
    enum records_verdict verdict;
    size_t piece; /* bytes of theirs that come at once; 0 = all */
};

static void open_scene(struct scene *scene, long version, const char *alpn) {
    struct err e;
    *scene = (struct scene){0};
    if (!openssl_load(&scene->ssl, &e)) fail_msg("%s", e.text);
    find_more();
    if (!load("one.pem", "one.key", NULL, &scene->tls, &e)) fail_msg("%s", e.text);
    scene->ours = tls_accept(scene->tls);
    scene->context = scene->ssl->SSL_CTX_new(more.TLS_client_method());
    if (version)
        scene->ssl->SSL_CTX_ctrl(scene->context, SSL_CTRL_SET_MAX_PROTO_VERSION, version, NULL);
    if (version) /* also versions that Debian's settings switch off */
        scene->ssl->SSL_CTX_ctrl(scene->context, SSL_CTRL_SET_MIN_PROTO_VERSION, version, NULL);
    scene->theirs = scene->ssl->SSL_new(scene->context);
    scene->to_them = scene->ssl->BIO_new(more.BIO_s_mem());
    scene->from_them = scene->ssl->BIO_new(more.BIO_s_mem());
    scene->ssl->SSL_set_bio(scene->theirs, scene->to_them, scene->from_them);
    more.SSL_set_connect_state(scene->theirs);
    if (alpn)
        more.SSL_set_alpn_protos(scene->theirs, (const unsigned char *)alpn,
                                 (unsigned)strlen(alpn));
    buf_init(&scene->plain, MIB);
    buf_init(&scene->out, MIB);
}

static void shut_scene(struct scene *scene) {
    records_free(scene->ours);
    tls_unref(scene->tls);
    scene->ssl->SSL_free(scene->theirs);
    scene->ssl->SSL_CTX_free(scene->context);
    buf_done(&scene->plain);
    buf_done(&scene->out);
}

static void to_them(struct scene *scene) {
    if (scene->out.len) more.BIO_write(scene->to_them, scene->out.at, (int)scene->out.len);
    buf_clear(&scene->out);
}

/* What they said, in pieces. Says whether there was anything. */
static bool to_us(struct scene *scene) {
    char bytes[32 * 1024];
    int len = more.BIO_read(scene->from_them, bytes, sizeof(bytes));
    if (len <= 0) return false;
    struct str left = str_of(bytes, (size_t)len);
    while (left.len && scene->verdict == RECORDS_FINE) {
        struct str piece = str_head(left, scene->piece ? scene->piece : left.len);
        scene->verdict = records_receive(scene->ours, piece, &scene->plain, &scene->out);
        left = str_skip(left, piece.len);
    }
    return true;
}

/* Until both are silent; says whether their side of the handshake is complete. */
static bool shake_hands(struct scene *scene) {
    do {
        to_them(scene);
        more.SSL_do_handshake(scene->theirs);
    } while (to_us(scene) && scene->verdict == RECORDS_FINE);
    to_them(scene);
    more.SSL_do_handshake(scene->theirs);
    return scene->ssl->SSL_is_init_finished(scene->theirs) == 1;
}

static void they_say(struct scene *scene, struct str text) {
    assert_int_equal(scene->ssl->SSL_write(scene->theirs, text.at, (int)text.len), text.len);
    to_us(scene);
}

static void they_hear(struct scene *scene, struct str text) {
    char heard[64 * 1024];
    size_t len = 0;
    to_them(scene);
    while (len < text.len) {
        int part = scene->ssl->SSL_read(scene->theirs, heard + len, (int)(sizeof(heard) - len));
        assert_true(part > 0);
        len += (size_t)part;
    }
    assert_true(str_equal(str_of(heard, len), text));
}

/* --- tests -------------------------------------------------------------------------------- */

static bool is_mapped(const char *library) {
    struct buf maps;
    struct err e;
    buf_init(&maps, 4 * MIB);
    assert_true(file_read(STR("/proc/self/maps"), &maps, &e));
    bool found = str_find(buf_str(&maps), str_from(library)) < maps.len;
    buf_done(&maps);
    return found;
}

/* Must run first. */
static void openssl_is_loaded_only_with_the_first_certificate(void **state) {
    (void)state;
    struct err e;
    struct tls *tls;
    assert_false(is_mapped("libssl") || is_mapped("libcrypto"));
    assert_false(tls_load(&(struct tls_options){STR_EMPTY, STR("x"), STR_EMPTY}, &tls, &e));
    assert_false(is_mapped("libssl"));
    assert_true(load("one.pem", "one.key", NULL, &tls, &e));
    assert_true(is_mapped("libssl") && is_mapped("libcrypto"));
    tls_unref(tls);
}

static void bad_files_are_named(void **state) {
    (void)state;
    static const struct {
        const char *cert, *key, *ca, *named;
    } cases[] = {
        {NULL, "one.key", NULL, "set tls.cert"},
        {"one.pem", NULL, NULL, "set tls.key"},
        {NULL, NULL, "one.pem", "set tls.cert"},
        {"gone.pem", "one.key", NULL, "gone.pem"},
        {"text.pem", "one.key", NULL, "text.pem"},
        {"empty.pem", "one.key", NULL, "empty.pem"},
        {"one.pem", "gone.key", NULL, "gone.key"},
        {"one.pem", "one.pem", NULL, "one.pem"},
        {"one.pem", "two.key", NULL, "two.key"},
        {"one.pem", "locked.key", NULL, "locked.key"},
        {"one.pem", "one.key", "text.pem", "text.pem"},
        {"one.pem", "one.key", "gone.pem", "gone.pem"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e;
        struct tls *tls;
        assert_false(load(cases[i].cert, cases[i].key, cases[i].ca, &tls, &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        if (!strstr(e.text, cases[i].named)) fail_msg("'%s' in: %s", cases[i].named, e.text);
    }
}

static void both_sides_understand_each_other(void **state) {
    (void)state;
    static const long versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    char much[50 * 1000];
    memset(much, 'm', sizeof(much));
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        struct scene scene;
        open_scene(&scene, versions[i], NULL);
        assert_true(shake_hands(&scene));
        assert_int_equal(more.SSL_version(scene.theirs), versions[i]);
        they_say(&scene, STR("hello"));
        assert_true(str_equal(buf_str(&scene.plain), STR("hello")));
        assert_true(records_seal(scene.ours, str_of(much, sizeof(much)), &scene.out));
        they_hear(&scene, str_of(much, sizeof(much)));
        shut_scene(&scene);
    }
}

#define RECORD_HEAD_BYTES 5 /* the last two say how long the rest is */
#define RECORD_MAX_BYTES (16 * KIB)

/* What the streams of a connection say in a turn is sealed by one call. */
static void bytes_that_are_sealed_together_share_records(void **state) {
    (void)state;
    static const size_t lens[] = {1, 3000, RECORD_MAX_BYTES, RECORD_MAX_BYTES + 1, 50000};
    char bytes[50000] = {0};
    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        struct scene scene;
        open_scene(&scene, TLS1_3_VERSION, NULL);
        assert_true(shake_hands(&scene));
        to_them(&scene);
        assert_true(records_seal(scene.ours, str_of(bytes, lens[i]), &scene.out));
        size_t records = 0;
        for (struct str rest = buf_str(&scene.out); rest.len; records++) {
            size_t len = (size_t)(uint8_t)rest.at[3] << 8 | (uint8_t)rest.at[4];
            rest = str_skip(rest, RECORD_HEAD_BYTES + len);
        }
        assert_int_equal(records, (lens[i] + RECORD_MAX_BYTES - 1) / RECORD_MAX_BYTES);
        they_hear(&scene, str_of(bytes, lens[i]));
        shut_scene(&scene);
    }
}

static void a_handshake_is_the_same_however_it_is_cut(void **state) {
    (void)state;
    for (size_t piece = 1; piece <= 7; piece++) {
        struct scene scene;
        open_scene(&scene, 0, NULL);
        scene.piece = piece;
        assert_true(shake_hands(&scene));
        they_say(&scene, STR("hello"));
        assert_true(str_equal(buf_str(&scene.plain), STR("hello")));
        shut_scene(&scene);
    }
}

static void versions_before_1_2_are_refused(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, TLS1_1_VERSION, NULL);
    scene.ssl->SSL_CTX_set_cipher_list(scene.context, "ALL:@SECLEVEL=0");
    assert_false(shake_hands(&scene));
    shut_scene(&scene);
}

static void the_protocol_is_one_that_both_speak(void **state) {
    (void)state;
    static const struct {
        const char *offered, *chosen;
    } cases[] = {
        {"\x08http/1.1\x02h2", "h2"},
        {"\x08http/1.1", "http/1.1"},
        {"\x05spdy1\x08http/1.1", "http/1.1"},
        {NULL, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scene scene;
        const unsigned char *chosen;
        unsigned len;
        open_scene(&scene, 0, cases[i].offered);
        assert_true(shake_hands(&scene));
        more.SSL_get0_alpn_selected(scene.theirs, &chosen, &len);
        assert_true(str_equal(str_of(chosen, len), str_from(cases[i].chosen)));
        shut_scene(&scene);
    }
    struct scene scene;
    open_scene(&scene, 0, "\x05spdy1");
    assert_false(shake_hands(&scene));
    assert_int_equal(scene.verdict, RECORDS_BROKEN);
    shut_scene(&scene);
}

static void bytes_that_are_not_a_handshake_break_the_connection(void **state) { /* H9 */
    (void)state;
    static const struct str texts[] = {
        STR_INIT("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        STR_INIT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        STR_INIT("\x16\x03\x01\xff\xff\x01 and more of it, as long as a record may not be"),
        STR_INIT("\x17\x03\x03\x00\x05hello"),
        STR_INIT("\x15\x03\x01\x00\x02\x02\x28"),
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct scene scene;
        open_scene(&scene, 0, NULL);
        assert_int_equal(records_receive(scene.ours, texts[i], &scene.plain, &scene.out),
                         RECORDS_BROKEN);
        assert_int_equal(scene.plain.len, 0);
        shut_scene(&scene);
    }
}

static void an_end_is_reported_and_understood(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, 0, NULL);
    records_end(scene.ours, &scene.out); /* before the handshake there is nothing to end */
    assert_int_equal(scene.out.len, 0);
    assert_true(shake_hands(&scene));
    records_end(scene.ours, &scene.out);
    to_them(&scene);
    char byte;
    int len = scene.ssl->SSL_read(scene.theirs, &byte, 1);
    assert_int_equal(scene.ssl->SSL_get_error(scene.theirs, len), SSL_ERROR_ZERO_RETURN);
    they_say(&scene, STR("last"));
    scene.ssl->SSL_shutdown(scene.theirs);
    to_us(&scene);
    assert_true(str_equal(buf_str(&scene.plain), STR("last")));
    assert_int_equal(scene.verdict, RECORDS_ENDED);
    shut_scene(&scene);
}

static void a_changed_record_breaks_the_session(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, 0, NULL);
    assert_true(shake_hands(&scene));
    assert_int_equal(scene.ssl->SSL_write(scene.theirs, "hello", 5), 5);
    char record[256];
    int len = more.BIO_read(scene.from_them, record, sizeof(record));
    record[len - 1] ^= 1;
    assert_int_equal(
        records_receive(scene.ours, str_of(record, (size_t)len), &scene.plain, &scene.out),
        RECORDS_BROKEN);
    assert_int_equal(scene.plain.len, 0);
    shut_scene(&scene);
}

static void renegotiation_is_refused(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, TLS1_2_VERSION, NULL);
    assert_true(shake_hands(&scene));
    more.SSL_renegotiate(scene.theirs);
    more.SSL_do_handshake(scene.theirs);
    to_us(&scene);
    to_them(&scene);
    more.SSL_do_handshake(scene.theirs);
    assert_int_equal(scene.plain.len, 0);
    assert_false(scene.ssl->SSL_is_init_finished(scene.theirs));
    shut_scene(&scene);
}

static void key_updates_without_end_break_the_session(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, TLS1_3_VERSION, NULL);
    assert_true(shake_hands(&scene));
    size_t updates = 0;
    while (scene.verdict == RECORDS_FINE && updates < 100000) {
        more.SSL_key_update(scene.theirs, SSL_KEY_UPDATE_NOT_REQUESTED);
        more.SSL_do_handshake(scene.theirs);
        to_us(&scene);
        buf_clear(&scene.out);
        updates++;
    }
    assert_int_equal(scene.verdict, RECORDS_BROKEN);
    assert_in_range(updates, 100, 2000);
    shut_scene(&scene);
}

static void a_peer_without_a_certificate_is_refused_where_one_is_wanted(void **state) {
    (void)state;
    struct scene scene;
    struct err e;
    open_scene(&scene, TLS1_2_VERSION, NULL);
    records_free(scene.ours);
    tls_unref(scene.tls);
    assert_true(load("one.pem", "one.key", "two.pem", &scene.tls, &e));
    scene.ours = tls_accept(scene.tls);
    assert_false(shake_hands(&scene));
    assert_int_equal(scene.verdict, RECORDS_BROKEN);
    shut_scene(&scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openssl_is_loaded_only_with_the_first_certificate),
        cmocka_unit_test(bad_files_are_named),
        cmocka_unit_test(both_sides_understand_each_other),
        cmocka_unit_test(bytes_that_are_sealed_together_share_records),
        cmocka_unit_test(a_handshake_is_the_same_however_it_is_cut),
        cmocka_unit_test(versions_before_1_2_are_refused),
        cmocka_unit_test(the_protocol_is_one_that_both_speak),
        cmocka_unit_test(bytes_that_are_not_a_handshake_break_the_connection),
        cmocka_unit_test(an_end_is_reported_and_understood),
        cmocka_unit_test(a_changed_record_breaks_the_session),
        cmocka_unit_test(renegotiation_is_refused),
        cmocka_unit_test(key_updates_without_end_break_the_session),
        cmocka_unit_test(a_peer_without_a_certificate_is_refused_where_one_is_wanted),
    };
    return cmocka_run_group_tests(tests, make_certificates, remove_certificates);
}
