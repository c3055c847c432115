#include "wire/sigv4.h"

#include "helper/assert_str.h"

/* The keys of the published test suite, and those of the examples for S3. */
static const struct sigv4_key suite = {STR_INIT("AKIDEXAMPLE"),
                                       STR_INIT("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
                                       STR_INIT("us-east-1"), STR_INIT("service")};
static const struct sigv4_key s3 = {STR_INIT("AKIAIOSFODNN7EXAMPLE"),
                                    STR_INIT("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
                                    STR_INIT("us-east-1"), STR_INIT("s3")};

#define SUITE_TIME "20150830T123600Z"
#define S3_TIME "20130524T000000Z"
#define EMPTY_SUM "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define HOST                                                                                   \
    { STR_INIT("host"), STR_INIT("example.amazonaws.com") }
#define DATE                                                                                   \
    { STR_INIT("x-amz-date"), STR_INIT(SUITE_TIME) }

static void assert_signed(const struct sigv4_key *key, const char *time,
                          const struct sigv4_request *request, const char *signature) {
    struct buf out;
    struct str before;
    buf_init(&out, 4 * KIB);
    assert_true(sigv4_authorize(key, time, request, &out));
    before = str_of(out.at, str_find(buf_str(&out), STR("Signature=")) + 10);
    assert_str(str_skip(buf_str(&out), before.len), signature);
    buf_done(&out);
}

#define UNRESERVED_BYTES "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

static void requests_of_the_published_suite_have_its_signatures(void **state) {
    (void)state;
    static const struct sigv4_pair plain[] = {HOST, DATE};
    static const struct sigv4_pair named[] = {
        HOST, {STR_INIT("my-header1"), STR_INIT("value1")}, DATE};
    static const struct sigv4_pair spaced[] = {
        HOST,
        DATE,
        {STR_INIT("my-header2"), STR_INIT(" \"a   b   c\"  ")},
        {STR_INIT("my-header1"), STR_INIT(" value1")}};
    static const struct sigv4_pair two[] = {{STR_INIT("Param2"), STR_INIT("value2")},
                                            {STR_INIT("Param1"), STR_INIT("value1")}};
    static const struct sigv4_pair same[] = {{STR_INIT("Param1"), STR_INIT("value2")},
                                             {STR_INIT("Param1"), STR_INIT("Value1")}};
    static const struct sigv4_pair unreserved[] = {
        {STR_INIT(UNRESERVED_BYTES), STR_INIT(UNRESERVED_BYTES)}};
    static const struct sigv4_pair wide[] = {{STR_INIT("\xE1\x88\xB4"), STR_INIT("bar")}};
    static const struct {
        const char *method;
        const struct sigv4_pair *query;
        size_t query_count;
        const struct sigv4_pair *headers;
        size_t header_count;
        const char *signature;
    } rows[] = {
        {"GET", NULL, 0, plain, 2,
         "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
        {"GET", two, 2, plain, 2,
         "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
        {"GET", same, 2, plain, 2,
         "eedbc4e291e521cf13422ffca22be7d2eb8146eecf653089df300a15b2382bd1"},
        {"GET", unreserved, 1, plain, 2,
         "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
        {"GET", wide, 1, plain, 2,
         "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
        {"POST", NULL, 0, named, 3,
         "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"},
        {"GET", NULL, 0, spaced, 4,
         "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_signed(&suite, SUITE_TIME,
                      &(struct sigv4_request){.method = str_from(rows[i].method),
                                              .path = STR("/"),
                                              .query = rows[i].query,
                                              .query_count = rows[i].query_count,
                                              .headers = rows[i].headers,
                                              .header_count = rows[i].header_count,
                                              .body_sum = STR(EMPTY_SUM)},
                      rows[i].signature);
}

#define BUCKET                                                                                 \
    { STR_INIT("host"), STR_INIT("examplebucket.s3.amazonaws.com") }
#define S3_DATE                                                                                \
    { STR_INIT("x-amz-date"), STR_INIT(S3_TIME) }
#define SUM(digits)                                                                            \
    { STR_INIT("x-amz-content-sha256"), STR_INIT(digits) }
#define WELCOME_SUM "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"

static void requests_to_storage_have_the_signatures_of_its_manual(void **state) {
    (void)state;
    static const struct sigv4_pair ranged[] = {
        BUCKET, {STR_INIT("range"), STR_INIT("bytes=0-9")}, SUM(EMPTY_SUM), S3_DATE};
    static const struct sigv4_pair put[] = {
        {STR_INIT("date"), STR_INIT("Fri, 24 May 2013 00:00:00 GMT")},
        BUCKET,
        SUM(WELCOME_SUM),
        S3_DATE,
        {STR_INIT("x-amz-storage-class"), STR_INIT("REDUCED_REDUNDANCY")}};
    static const struct sigv4_pair plain[] = {BUCKET, SUM(EMPTY_SUM), S3_DATE};
    static const struct sigv4_pair lifecycle[] = {{STR_INIT("lifecycle"), STR_INIT("")}};
    static const struct sigv4_pair list[] = {{STR_INIT("prefix"), STR_INIT("J")},
                                             {STR_INIT("max-keys"), STR_INIT("2")}};
    struct sigv4_request request = {.method = STR("GET"),
                                    .path = STR("/test.txt"),
                                    .headers = ranged,
                                    .header_count = 4,
                                    .body_sum = STR(EMPTY_SUM)};
    assert_signed(&s3, S3_TIME, &request,
                  "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    request = (struct sigv4_request){.method = STR("PUT"),
                                     .path = STR("/test%24file.text"),
                                     .headers = put,
                                     .header_count = 5,
                                     .body_sum = STR(WELCOME_SUM)};
    assert_signed(&s3, S3_TIME, &request,
                  "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    request = (struct sigv4_request){.method = STR("GET"),
                                     .path = STR("/"),
                                     .query = lifecycle,
                                     .query_count = 1,
                                     .headers = plain,
                                     .header_count = 3,
                                     .body_sum = STR(EMPTY_SUM)};
    assert_signed(&s3, S3_TIME, &request,
                  "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    request.query = list;
    request.query_count = 2;
    assert_signed(&s3, S3_TIME, &request,
                  "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void the_steps_read_as_the_manual_shows_them(void **state) {
    (void)state;
    static const struct sigv4_pair headers[] = {{STR_INIT("x-amz-date"), STR_INIT(S3_TIME)},
                                                SUM(EMPTY_SUM),
                                                {STR_INIT("range"), STR_INIT("bytes=0-9")},
                                                BUCKET};
    struct buf out;
    buf_init(&out, 4 * KIB);
    assert_true(sigv4_canonical(&(struct sigv4_request){.method = STR("GET"),
                                                        .path = STR("/test.txt"),
                                                        .headers = headers,
                                                        .header_count = 4,
                                                        .body_sum = STR(EMPTY_SUM)},
                                &out));
    assert_str(buf_str(&out),
               "GET\n/test.txt\n\nhost:examplebucket.s3.amazonaws.com\n"
               "range:bytes=0-9\nx-amz-content-sha256:" EMPTY_SUM "\nx-amz-date:" S3_TIME
               "\n\nhost;range;x-amz-content-sha256;x-amz-date\n" EMPTY_SUM);
    struct buf to_sign;
    buf_init(&to_sign, KIB);
    assert_true(sigv4_string_to_sign(&s3, S3_TIME, buf_str(&out), &to_sign));
    assert_str(buf_str(&to_sign),
               "AWS4-HMAC-SHA256\n" S3_TIME "\n20130524/us-east-1/s3/aws4_request\n"
               "7344ae5b7ee6c3e7e6b0fe0640412a37625d1fbfff95c48bbb2dc43964946972");
    buf_done(&to_sign);
    buf_done(&out);
}

static void the_header_names_the_key_and_what_is_signed_and_never_the_secret(void **state) {
    (void)state;
    static const struct sigv4_pair headers[] = {HOST, DATE};
    const struct sigv4_request request = {.method = STR("GET"),
                                          .path = STR("/"),
                                          .headers = headers,
                                          .header_count = 2,
                                          .body_sum = STR(EMPTY_SUM)};
    struct buf out;
    buf_init(&out, KIB);
    assert_true(sigv4_authorize(&suite, SUITE_TIME, &request, &out));
    assert_true(str_starts(buf_str(&out),
                           STR("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/"
                               "service/aws4_request, SignedHeaders=host;x-amz-date, "
                               "Signature=")));
    assert_int_equal(str_find(buf_str(&out), STR("wJalr")), out.len);
    buf_done(&out);
    buf_init(&out, 100);
    assert_false(sigv4_authorize(&suite, SUITE_TIME, &request, &out));
    buf_done(&out);
}

static void a_time_has_one_form(void **state) {
    (void)state;
    char time[SIGV4_TIME_BYTES];
    sigv4_time(1369353600, time);
    assert_string_equal(time, S3_TIME);
    sigv4_time(0, time);
    assert_string_equal(time, "19700101T000000Z");
    sigv4_time(INT64_C(1) << 40, time); /* a year with five digits */
    assert_string_equal(time, "19700101T000000Z");
}

static void a_path_is_encoded_byte_by_byte(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, KIB);
    assert_true(sigv4_append_path(&out, STR("/a b/\xC3\xA4+%~._-$")));
    assert_str(buf_str(&out), "/a%20b/%C3%A4%2B%25~._-%24");
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_of_the_published_suite_have_its_signatures),
        cmocka_unit_test(requests_to_storage_have_the_signatures_of_its_manual),
        cmocka_unit_test(the_steps_read_as_the_manual_shows_them),
        cmocka_unit_test(the_header_names_the_key_and_what_is_signed_and_never_the_secret),
        cmocka_unit_test(a_time_has_one_form),
        cmocka_unit_test(a_path_is_encoded_byte_by_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
