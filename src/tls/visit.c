#include "tls/visit.h"

#include "tls/openssl.h"
#include "tls/visit_hooks.h"

#include <arpa/inet.h>
#include <assert.h>

/* OpenSSL's application data slot that holds the visit. */
#define OURS 0

/* OpenSSL's error reason for an alert from the server. */
#define ALERT(number) (SSL_AD_REASON_OFFSET + (number))

static const struct openssl *tls(void) {
    return openssl_loaded();
}

/* --- the expected server ------------------------------------------------------------------ */

/* Length of the address, 4 or 16, or 0 for a name. Accepts the spellings that dialling does
 * ("127.1"). */
static size_t read_address(const char *host, unsigned char ret[16]) {
    struct in_addr four;
    if (inet_pton(AF_INET6, host, ret) == 1) return 16;
    if (!inet_aton(host, &four)) return 0;
    memcpy(ret, &four, sizeof(four));
    return sizeof(four);
}

static bool expect(SSL *state, struct str host) {
    char name[256];
    unsigned char address[16];
    if (host.len && host.at[host.len - 1] == '.') host.len--; /* the dot of the DNS root */
    if (host.len == 0 || host.len >= sizeof(name)) return false;
    memcpy(name, host.at, host.len);
    name[host.len] = '\0';
    size_t len = read_address(name, address);
    if (len)
        return tls()->X509_VERIFY_PARAM_set1_ip(tls()->SSL_get0_param(state), address, len);
    return tls()->SSL_set1_host(state, name) == 1 &&
           tls()->SSL_ctrl(state, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                           name) == 1;
}

static const struct {
    unsigned protocol;
    struct str wire; /* length byte and name */
} protocols[] = {
    {VISIT_HTTP_2, STR_INIT("\x02h2")},
    {VISIT_HTTP_1, STR_INIT("\x08http/1.1")},
};

static void offer(SSL *state, unsigned offered) {
    char wire[16];
    struct buf list;
    buf_init(&list, sizeof(wire));
    for (size_t i = 0; i < ARRAY_LEN(protocols); i++) {
        if (offered & protocols[i].protocol) buf_append(&list, protocols[i].wire);
    }
    struct str text = buf_str(&list);
    if (text.len)
        tls()->SSL_set_alpn_protos(state, (const unsigned char *)text.at, (unsigned)text.len);
    buf_done(&list);
}

unsigned visit_protocol(const struct visit *visit) {
    const unsigned char *name = NULL;
    unsigned len = 0;
    tls()->SSL_get0_alpn_selected(records_state(visit->records), &name, &len);
    for (size_t i = 0; i < ARRAY_LEN(protocols) && len; i++) {
        if (str_equal(str_skip(protocols[i].wire, 1), str_of(name, len)))
            return protocols[i].protocol;
    }
    return VISIT_HTTP_1;
}

/* --- creation and release ----------------------------------------------------------------- */

void visit_init(struct visit *visit, const struct trust *trust,
                const struct visit_options *options) {
    *visit = (struct visit){.on_ticket = options->on_ticket, .ctx = options->ctx};
    visit->records = records_new(trust_context(trust), RECORDS_CLIENT);
    SSL *state = records_state(visit->records);
    tls()->SSL_set_ex_data(state, OURS, visit);
    bool good = expect(state, options->host);
    assert(good); /* url_read() refuses empty and longer hosts */
    (void)good;
    offer(state, options->protocols);
    if (!options->ticket) return;
    tls()->SSL_set_session(state, options->ticket);
    tls()->SSL_SESSION_free(options->ticket);
}

void visit_done(struct visit *visit) {
    records_free(visit->records);
    visit->records = NULL;
    text_done(&visit->problem);
}

void visit_move(struct visit *to, struct visit *from, visit_ticket_fn *on_ticket, void *ctx) {
    *to = *from;
    to->on_ticket = on_ticket;
    to->ctx = ctx;
    *from = (struct visit){0};
    tls()->SSL_set_ex_data(records_state(to->records), OURS, to);
}

