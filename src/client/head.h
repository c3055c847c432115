/* head: parse the head of a response line by line.
 *
 * Only the values that callers need are kept: the status, the content type, Retry-After, the
 * MCP session, the version of the Runtime Contract, the content coding, what describes a stored
 * object, and whether there is a Location. No socket and no clock.
 *
 * Private to client/.
 *
 * Memory   head_done() ends it; zeroed is empty. Values that do not fit are treated as absent.
 * Threads  none.
 * Source   RFC 9112 4 and 5, RFC 9110 10.2.3 (Retry-After), 5.6.7 (dates), 8.4.
 */
#ifndef WEIR_CLIENT_HEAD_H
#define WEIR_CLIENT_HEAD_H

#include "base/text.h"

enum coding { CODING_NONE, CODING_GZIP, CODING_UNKNOWN };

struct head {
    unsigned status;
    char content_type[256];
    size_t content_type_len;
    struct text session; /* of any length: a server may put a token there */
    char version[32];
    size_t version_len;
    char etag[128];
    size_t etag_len;
    char range[64]; /* Content-Range */
    size_t range_len;
    char region[64]; /* x-amz-bucket-region */
    size_t region_len;
    char run[32]; /* X-Weir-Run-Id */
    size_t run_len;
    int64_t date_ms;        /* Unix time of the server; 0: absent */
    int64_t retry_after_ms; /* -1: absent */
    enum coding coding;
    bool location; /* not empty */
};

/* One line, with or without its line end. A status line discards the head before it. True: this
 * was the empty line, and the head is complete. */
bool head_line(struct head *head, struct str line, int64_t now_unix_ms);

void head_done(struct head *head);

static inline struct str head_session(const struct head *head) {
    return text_str(head->session);
}

static inline struct str head_version(const struct head *head) {
    return str_of(head->version, head->version_len);
}

static inline struct str head_etag(const struct head *head) {
    return str_of(head->etag, head->etag_len);
}

static inline struct str head_range(const struct head *head) {
    return str_of(head->range, head->range_len);
}

static inline struct str head_region(const struct head *head) {
    return str_of(head->region, head->region_len);
}

static inline struct str head_run(const struct head *head) {
    return str_of(head->run, head->run_len);
}

static inline struct str head_content_type(const struct head *head) {
    return str_of(head->content_type, head->content_type_len);
}

#endif
