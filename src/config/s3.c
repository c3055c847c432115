/* The settings of the S3-compatible storage: all of them, or none. */
#include "config/build.h"

bool config_bucket(const struct config *config, struct http_pool *pool, struct bucket **ret,
                   struct err *e) {
    const struct {
        const char *name;
        struct str value;
    } needed[] = {
        {"files.s3.endpoint (CRAWBL_SPACES_ENDPOINT)", config->s3.endpoint},
        {"files.s3.bucket (CRAWBL_SPACES_BUCKET)", config->s3.bucket},
        {"files.s3.region (CRAWBL_SPACES_REGION)", config->s3.region},
        {"files.s3.access_key_file (CRAWBL_SPACES_ACCESS_KEY)", config->s3.access_key},
        {"files.s3.secret_key_file (CRAWBL_SPACES_SECRET_KEY)", config->s3.secret_key},
    };
    struct buf missing;
    size_t missing_count = 0;
    buf_init(&missing, KIB);
    for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
        if (needed[i].value.len) continue;
        buf_printf(&missing, "%s%s", missing_count++ ? ", " : "", needed[i].name);
    }
    *ret = NULL;
    bool good = missing_count == 0 || missing_count == ARRAY_LEN(needed) ||
                err_set(e, ERR_INVALID_ARGUMENT,
                        "object storage is only half set up; missing: " STR_FMT
                        ". Set them, or none of files.s3",
                        STR_ARG(buf_str(&missing)));
    buf_done(&missing);
    if (!good || missing_count) return good;
    return bucket_new(&(struct bucket_options){.pool = pool,
                                               .endpoint = config->s3.endpoint,
                                               .name = config->s3.bucket,
                                               .region = config->s3.region,
                                               .access_key = config->s3.access_key,
                                               .secret_key = config->s3.secret_key,
                                               .style = config->s3.style},
                      ret, e);
}
