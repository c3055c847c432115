/* UploadArtifact on a fake clock and a fake store: what is kept, refused and left over. */
#include "contract/nimi/upload/receive.h"

#include "contract/nimi/instance_fixture.h"
#include "fake/exchange_fake.h" /* named here: the build links it */
#include "fake/store_fake.h"
#include "helper/assert_str.h"
#include "proto/nimi.pb.h"
#include "wire/grpc.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>

#define LEFT_OVER "SELECT (SELECT count(*) FROM upload) + (SELECT count(*) FROM upload_piece)"

static struct store *store;
static char *much; /* UPLOAD_MAX_BYTES and one more */

static int64_t now_ms(void) {
    return INT64_C(1700000000000) + (int64_t)loop_now_ms(loop);
}

/* Until the store has answered all that it will be asked. */
static void settle(void) {
    for (int turns = 0; turns < 12; turns++) fake_settle(loop);
}

static int setup(void **state) {
    (void)state;
    loop = loop_new_fake();
    store = fake_store_new();
    fake_store_always_commit(store);
    nimi_open(NULL, store, NULL);
    settings = (struct nimi_settings){
        .version = STR("0.1.0"), .message_max_bytes = 4 * MIB, .stall_ms = 30000};
    nimi_serve();
    instance.pruner.unix_ms = now_ms;
    nimi_instance_serving(&instance);
    settle();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    settle();
    nimi_instance_stopping(&instance);
    nimi_close();
    fake_store_free(store);
    loop_free(loop);
    return 0;
}

/* --- what a caller says ------------------------------------------------------------------- */

static struct exchange *open_with(const char *key, const char *app_header) {
    struct exchange *x =
        fake_new(loop, "POST", "/nimi.runtime.v1.RuntimeAiService/UploadArtifact");
    fake_field(x, "content-type", "application/grpc");
    if (key) fake_field(x, "x-nimi-idempotency-key", key);
    if (app_header) fake_field(x, "x-nimi-app-id", app_header);
    fake_start(x, serve, site);
    return x;
}

/* None of the four headers: the real SDK sends none. */
static struct exchange *begin(void) {
    return open_with(NULL, NULL);
}

static void put_message(struct buf *out, const struct nimi_upload_artifact_request *request) {
    size_t at = grpc_begin_message(out);
    assert_true(pb_encode(&nimi_upload_artifact_request_table, request, out));
    grpc_end_message(out, at);
}

static void put_metadata(struct buf *out, const char *app, const char *type) {
    const struct nimi_upload_artifact_metadata metadata = {.app_id = str_from(app),
                                                           .subject_user_id = STR("anna"),
                                                           .mime_type = str_from(type),
                                                           .display_name = STR("a song")};
    put_message(out, &(struct nimi_upload_artifact_request){
                         .which_payload = NIMI_UPLOAD_ARTIFACT_REQUEST_METADATA,
                         .metadata = &metadata});
}

static void put_chunk(struct buf *out, uint64_t sequence, struct str bytes) {
    const struct nimi_upload_artifact_chunk chunk = {.sequence = sequence, .bytes = bytes};
    put_message(out, &(struct nimi_upload_artifact_request){
                         .which_payload = NIMI_UPLOAD_ARTIFACT_REQUEST_CHUNK, .chunk = &chunk});
}

static void send(struct exchange *x, struct buf *message) {
    fake_body(x, buf_str(message));
    buf_clear(message);
    settle();
}

static void send_metadata_of(struct exchange *x, const char *app, const char *type) {
    struct buf message;
    buf_init(&message, 64 * KIB);
    put_metadata(&message, app, type);
    send(x, &message);
    buf_done(&message);
}

static void send_metadata(struct exchange *x) {
    send_metadata_of(x, "demo.app", "audio/wav");
}

static void send_chunk(struct exchange *x, uint64_t sequence, struct str bytes) {
    struct buf message;
    buf_init(&message, bytes.len + KIB);
    put_chunk(&message, sequence, bytes);
    send(x, &message);
    buf_done(&message);
}

/* All of `bytes` in chunks of `step`. */
static void send_all(struct exchange *x, struct str bytes, size_t step) {
    uint64_t sequence = 0;
    for (; bytes.len; bytes = str_skip(bytes, step))
        send_chunk(x, sequence++, str_head(bytes, step));
    fake_body_end(x);
    settle();
}

