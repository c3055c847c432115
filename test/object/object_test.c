/* What of object storage needs no server: names, tags, ranges, lists and states. */
#include "object/bucket.h"
#include "object/get.h"
#include "object/put.h"
#include "object/uploads.h"

#include "helper/assert_str.h"
#include "helper/moves.h"

static struct bucket_options usual(const char *endpoint) {
    return (struct bucket_options){.endpoint = str_from(endpoint),
                                   .name = STR("files"),
                                   .region = STR("fra1"),
                                   .access_key = STR("A"),
                                   .secret_key = STR("S/+")};
}

static void assert_url(const struct bucket_options *options, const char *expected) {
    struct bucket *bucket;
    struct buf url;
    struct err e;
    buf_init(&url, KIB);
    assert_true(bucket_new(options, &bucket, &e));
    bucket_append_origin(bucket, &url);
    bucket_append_path(bucket, STR("a b/c"), &url);
    assert_str(buf_str(&url), expected);
    buf_done(&url);
    bucket_free(bucket);
}

static void a_bucket_stands_in_the_host_unless_that_cannot_be(void **state) {
    (void)state;
    struct bucket_options options = usual("https://fra1.example.com/");
    assert_url(&options, "https://files.fra1.example.com/a%20b/c");
    options.style = BUCKET_PATH;
    assert_url(&options, "https://fra1.example.com/files/a%20b/c");
    options = usual("fra1.example.com:8443");
    assert_url(&options, "https://files.fra1.example.com:8443/a%20b/c");
    options.name = STR("a.b.c");
    assert_url(&options, "https://fra1.example.com:8443/a.b.c/a%20b/c");
    options = usual("http://127.0.0.1:9000");
    assert_url(&options, "http://127.0.0.1:9000/files/a%20b/c");
    options = usual("http://localhost:9000");
    assert_url(&options, "http://localhost:9000/files/a%20b/c");
    options.style = BUCKET_VIRTUAL_HOST;
    assert_url(&options, "http://files.localhost:9000/a%20b/c");
}

static void wrong_settings_are_named_and_secrets_are_not(void **state) {
    (void)state;
    struct bucket_options rows[6];
    static const char *const words[] = {"files.s3.endpoint", "files.s3.endpoint",
                                        "files.s3.bucket",   "files.s3.region",
                                        "access key",        "secret key"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) rows[i] = usual("https://a.example.com");
    rows[0].endpoint = STR("https://");
    rows[1].endpoint = STR("https://a.example.com/path");
    rows[2].name = STR("a/b/c");
    rows[3].region = STR("");
    rows[4].access_key = STR("sec ret");
    rows[5].secret_key = STR("sec ret");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct bucket *bucket;
        struct err e;
        assert_false(bucket_new(&rows[i], &bucket, &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(e.text, words[i]));
        assert_null(strstr(e.text, "sec ret"));
    }
}

static void a_range_is_read_or_refused(void **state) {
    (void)state;
    uint64_t from, count, size;
    assert_true(object_range_read(STR("bytes 5-9/44"), &from, &count, &size));
    assert_int_equal(from, 5);
    assert_int_equal(count, 5);
    assert_int_equal(size, 44);
    assert_true(object_range_read(STR("bytes */0"), &from, &count, &size));
    assert_int_equal(count, 0);
    static const char *const wrong[] = {
        "",           "bytes",       "bytes 5-4/44", "bytes 0-44/44",
        "bytes 0-/4", "bytes 0-3/*", "items 0-3/4",  "bytes -3/4"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_false(object_range_read(str_from(wrong[i]), &from, &count, &size));
}

/* MD5 of two empty texts' digests, as every S3-compatible storage tags two empty parts. */
static void the_tag_of_parts_is_that_of_their_tags(void **state) {
    (void)state;
    struct buf tag;
    buf_init(&tag, 64);
    assert_true(object_put_tag(STR("d41d8cd98f00b204e9800998ecf8427e"
                                   "d41d8cd98f00b204e9800998ecf8427e"),
                               2, &tag));
    assert_str(buf_str(&tag), "5873dd45edd01f09c1ef2e7819369e8e-2");
    buf_done(&tag);
    buf_init(&tag, 64);
    assert_false(object_put_tag(STR("d41d"), 2, &tag));
    buf_done(&tag);
}

#define UPLOADS                                                                                \
    "<ListMultipartUploadsResult><NextKeyMarker>more</NextKeyMarker><Upload>"                  \
    "<Key>a&amp;b</Key><UploadId>7</UploadId></Upload></ListMultipartUploadsResult>"

static void a_list_is_read_whole_or_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "<ListBucketResult></ListBucketResult>",
        "<ListMultipartUploadsResult><Upload><Key>k</Key></Upload></"
        "ListMultipartUploadsResult>",
        "<ListMultipartUploadsResult><Upload><Key></Key><UploadId>7</UploadId></Upload>"
        "</ListMultipartUploadsResult>",
        "<!DOCTYPE x [<!ENTITY k 'a'>]><ListMultipartUploadsResult><Upload><Key>&k;</Key>"
        "<UploadId>7</UploadId></Upload></ListMultipartUploadsResult>"};
    struct arena *arena = arena_new(64 * KIB);
    struct object_uploads_page page;
    struct err e;
    struct str text = STR(UPLOADS);
    assert_true(object_uploads_read(text, arena, &page, &e));
    assert_int_equal(page.count, 1);
    assert_str(page.uploads[0].key, "a&b");
    assert_str(page.uploads[0].id, "7");
    for (size_t len = 0; len < text.len; len++)
        assert_false(object_uploads_read(str_head(text, len), arena, &page, &e));
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_false(object_uploads_read(str_from(wrong[i]), arena, &page, &e));
        assert_int_equal(e.code, ERR_MALFORMED);
    }
    arena_free(arena);
}

static void pauses_grow_and_stay_random(void **state) {
    (void)state;
    for (unsigned number = 1; number < 40; number++) {
        uint64_t most = UINT64_C(200) << (number < 8 ? number - 1 : 7);
        uint64_t pause_ms = object_pause_ms(number);
        assert_true(pause_ms >= most / 2 && pause_ms <= most);
    }
}

static void a_put_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "filling sending",  "filling creating",    "filling part",  "filling completing",
        "filling aborting", "sending over",        "creating part", "creating over",
        "part filling",     "part completing",     "part aborting", "completing checking",
        "completing over",  "completing aborting", "checking over", "aborting over",
    };
    assert_moves(object_put_states, PUT_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_stands_in_the_host_unless_that_cannot_be),
        cmocka_unit_test(wrong_settings_are_named_and_secrets_are_not),
        cmocka_unit_test(a_range_is_read_or_refused),
        cmocka_unit_test(the_tag_of_parts_is_that_of_their_tags),
        cmocka_unit_test(a_list_is_read_whole_or_refused),
        cmocka_unit_test(pauses_grow_and_stay_random),
        cmocka_unit_test(a_put_moves_as_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
