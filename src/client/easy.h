/* easy: the carrier for rare cases, over libcurl: proxies, URLs with a user name, names that
 * are not ASCII.
 *
 * options.c creates libcurl's handle for a request. easy.c handles libcurl's callbacks.
 *
 * Private to client/. */
#ifndef WEIR_CLIENT_EASY_H
#define WEIR_CLIENT_EASY_H

#include "client/call.h"
#include "client/lane.h"

struct easy {
    struct http_call *call;
    struct lane *lane;
    struct str body; /* borrowed from the caller until the call is over */
    size_t body_sent;
    struct transfer transfer;
    struct curl_slist *headers;
    char detail[CURL_ERROR_SIZE];      /* libcurl's message */
    unsigned sockets, sockets_refused; /* of this request, or of this redirect */
    bool held;                         /* libcurl keeps bytes until it is unpaused */
};

/* Let `call` be carried by libcurl.
 * errors  ERR_INVALID_ARGUMENT the request */
MUST_CHECK bool easy_carry(struct http_call *call, struct lane *lane,
                           const struct http_request *request, struct err *e);

/* options.c: the handle and its headers, from the request.
 * errors  ERR_INVALID_ARGUMENT a line break, or an empty value that must not be empty */
MUST_CHECK bool easy_set_options(struct http_call *call, const struct http_request *request,
                                 struct err *e);

/* options.c: allow only https: from now on. May be called from libcurl's callbacks. */
void easy_stay_secure(struct http_call *call);

/* Callbacks for libcurl. */
size_t easy_on_header(char *line, size_t size, size_t count, void *ctx);
size_t easy_on_body(char *bytes, size_t size, size_t count, void *ctx);

#endif