/* --- what it hears ------------------------------------------------------------------------ */

static void close(struct exchange *x) {
    assert_true(fake_closed(x));
    fake_free(x);
}

/* Trailers alone are a head that ends. */
static struct str said(const struct exchange *x, const char *name) {
    struct str value = fake_value(fake_trailers(x), name);
    return value.at ? value : fake_value(fake_head(x), name);
}

static void assert_refused(struct exchange *x, const char *status, const char *reason) {
    char expected[80];
    settle();
    assert_str(said(x, "grpc-status"), status);
    struct str message = said(x, "grpc-message");
    snprintf(expected, sizeof(expected), "{\"reasonCode\":\"%s\"", reason);
    if (!str_starts(message, str_from(expected)))
        fail_msg("not %s: " STR_FMT, reason, STR_ARG(message));
    assert_int_equal(fake_sent(x).len, 0);
    close(x);
}

struct heard {
    char id[64], sum[80];
    int64_t size;
};

static void to_hex(struct str bytes, char *ret) {
    for (size_t i = 0; i < bytes.len; i++)
        sprintf(ret + 2 * i, "%02x", (unsigned)(unsigned char)bytes.at[i]);
}

static struct heard finish(struct exchange *x) {
    struct nimi_upload_artifact_response reply;
    struct arena *arena = arena_new(64 * KIB);
    struct heard heard;
    struct err e;
    settle();
    assert_str(said(x, "grpc-status"), "0");
    struct str message = str_skip(fake_sent(x), GRPC_PREFIX_BYTES);
    assert_true(
        pb_decode_view(&nimi_upload_artifact_response_table, message, arena, &reply, &e));
    snprintf(heard.id, sizeof(heard.id), STR_FMT, STR_ARG(reply.artifact->artifact_id));
    snprintf(heard.sum, sizeof(heard.sum), STR_FMT, STR_ARG(reply.artifact->sha256));
    heard.size = reply.artifact->size_bytes;
    assert_str(reply.artifact->mime_type, "audio/wav");
    assert_int_equal(reply.trace_id.len, ULID_LEN);
    assert_true(str_starts(str_from(heard.id), STR("artifact_")));
    assert_int_equal(strlen(heard.id), 9 + ULID_LEN);
    arena_free(arena);
    close(x);
    return heard;
}

static struct str found_bytes;
static enum err_code found;

static void on_found(const struct upload *upload, const struct err *failed, void *ctx) {
    struct str *expected = ctx;
    found = failed ? failed->code : ERR_NONE;
    if (failed) return;
    found_bytes = *expected;
    assert_true(str_equal(upload->bytes, *expected));
    assert_str(upload->content_type, "audio/wav");
    assert_str(upload->name, "a song");
}

static enum err_code find(const char *id, struct str expected) {
    upload_get_start(store, loop, STR("demo.app"), STR("anna"), str_from(id), 0,
                     UPLOAD_MAX_BYTES, now_ms(), on_found, &expected);
    settle();
    return found;
}

static void assert_whole(struct exchange *x, struct str bytes) {
    unsigned char sum[UPLOAD_SUM_BYTES];
    char hex[2 * UPLOAD_SUM_BYTES + 1];
    struct sha256_ctx hash;
    struct heard heard = finish(x);
    sha256_init(&hash);
    sha256_update(&hash, bytes.len, (const uint8_t *)bytes.at);
    sha256_digest(&hash, sizeof(sum), sum);
    to_hex(str_of((const char *)sum, sizeof(sum)), hex);
    assert_string_equal(heard.sum, hex);
    assert_int_equal(heard.size, bytes.len);
    assert_int_equal(find(heard.id, bytes), ERR_NONE);
}

/* --- what is kept ------------------------------------------------------------------------- */

