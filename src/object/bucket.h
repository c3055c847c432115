/* bucket: one bucket of an S3-compatible storage, and how its objects are addressed.
 *
 *     virtual host   https://BUCKET.fra1.example.com/KEY       path   https://fra1.example.com/BUCKET/KEY
 *
 * Memory   owns copies of its options; bucket_free() when no request is out.
 * Threads  read-only once made: any loop of the pool.
 * Source   Amazon S3 User Guide, "Virtual hosting of buckets"; crawbl.md 2.8 and 4.
 */
#ifndef WEIR_OBJECT_BUCKET_H
#define WEIR_OBJECT_BUCKET_H

#include "client/http.h"
#include "wire/sigv4.h"

struct bucket;

enum bucket_style {
    BUCKET_AUTO, /* virtual host, but path for an address, a localhost, or a name with dots */
    BUCKET_VIRTUAL_HOST,
    BUCKET_PATH,
};

struct bucket_options {
    struct http_pool *pool;
    struct str endpoint; /* "https://fra1.example.com"; without a scheme: https */
    struct str name, region, access_key, secret_key;
    enum bucket_style style;
};

/* errors  ERR_INVALID_ARGUMENT what is missing or wrong, with the setting's name */
MUST_CHECK bool bucket_new(const struct bucket_options *options, struct bucket **ret,
                           struct err *e);
void bucket_free(struct bucket *bucket); /* accepts NULL */

struct http_pool *bucket_pool(const struct bucket *bucket);
struct str bucket_name(const struct bucket *bucket);
struct sigv4_key bucket_key(const struct bucket *bucket);

/* The host as it is signed, with a port only where the URL has one. */
struct str bucket_host(const struct bucket *bucket);

/* Append the encoded path of a key; an empty key is the bucket itself. */
bool bucket_append_path(const struct bucket *bucket, struct str key, struct buf *out);

/* Append "https://host", to which the path belongs. */
bool bucket_append_origin(const struct bucket *bucket, struct buf *out);

#endif
