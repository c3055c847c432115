#include "object/bucket.h"

#include "base/mem.h"
#include "base/text.h"

#include <stdlib.h>

struct bucket {
    struct http_pool *pool;
    bool secure, in_path;
    struct text host, name, region, access_key, secret_key;
};

/* --- the settings ------------------------------------------------------------------------- */

/* Names of 3 to 63 letters, digits, dots and hyphens; old and foreign ones also with '_' and
 * capitals. */
static bool bucket_check_name(struct str name, struct err *e) {
    bool good = name.len >= 3 && name.len <= 63 && str_is_plain(name, ".-_") &&
                str_is_alnum(name.at[0]) && str_is_alnum(name.at[name.len - 1]);
    return good || err_set(e, ERR_INVALID_ARGUMENT,
                           "files.s3.bucket '" STR_FMT "' is no name of a bucket: 3 to 63 "
                           "letters, digits, '.' and '-'",
                           STR_ARG(str_head(name, 80)));
}

static bool check_plain(const char *setting, struct str value, const char *more,
                        struct err *e) {
    if (value.len > 0 && value.len <= 256 && str_is_plain(value, more)) return true;
    return err_set(e, ERR_INVALID_ARGUMENT, "%s holds bytes that do not belong there; %s",
                   setting, "copy it again, without spaces or quotes");
}

/* host or host:port, after the scheme; a slash at the end is dropped. */
static bool read_endpoint(struct str endpoint, bool *ret_secure, struct str *ret_host,
                          struct err *e) {
    bool plain = str_equal_nocase(str_head(endpoint, 7), STR("http://"));
    bool secure = str_equal_nocase(str_head(endpoint, 8), STR("https://"));
    struct str host = str_skip(endpoint, plain ? 7 : secure ? 8 : 0);
    while (str_ends(host, STR("/"))) host.len--;
    if (host.len == 0 || host.len > 255 || !str_is_plain(host, ".-_:[]"))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "files.s3.endpoint '" STR_FMT "' is no server of storage; write "
                       "https://fra1.example.com, without a path",
                       STR_ARG(str_head(endpoint, 100)));
    *ret_secure = !plain;
    *ret_host = host;
    return true;
}

/* A name in front of these would lead elsewhere. */
static bool is_address(struct str host) {
    struct str port, name = str_split(host, ':', &port);
    bool digits = name.len > 0;
    for (size_t i = 0; i < name.len && digits; i++)
        digits = name.at[i] == '.' || (name.at[i] >= '0' && name.at[i] <= '9');
    return digits || str_starts(host, STR("[")) || str_equal_nocase(name, STR("localhost"));
}

static bool goes_in_path(const struct bucket_options *options, struct str host, bool secure) {
    if (options->style != BUCKET_AUTO) return options->style == BUCKET_PATH;
    /* A certificate for *.example.com does not cover a.b.example.com. */
    bool dotted = str_find_byte(options->name, '.') < options->name.len;
    return is_address(host) || (secure && dotted);
}

static bool bucket_check(const struct bucket_options *options, struct err *e) {
    return bucket_check_name(options->name, e) &&
           check_plain("files.s3.region", options->region, "-_", e) &&
           check_plain("the access key of files.s3", options->access_key, "-_.~+/=:@", e) &&
           check_plain("the secret key of files.s3", options->secret_key,
                       "!#$%&'()*+,-./:;<=>?@[]^_`{|}~", e);
}

bool bucket_new(const struct bucket_options *options, struct bucket **ret, struct err *e) {
    bool secure = true;
    struct str host = STR_EMPTY;
    struct buf whole;
    if (!read_endpoint(options->endpoint, &secure, &host, e) || !bucket_check(options, e))
        return false;
    struct bucket *bucket = MEM_NEW(struct bucket);
    bucket->pool = options->pool;
    bucket->secure = secure;
    bucket->in_path = goes_in_path(options, host, secure);
    buf_init(&whole, KIB);
    if (!bucket->in_path) buf_printf(&whole, STR_FMT ".", STR_ARG(options->name));
    buf_append(&whole, host);
    bucket->host = text_copy(buf_str(&whole));
    buf_done(&whole);
    bucket->name = text_copy(options->name);
    bucket->region = text_copy(options->region);
    bucket->access_key = text_copy(options->access_key);
    bucket->secret_key = text_copy(options->secret_key);
    *ret = bucket;
    return true;
}

void bucket_free(struct bucket *bucket) {
    if (!bucket) return;
    text_done(&bucket->host);
    text_done(&bucket->name);
    text_done(&bucket->region);
    text_done(&bucket->access_key);
    text_wipe(&bucket->secret_key);
    free(bucket);
}

/* --- reading it --------------------------------------------------------------------------- */

struct http_pool *bucket_pool(const struct bucket *bucket) {
    return bucket->pool;
}

struct str bucket_name(const struct bucket *bucket) {
    return text_str(bucket->name);
}

struct sigv4_key bucket_key(const struct bucket *bucket) {
    return (struct sigv4_key){text_str(bucket->access_key), text_str(bucket->secret_key),
                              text_str(bucket->region), STR("s3")};
}

struct str bucket_host(const struct bucket *bucket) {
    return text_str(bucket->host);
}

bool bucket_append_path(const struct bucket *bucket, struct str key, struct buf *out) {
    buf_append_byte(out, '/');
    if (bucket->in_path) {
        sigv4_append_path(out, text_str(bucket->name));
        if (key.len) buf_append_byte(out, '/');
    }
    return sigv4_append_path(out, key);
}

bool bucket_append_origin(const struct bucket *bucket, struct buf *out) {
    buf_append(out, bucket->secure ? STR("https://") : STR("http://"));
    return buf_append(out, text_str(bucket->host));
}