static void an_upload_is_kept_as_it_was_sent(void **state) {
    (void)state;
    static const struct {
        size_t size, step;
    } cases[] = {{1, 1},
                 {100, 7},
                 {UPLOAD_PIECE_BYTES, 64 * KIB},
                 {UPLOAD_PIECE_BYTES + 1, UPLOAD_PIECE_BYTES - 1},
                 {3 * UPLOAD_PIECE_BYTES, UPLOAD_PIECE_BYTES},
                 {9 * MIB + 5, RECEIVE_CHUNK_MAX_BYTES},
                 {UPLOAD_MAX_BYTES, RECEIVE_CHUNK_MAX_BYTES}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct exchange *x = begin();
        send_metadata(x);
        send_all(x, str_of(much, cases[i].size), cases[i].step);
        assert_whole(x, str_of(much, cases[i].size));
    }
}

static void it_reads_the_same_however_the_stream_is_cut(void **state) {
    (void)state;
    struct buf stream;
    buf_init(&stream, 4 * KIB);
    put_metadata(&stream, "demo.app", "audio/wav");
    put_chunk(&stream, 0, STR("first"));
    put_chunk(&stream, 1, STR("second"));
    for (size_t cut = 0; cut <= stream.len; cut++) {
        struct exchange *x = begin();
        if (cut) fake_body(x, str_head(buf_str(&stream), cut));
        settle();
        if (cut < stream.len) fake_body(x, str_skip(buf_str(&stream), cut));
        fake_body_end(x);
        assert_whole(x, STR("firstsecond"));
    }
    buf_done(&stream);
}

/* G11, of an upload: what the stream was cut off in stays nowhere. */
static void every_truncation_is_refused_or_short(void **state) {
    (void)state;
    struct buf stream;
    buf_init(&stream, 4 * KIB);
    put_metadata(&stream, "demo.app", "audio/wav");
    size_t metadata = stream.len;
    put_chunk(&stream, 0, STR("first"));
    for (size_t cut = 0; cut < stream.len; cut++) {
        struct exchange *x = begin();
        if (cut) fake_body(x, str_head(buf_str(&stream), cut));
        fake_body_end(x);
        settle();
        if (cut == 0 || cut == metadata) {
            assert_refused(x, "3", "AI_ARTIFACT_UPLOAD_INVALID");
        } else {
            assert_str(said(x, "grpc-status"), "13");
            close(x);
        }
    }
    assert_int_equal(fake_store_number(store, LEFT_OVER), 0);
    buf_done(&stream);
}

/* --- what is refused ---------------------------------------------------------------------- */

