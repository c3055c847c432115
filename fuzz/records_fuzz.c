/* What a TLS server says, changed on its way to a client: whatever becomes of it, the client
 * hears a beginning of what was said, and nothing else.
 *
 * The first byte: bit 0 TLS 1.2 or 1.3; bit 7: the rest are a server's bytes as they stand. The
 * other bits: the pieces in which bytes arrive. Otherwise the rest are changes of four bytes: two
 * of a place in all that the server says, what happens there, and with which byte. */
#include "tls/visit.h"

#include "helper/certificates.h"
#include "tls/openssl.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define SAID "what the server says is short, and every byte of it counts"

static const struct openssl *ssl;
static SSL_CTX *context;
static struct trust *trust;

static void forget(void) {
    (void)certificates_close();
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    struct err e;
    (void)argc;
    (void)argv;
    if (certificates_open() ||
        certificates_self_signed("server", "subjectAltName=DNS:localhost"))
        abort();
    atexit(forget);
    struct trust_options options = {.file = str_from(certificates_path("server", "pem"))};
    if (!trust_load(&options, &trust, &e) || !openssl_load(&ssl, &e)) {
        fprintf(stderr, "%s\n", e.text);
        abort();
    }
    context = ssl->SSL_CTX_new(ssl->TLS_server_method());
    bool good = ssl->SSL_CTX_use_certificate_chain_file(
                    context, certificates_path("server", "pem")) == 1 &&
                ssl->SSL_CTX_use_PrivateKey_file(context, certificates_path("server", "key"),
                                                 SSL_FILETYPE_PEM) == 1;
    assert(good);
    (void)good;
    return 0;
}

struct wire {
    struct visit visit;
    struct records *server;
    struct buf to_server, to_client, heard, asked;
    enum records_verdict verdict;
    struct str changes;
    size_t piece, passed; /* of the server's bytes, so far */
    bool changed;
};

static void wire_open(struct wire *wire) {
    buf_init(&wire->to_server, MIB);
    buf_init(&wire->to_client, MIB);
    buf_init(&wire->heard, MIB);
    buf_init(&wire->asked, MIB);
    visit_init(&wire->visit, trust,
               &(struct visit_options){.host = STR("localhost"), .protocols = VISIT_HTTP_1});
    wire->verdict =
        records_receive(wire->visit.records, STR_EMPTY, &wire->heard, &wire->to_server);
}

static void wire_shut(struct wire *wire) {
    if (wire->verdict == RECORDS_BROKEN) {
        struct err why;
        visit_explain(&wire->visit, &why);
        assert(why.code == ERR_UNAVAILABLE && *why.text);
    }
    visit_done(&wire->visit);
    records_free(wire->server);
    buf_done(&wire->to_server);
    buf_done(&wire->to_client);
    buf_done(&wire->heard);
    buf_done(&wire->asked);
}

static void deliver(struct wire *wire, struct str bytes) {
    while (bytes.len && wire->verdict == RECORDS_FINE) {
        struct str part = str_head(bytes, wire->piece ? wire->piece : bytes.len);
        wire->verdict =
            records_receive(wire->visit.records, part, &wire->heard, &wire->to_server);
        bytes = str_skip(bytes, part.len);
    }
}

/* What the next byte becomes: 0 to 2 bytes. */
static void change(struct wire *wire, size_t place, char byte, struct buf *ret) {
    for (struct str rest = wire->changes; rest.len >= 4; rest = str_skip(rest, 4)) {
        const unsigned char *at = (const unsigned char *)rest.at;
        if ((size_t)at[0] * 256 + at[1] != place) continue;
        wire->changed |= at[2] % 3 != 0 || at[3] != 0;
        if (at[2] % 3 == 0) byte = (char)(byte ^ at[3]);
        if (at[2] % 3 == 1) buf_append_byte(ret, (char)at[3]);
        if (at[2] % 3 == 2) return;
    }
    buf_append_byte(ret, byte);
}

static void pass(struct wire *wire) {
    struct buf bytes;
    buf_init(&bytes, 4 * MIB);
    for (size_t i = 0; i < wire->to_client.len; i++)
        change(wire, wire->passed++, wire->to_client.at[i], &bytes);
    buf_clear(&wire->to_client);
    deliver(wire, buf_str(&bytes));
    buf_done(&bytes);
}

static void shake_hands(struct wire *wire) {
    while (wire->to_server.len && wire->verdict == RECORDS_FINE) {
        (void)records_receive(wire->server, buf_str(&wire->to_server), &wire->asked,
                              &wire->to_client);
        buf_clear(&wire->to_server);
        pass(wire);
    }
}

static void meet_a_server(long version, size_t piece, struct str changes) {
    struct wire wire = {.changes = changes, .piece = piece};
    ssl->SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, version, NULL);
    wire_open(&wire);
    wire.server = records_new(context, RECORDS_SERVER);
    shake_hands(&wire);
    if (records_are_open(wire.server) &&
        records_seal(wire.server, STR(SAID), &wire.to_client)) {
        records_end(wire.server, &wire.to_client);
        pass(&wire);
    }
    assert(str_starts(STR(SAID), buf_str(&wire.heard)));
    assert(wire.changed || wire.heard.len == sizeof(SAID) - 1);
    assert(wire.changed || wire.verdict == RECORDS_ENDED);
    wire_shut(&wire);
}

static enum records_verdict meet_bytes(struct str bytes, size_t piece) {
    struct wire wire = {.piece = piece};
    wire_open(&wire);
    deliver(&wire, bytes);
    enum records_verdict verdict = wire.verdict;
    assert(wire.heard.len == 0 && !records_are_open(wire.visit.records));
    wire_shut(&wire);
    return verdict;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    struct str rest = str_of(data + 1, size - 1);
    size_t piece = data[0] >> 1 & 63;
    if (data[0] & 128) {
        bool same = meet_bytes(rest, 0) == meet_bytes(rest, 1 + piece);
        assert(same);
        (void)same;
    } else {
        meet_a_server(data[0] & 1 ? TLS1_3_VERSION : TLS1_2_VERSION, piece, rest);
    }
    return 0;
}
