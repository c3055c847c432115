#include "client/fault.h"

#include "base/units.h"

static const struct {
    CURLcode result;
    enum err_code code;
    const char *text;
} faults[] = {
    /* clang-format off */
    {CURLE_URL_MALFORMAT,        ERR_INVALID_ARGUMENT,    "this is no URL"},
    {CURLE_UNSUPPORTED_PROTOCOL, ERR_INVALID_ARGUMENT,    "only http: and https: are asked"},
    {CURLE_COULDNT_RESOLVE_PROXY, ERR_UNAVAILABLE,        "the name of the proxy is not known; see http_proxy and https_proxy in the environment"},
    {CURLE_COULDNT_RESOLVE_HOST, ERR_UNAVAILABLE,         "the name of the server is not known"},
    {CURLE_COULDNT_CONNECT,      ERR_UNAVAILABLE,         "no server answers there"},
    {CURLE_OPERATION_TIMEDOUT,   ERR_DEADLINE_EXCEEDED,   "no connection in time"},
    {CURLE_PEER_FAILED_VERIFICATION, ERR_UNAVAILABLE,     "its certificate is not trusted; a certificate authority of your own goes to the system's, or into the file that SSL_CERT_FILE names"},
    {CURLE_SSL_CACERT_BADFILE,   ERR_UNAVAILABLE,         "the certificate authorities cannot be read: install the package ca-certificates, or see SSL_CERT_FILE"},
    {CURLE_SSL_CONNECT_ERROR,    ERR_UNAVAILABLE,         "TLS fails"},
    {CURLE_GOT_NOTHING,          ERR_UNAVAILABLE,         "the server closed the connection without an answer"},
    {CURLE_PARTIAL_FILE,         ERR_UNAVAILABLE,         "the answer was cut short"},
    {CURLE_RECV_ERROR,           ERR_UNAVAILABLE,         "the connection broke while the answer was read"},
    {CURLE_SEND_ERROR,           ERR_UNAVAILABLE,         "the connection broke while the request was sent"},
    {CURLE_WEIRD_SERVER_REPLY,   ERR_UNAVAILABLE,         "what the server answers, or where it sends us, is not HTTP"},
    {CURLE_HTTP2,                ERR_UNAVAILABLE,         "the server breaks the rules of HTTP/2"},
    {CURLE_HTTP2_STREAM,         ERR_UNAVAILABLE,         "the server gave the request up"},
    {CURLE_LOGIN_DENIED,         ERR_PERMISSION_DENIED,   "a URL with a user name in it is not asked"},
    {CURLE_TOO_MANY_REDIRECTS,   ERR_FAILED_PRECONDITION, "it redirects too often"},
    {CURLE_OUT_OF_MEMORY,        ERR_TOO_LARGE,           "the head of the answer is too long"},
    /* clang-format on */
};

#define HEAD_TOO_LARGE 100 /* CURLE_TOO_LARGE since 8.6; CURLE_OUT_OF_MEMORY before */

void fault_of(CURLcode result, struct str detail, struct err *ret) {
    enum err_code code = ERR_UNAVAILABLE;
    const char *text = "the request failed";
    if ((int)result == HEAD_TOO_LARGE) result = CURLE_OUT_OF_MEMORY;
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        if (faults[i].result != result) continue;
        code = faults[i].code;
        text = faults[i].text;
    }
    if (detail.len) {
        err_set(ret, code, "%s (" STR_FMT ")", text, STR_ARG(detail));
    } else {
        err_set(ret, code, "%s", text);
    }
}

void fault_late(uint64_t limit_ms, const char *what, struct err *ret) {
    struct buf limit;
    buf_init(&limit, 64);
    units_append_duration(&limit, limit_ms * 1000);
    err_set(ret, ERR_DEADLINE_EXCEEDED, "%s within " STR_FMT, what, STR_ARG(buf_str(&limit)));
    buf_done(&limit);
}