static void metadata_that_is_wrong_says_what(void **state) {
    (void)state;
    static const struct {
        const char *app, *type;
    } cases[] = {{"", "audio/wav"},
                 {"  ", "audio/wav"},
                 {"a", ""},
                 {"a", "text/plain"},
                 {"a", "audio"},
                 {"a", "audio/"},
                 {"a", "audiox/wav"},
                 {"a", "audio/w v"},
                 {"a", "audio/wav;\na=b"},
                 {"a", "audio/wav\n;a=b"},
                 {"a", "/wav"},
                 {"a", "image/p\"ng"},
                 {"a", "application/audio/wav"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct exchange *x = begin();
        send_metadata_of(x, cases[i].app, cases[i].type);
        assert_refused(x, "3", "AI_ARTIFACT_UPLOAD_INVALID");
    }
    static const char *const allowed[] = {"image/png", "AUDIO/Wav", "video/x-matroska",
                                          "audio/wav; codecs=\"1\"", "image/svg+xml"};
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        assert_true(receive_type_is_allowed(str_from(allowed[i])));
}

static void the_app_of_the_headers_and_of_the_metadata_are_the_same(void **state) {
    (void)state;
    struct exchange *x = open_with(NULL, "other.app");
    send_metadata(x);
    assert_refused(x, "3", "AI_APP_ID_CONFLICT");
    x = open_with(NULL, "demo.app");
    send_metadata(x);
    send_all(x, STR("bytes"), 5);
    assert_whole(x, STR("bytes"));
}

static void messages_come_in_their_order(void **state) {
    (void)state;
    static const struct {
        bool metadata;
        uint64_t first;
        const char *bytes;
    } cases[] = {{false, 0, "x"}, {true, 1, "x"}, {true, UINT64_MAX, "x"}, {true, 0, ""}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct exchange *x = begin();
        if (cases[i].metadata) send_metadata(x);
        send_chunk(x, cases[i].first, str_from(cases[i].bytes));
        assert_refused(x, "3", "AI_ARTIFACT_UPLOAD_INVALID");
    }
    struct exchange *twice = begin();
    send_metadata(twice);
    send_metadata(twice);
    assert_refused(twice, "3", "AI_ARTIFACT_UPLOAD_INVALID");
    struct exchange *repeated = begin();
    send_metadata(repeated);
    send_chunk(repeated, 0, STR("x"));
    send_chunk(repeated, 0, STR("x"));
    assert_refused(repeated, "3", "AI_ARTIFACT_UPLOAD_INVALID");
    struct exchange *empty = begin();
    send_metadata(empty);
    fake_body(empty, STR("\0\0\0\0\0"));
    assert_refused(empty, "3", "AI_ARTIFACT_UPLOAD_INVALID");
    struct exchange *noise = begin();
    send_metadata(noise);
    fake_body(noise, STR("\0\0\0\0\2\xFF\xFF"));
    assert_refused(noise, "3", "PROTOCOL_ENVELOPE_INVALID");
}

static void what_is_too_large_is_refused_and_nothing_stays(void **state) {
    (void)state;
    struct exchange *chunk = begin();
    send_metadata(chunk);
    send_chunk(chunk, 0, str_of(much, RECEIVE_CHUNK_MAX_BYTES + 1));
    assert_refused(chunk, "3", "AI_ARTIFACT_UPLOAD_TOO_LARGE");
    /* Reported as soon as the length is known. */
    struct exchange *message = begin();
    send_metadata(message);
    fake_body(message, STR("\0\x7F\0\0\0"));
    assert_refused(message, "3", "AI_ARTIFACT_UPLOAD_TOO_LARGE");
    struct exchange *whole = begin();
    send_metadata(whole);
    send_all(whole, str_of(much, UPLOAD_MAX_BYTES + 1), RECEIVE_CHUNK_MAX_BYTES);
    assert_refused(whole, "3", "AI_ARTIFACT_UPLOAD_TOO_LARGE");
    assert_int_equal(fake_store_number(store, LEFT_OVER), 0);
}

/* --- who waits, who leaves ---------------------------------------------------------------- */

static void a_caller_waits_while_a_piece_is_written(void **state) {
    (void)state;
    struct exchange *x = begin();
    send_metadata(x);
    fake_store_ask_me(store);
    send_chunk(x, 0, str_of(much, 2 * MIB));
    send_chunk(x, 1, str_of(much, 100));
    assert_int_equal(fake_store_tasks(store), 1);
    assert_true(fake_unconsumed(x) >= 100);
    fake_store_run(store, 0);
    settle();
    assert_true(fake_unconsumed(x) >= 100); /* the second of its two pieces */
    fake_store_run(store, 0);
    settle();
    assert_int_equal(fake_unconsumed(x), 0);
    fake_store_always_commit(store);
    fake_body_end(x);
    settle();
    assert_str(said(x, "grpc-status"), "0");
    close(x);
}

#define WHOLE_UPLOADS "SELECT count(*) FROM upload"

/* An upload under the key whose last piece is due to be written. */
static struct exchange *send_keyed(const char *bytes) {
    struct exchange *x = open_with("k", NULL);
    send_metadata(x);
    send_chunk(x, 0, str_from(bytes));
    fake_body_end(x);
    settle();
    return x;
}

static void run_store(void) {
    while (fake_store_tasks(store)) {
        fake_store_run(store, 0);
        settle();
    }
    fake_store_always_commit(store);
}

static void two_at_once_under_one_key_are_one_artifact(void **state) {
    (void)state;
    fake_store_ask_me(store);
    struct exchange *x[] = {send_keyed("same"), send_keyed("same")};
    run_store();
    assert_str(said(x[0], "grpc-status"), "0");
    assert_str(said(x[1], "grpc-status"), "0");
    assert_true(fake_sent(x[0]).len > 5);
    assert_true(str_equal(fake_sent(x[0]), fake_sent(x[1])));
    assert_int_equal(fake_store_number(store, WHOLE_UPLOADS), 1);
    struct exchange *late = send_keyed("same");
    assert_true(str_equal(fake_sent(x[0]), fake_sent(late)));
    for (size_t i = 0; i < 2; i++) close(x[i]);
    close(late);
}

static void another_upload_under_a_key_in_use_is_refused(void **state) {
    (void)state;
    fake_store_ask_me(store);
    struct exchange *first = send_keyed("same");
    assert_refused(send_keyed("other"), "3", "PROTOCOL_ENVELOPE_INVALID");
    run_store();
    assert_str(said(first, "grpc-status"), "0");
    assert_int_equal(fake_store_number(store, WHOLE_UPLOADS), 1);
    close(first);
}

static void one_that_waited_for_a_caller_who_left_is_kept_itself(void **state) {
    (void)state;
    fake_store_ask_me(store);
    struct exchange *first = send_keyed("same"), *second = send_keyed("same");
    fake_leave(first);
    settle();
    close(first);
    run_store();
    assert_str(said(second, "grpc-status"), "0");
    assert_int_equal(fake_store_number(store, WHOLE_UPLOADS), 1);
    close(second);
}

static void one_that_waits_may_leave(void **state) {
    (void)state;
    fake_store_ask_me(store);
    struct exchange *first = send_keyed("same"), *second = send_keyed("same");
    fake_leave(second);
    settle();
    close(second);
    run_store();
    assert_str(said(first, "grpc-status"), "0");
    assert_int_equal(fake_store_number(store, WHOLE_UPLOADS), 1);
    close(first);
}

static void a_caller_that_leaves_in_the_middle_leaves_nothing(void **state) {
    (void)state;
    for (size_t size = 0; size <= 4 * MIB; size += MIB / 2) {
        struct exchange *x = begin();
        send_metadata(x);
        if (size) send_chunk(x, 0, str_of(much, size));
        fake_leave(x);
        settle();
        assert_int_equal(fake_store_number(store, LEFT_OVER), 0);
        close(x);
    }
    /* Also while a piece is on its way. */
    struct exchange *x = begin();
    send_metadata(x);
    fake_store_ask_me(store);
    send_chunk(x, 0, str_of(much, 2 * MIB));
    fake_leave(x);
    settle();
    while (fake_store_tasks(store)) {
        fake_store_run(store, 0);
        settle();
    }
    fake_store_always_commit(store);
    assert_int_equal(fake_store_number(store, LEFT_OVER), 0);
    close(x);
}

/* C10, of an upload. */
static void stopping_cancels_it_and_leaves_nothing(void **state) {
    (void)state;
    struct exchange *x = begin();
    send_metadata(x);
    send_chunk(x, 0, str_of(much, 2 * MIB));
    nimi_runtime_move(runtime, LIFE_STOPPING, "stopping");
    rpc_site_warn(site);
    settle();
    assert_str(said(x, "grpc-status"), "1");
    assert_str(said(x, "grpc-message"), "runtime shutting down");
    assert_int_equal(fake_sent(x).len, 0);
    assert_int_equal(fake_store_number(store, LEFT_OVER), 0);
    close(x);
    struct exchange *late = begin();
    settle();
    assert_str(said(late, "grpc-status"), "14");
    close(late);
}

static void silence_ends_it_after_a_minute(void **state) {
    (void)state;
    struct exchange *x = begin();
    send_metadata(x);
    loop_advance(loop, RECEIVE_IDLE_MS - 1);
    send_chunk(x, 0, str_of(much, 2 * MIB));
    loop_advance(loop, RECEIVE_IDLE_MS - 1);
    settle();
    assert_false(fake_ended(x));
    loop_advance(loop, 1);
    assert_refused(x, "4", "AI_ARTIFACT_UPLOAD_INVALID");
    assert_int_equal(fake_store_number(store, LEFT_OVER), 0);
}

static void the_whole_of_it_has_five_minutes(void **state) {
    (void)state;
    struct exchange *x = begin();
    send_metadata(x);
    for (uint64_t i = 0; i < 10; i++) {
        loop_advance(loop, RECEIVE_TOTAL_MS / 10 - 1);
        send_chunk(x, i, STR("x"));
    }
    assert_false(fake_ended(x));
    loop_advance(loop, 10);
    settle();
    assert_str(said(x, "grpc-status"), "4");
    close(x);
}

static void an_app_uploads_two_at_once_and_the_third_waits(void **state) {
    (void)state;
    struct exchange *x[3];
    for (size_t i = 0; i < ARRAY_LEN(x); i++) {
        x[i] = begin();
        send_metadata(x[i]);
        send_chunk(x[i], 0, STR("bytes"));
    }
    assert_true(fake_unconsumed(x[2]) > 0);
    struct exchange *other = begin();
    send_metadata_of(other, "other.app", "audio/wav");
    send_all(other, STR("bytes"), 5);
    finish(other);
    fake_leave(x[0]);
    settle();
    assert_int_equal(fake_unconsumed(x[2]), 0);
    for (size_t i = 1; i < ARRAY_LEN(x); i++) {
        fake_body_end(x[i]);
        assert_whole(x[i], STR("bytes"));
    }
    close(x[0]);
}

static void a_call_that_leaves_while_it_waits_takes_no_slot(void **state) {
    (void)state;
    struct exchange *x[3];
    for (size_t i = 0; i < ARRAY_LEN(x); i++) {
        x[i] = begin();
        send_metadata(x[i]);
    }
    for (size_t i = ARRAY_LEN(x); i > 0; i--) {
        fake_leave(x[i - 1]);
        settle();
        close(x[i - 1]);
    }
    struct occupancy now = scheduler_occupancy(runtime->slots, STR("demo.app"));
    assert_int_equal(now.global_used + now.waiting, 0);
}

/* --- the store ---------------------------------------------------------------------------- */

static void a_full_disk_is_a_status(void **state) {
    (void)state;
    struct exchange *early = begin();
    send_metadata(early);
    fake_store_always_lose(store, ERR_UNAVAILABLE);
    send_chunk(early, 0, str_of(much, MIB));
    assert_refused(early, "14", "AI_PROVIDER_UNAVAILABLE");
    fake_store_always_commit(store);
    struct exchange *late = begin();
    send_metadata(late);
    send_chunk(late, 0, str_of(much, MIB));
    fake_store_always_lose(store, ERR_UNAVAILABLE);
    fake_body_end(late);
    assert_refused(late, "14", "AI_PROVIDER_UNAVAILABLE");
    fake_store_always_commit(store);
    loop_advance(loop, 60000); /* what could not be dropped then */
    settle();
    loop_advance(loop, (uint64_t)UPLOAD_KEPT_MS);
    settle();
    assert_int_equal(fake_store_number(store, LEFT_OVER), 0);
}

static void without_a_store_it_is_refused(void **state) {
    (void)state;
    engine.store = NULL;
    struct exchange *x = begin();
    send_metadata(x);
    assert_refused(x, "9", "AI_ARTIFACT_UPLOAD_INVALID");
}

static struct heard upload(const char *key, struct str bytes) {
    struct exchange *x = open_with(key, NULL);
    send_metadata(x);
    send_all(x, bytes, bytes.len);
    return finish(x);
}

static void the_same_upload_with_the_same_key_is_made_once(void **state) {
    (void)state;
    struct heard first = upload("k", STR("bytes")), again = upload("k", STR("bytes"));
    assert_string_equal(first.id, again.id);
    assert_int_equal(fake_store_number(store, "SELECT count(*) FROM upload"), 1);
    struct heard large = upload("l", str_of(much, 2 * MIB));
    assert_string_equal(upload("l", str_of(much, 2 * MIB)).id, large.id);
    settle();
    assert_int_equal(fake_store_number(store, "SELECT count(*) FROM upload"), 2);
    assert_int_equal(fake_store_number(store, "SELECT count(*) FROM upload_piece"), 3);
    assert_string_not_equal(upload(NULL, STR("bytes")).id, first.id);
    struct exchange *x = open_with("k", NULL);
    send_metadata(x);
    send_all(x, STR("other"), 5);
    assert_refused(x, "3", "PROTOCOL_ENVELOPE_INVALID");
}

/* A reply is remembered for longer than what it speaks of is kept. */
static void a_key_whose_artifact_is_gone_makes_a_new_one(void **state) {
    (void)state;
    struct heard first = upload("k", STR("bytes"));
    loop_advance(loop, (uint64_t)UPLOAD_KEPT_MS);
    settle();
    struct heard again = upload("k", STR("bytes"));
    assert_string_not_equal(first.id, again.id);
    assert_int_equal(find(again.id, STR("bytes")), ERR_NONE);
    assert_int_equal(find(first.id, STR("bytes")), ERR_NOT_FOUND);
}

static void after_half_an_hour_it_is_gone_from_the_store(void **state) {
    (void)state;
    struct heard first = upload(NULL, str_of(much, 3 * MIB));
    loop_advance(loop, 60000);
    struct heard second = upload(NULL, STR("bytes"));
    loop_advance(loop, (uint64_t)UPLOAD_KEPT_MS - 60000 - 1);
    settle();
    assert_int_equal(find(first.id, str_of(much, 3 * MIB)), ERR_NONE);
    loop_advance(loop, 1000);
    settle();
    assert_int_equal(fake_store_number(store, LEFT_OVER), 2);
    assert_int_equal(find(second.id, STR("bytes")), ERR_NONE);
    loop_advance(loop, 60000);
    settle();
    assert_int_equal(fake_store_number(store, LEFT_OVER), 0);
}

/* --- the table ---------------------------------------------------------------------------- */

static void only_the_drawn_moves_are_allowed(void **state) {
    (void)state;
    static const struct {
        enum receive_state from, to;
    } legal[] = {
        {RECEIVE_QUEUED, RECEIVE_READING},  {RECEIVE_QUEUED, RECEIVE_OVER},
        {RECEIVE_READING, RECEIVE_WRITING}, {RECEIVE_READING, RECEIVE_CHECKING},
        {RECEIVE_READING, RECEIVE_OVER},    {RECEIVE_WRITING, RECEIVE_READING},
        {RECEIVE_WRITING, RECEIVE_OVER},    {RECEIVE_CHECKING, RECEIVE_ENDING},
        {RECEIVE_CHECKING, RECEIVE_OVER},   {RECEIVE_ENDING, RECEIVE_OVER},
    };
    for (int from = 0; from < RECEIVE_STATE_COUNT; from++) {
        for (int to = 0; to < RECEIVE_STATE_COUNT; to++) {
            bool drawn = false;
            for (size_t i = 0; i < ARRAY_LEN(legal); i++)
                drawn = drawn || ((int)legal[i].from == from && (int)legal[i].to == to);
            assert_int_equal(
                states_allow(receive_states, (enum receive_state)from, (enum receive_state)to),
                drawn);
        }
    }
}

static int make_bytes(void **state) {
    (void)state;
    much = malloc(UPLOAD_MAX_BYTES + 1);
    for (size_t i = 0; i <= UPLOAD_MAX_BYTES; i++) much[i] = (char)(i * 2654435761u >> 13);
    return 0;
}

static int free_bytes(void **state) {
    (void)state;
    free(much);
    return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(an_upload_is_kept_as_it_was_sent),
        T(it_reads_the_same_however_the_stream_is_cut),
        T(every_truncation_is_refused_or_short),
        T(metadata_that_is_wrong_says_what),
        T(the_app_of_the_headers_and_of_the_metadata_are_the_same),
        T(messages_come_in_their_order),
        T(what_is_too_large_is_refused_and_nothing_stays),
        T(a_caller_waits_while_a_piece_is_written),
        T(two_at_once_under_one_key_are_one_artifact),
        T(another_upload_under_a_key_in_use_is_refused),
        T(one_that_waited_for_a_caller_who_left_is_kept_itself),
        T(one_that_waits_may_leave),
        T(a_caller_that_leaves_in_the_middle_leaves_nothing),
        T(stopping_cancels_it_and_leaves_nothing),
        T(silence_ends_it_after_a_minute),
        T(the_whole_of_it_has_five_minutes),
        T(an_app_uploads_two_at_once_and_the_third_waits),
        T(a_call_that_leaves_while_it_waits_takes_no_slot),
        T(a_full_disk_is_a_status),
        T(without_a_store_it_is_refused),
        T(the_same_upload_with_the_same_key_is_made_once),
        T(a_key_whose_artifact_is_gone_makes_a_new_one),
        T(after_half_an_hour_it_is_gone_from_the_store),
        cmocka_unit_test(only_the_drawn_moves_are_allowed),
    };
    return cmocka_run_group_tests(tests, make_bytes, free_bytes);
}