bool visit_was_resumed(const struct visit *visit) {
    return tls()->SSL_session_reused(records_state(visit->records)) == 1;
}

int visit_on_ticket(SSL *state, SSL_SESSION *ticket) {
    struct visit *visit = tls()->SSL_get_ex_data(state, OURS);
    if (!visit->on_ticket || tls()->SSL_SESSION_is_resumable(ticket) != 1) return 0;
    visit->on_ticket(ticket, visit->ctx);
    return 1;
}

/* --- what went wrong ----------------------------------------------------------------------- */

int visit_on_verified(int good, X509_STORE_CTX *store) {
    if (good) return 1;
    int place = tls()->SSL_get_ex_data_X509_STORE_CTX_idx();
    SSL *state = tls()->X509_STORE_CTX_get_ex_data(store, place);
    struct visit *visit = tls()->SSL_get_ex_data(state, OURS);
    struct buf text;
    buf_init(&text, ERR_TEXT_BYTES);
    certificate_describe_problem(store, &text);
    text_done(&visit->problem);
    visit->problem = text_copy(buf_str(&text));
    buf_done(&text);
    return 0;
}

#define NOT_TLS                                                                                \
    "what answers there is not TLS: if the server speaks plain HTTP, the URL begins with "     \
    "http:"
#define OLD_TLS "the server offers no TLS that is still safe: it must speak TLS 1.2 or 1.3"
#define NO_CIPHER                                                                              \
    "the server shares no cipher with us: it must have TLS 1.3, or TLS 1.2 with ECDHE and "    \
    "AES-GCM or ChaCha20, and a key that is not too short"
#define WANTS_CERTIFICATE                                                                      \
    "the server asks for a certificate of the caller, and weir has none to show: let it "      \
    "accept callers without one, or put a proxy that has one in between"

static const struct {
    int reason;
    const char *text;
} faults[] = {
    {SSL_R_WRONG_VERSION_NUMBER, NOT_TLS},
    {SSL_R_HTTP_REQUEST, NOT_TLS},
    {SSL_R_UNSUPPORTED_PROTOCOL, OLD_TLS},
    {SSL_R_WRONG_SSL_VERSION, OLD_TLS},
    {ALERT(SSL3_AD_HANDSHAKE_FAILURE), NO_CIPHER},
    {ALERT(TLS1_AD_PROTOCOL_VERSION), OLD_TLS},
    {ALERT(TLS1_AD_INSUFFICIENT_SECURITY), NO_CIPHER},
    {ALERT(TLS13_AD_CERTIFICATE_REQUIRED), WANTS_CERTIFICATE},
    {ALERT(SSL3_AD_BAD_CERTIFICATE), WANTS_CERTIFICATE},
    {ALERT(TLS1_AD_UNRECOGNIZED_NAME), "the server does not know the name that the URL asks it "
                                       "for: see the URL, or the names that "
                                       "the server is set up with"},
    {ALERT(TLS1_AD_NO_APPLICATION_PROTOCOL),
     "the server does not speak HTTP/1.1 over TLS there (ALPN): let it offer http/1.1"},
};

static const char *find_fault(unsigned long number) {
    if (ERR_GET_LIB(number) != ERR_LIB_SSL) return NULL;
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        if (faults[i].reason == ERR_GET_REASON(number)) return faults[i].text;
    }
    return NULL;
}

void visit_explain(const struct visit *visit, struct err *ret) {
    unsigned long number = records_fault(visit->records);
    const char *text = find_fault(number);
    const char *reason = number ? tls()->ERR_reason_error_string(number) : NULL;
    struct str problem = text_str(visit->problem);
    if (problem.len)
        err_set(ret, ERR_UNAVAILABLE, STR_FMT, STR_ARG(problem));
    else
        err_set(ret, ERR_UNAVAILABLE, "%s%s%s%s", text ? text : "TLS fails", reason ? " (" : "",
                reason ? reason : "", reason ? ")" : "");
}
