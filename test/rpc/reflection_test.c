/* The answers to a client that uses server reflection, under both names of the protocol. */
#include "rpc/reflection.h"

#include "base/arena.h"
#include "fake/exchange_fake.h"
#include "helper/assert_str.h"
#include "proto/health.pb.h"
#include "proto/memory.pb.h"
#include "proto/reflection.pb.h"
#include "proto/runtime.pb.h"
#include "wire/grpc.h"
#include "wire/pb_descriptor.h"

#include <stdio.h>

static struct loop *loop;
static struct reflection *reflection;
static struct rpc_site *site;
static struct rpc_service services[REFLECTION_SERVICES + 1];
static struct exchange *x;
static struct arena *arena;

static const struct rpc_service other = {.name = STR_INIT("t.Other")};

static void serve(struct exchange *exchange, void *ctx) {
    rpc_serve(ctx, exchange);
}

static void start(const char *version) {
    char path[80];
    snprintf(path, sizeof(path), "/grpc.reflection.%s.ServerReflection/ServerReflectionInfo",
             version);
    x = fake_new(loop, "POST", path);
    fake_field(x, "content-type", "application/grpc");
    fake_start(x, serve, site);
}

static int setup(void **state) {
    (void)state;
    loop = loop_new_fake();
    arena = arena_new(4 * MIB);
    reflection = reflection_new();
    reflection_add(reflection, crawbl_runtime_descriptor);
    reflection_add(reflection, crawbl_memory_descriptor);
    services[0] = other;
    reflection_services(reflection, services + 1);
    reflection_list(reflection, services, ARRAY_LEN(services));
    site = rpc_site_new(loop, services, ARRAY_LEN(services));
    start("v1");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    fake_leave(x);
    fake_settle(loop);
    assert_true(fake_closed(x));
    fake_free(x);
    rpc_site_free(site);
    reflection_free(reflection);
    arena_free(arena);
    loop_free(loop);
    return 0;
}

static struct grpc_server_reflection_response
ask(const struct grpc_server_reflection_request *request) {
    struct buf body;
    struct err e;
    size_t before = fake_sent(x).len;
    buf_init(&body, 64 * KIB);
    size_t begin = grpc_begin_message(&body);
    pb_encode(&grpc_server_reflection_request_table, request, &body);
    grpc_end_message(&body, begin);
    fake_body(x, buf_str(&body));
    buf_done(&body);
    fake_settle(loop);

    struct grpc_server_reflection_response response;
    struct str message, sent = str_skip(fake_sent(x), before + GRPC_PREFIX_BYTES);
    assert_true(arena_str(arena, sent, &message));
    assert_true(
        pb_decode_view(&grpc_server_reflection_response_table, message, arena, &response, &e));
    return response;
}

#define ASK(member_, which_, value_)                                                           \
    ask(&(struct grpc_server_reflection_request){.host = STR("h"),                             \
                                                 .which_message_request =                      \
                                                     GRPC_SERVER_REFLECTION_REQUEST_##which_,  \
                                                 .member_ = value_})

static void names_are(const struct grpc_server_reflection_response *response,
                      const char *expected) {
    struct buf names;
    struct err e;
    assert_int_equal(response->which_message_response,
                     GRPC_SERVER_REFLECTION_RESPONSE_FILE_DESCRIPTOR_RESPONSE);
    const struct grpc_file_descriptor_response *files = response->file_descriptor_response;
    buf_init(&names, 1 * KIB);
    for (size_t i = 0; i < files->file_descriptor_proto_count; i++) {
        struct pb_file_descriptor file;
        assert_true(pb_decode_view(&pb_file_descriptor_table, files->file_descriptor_proto[i],
                                   arena, &file, &e));
        if (i) buf_append_byte(&names, ' ');
        buf_append(&names, file.name);
    }
    assert_str(buf_str(&names), expected);
    buf_done(&names);
}

static void fails_with(const struct grpc_server_reflection_response *response, int code) {
    assert_int_equal(response->which_message_response,
                     GRPC_SERVER_REFLECTION_RESPONSE_ERROR_RESPONSE);
    assert_int_equal(response->error_response->error_code, code);
    assert_true(response->error_response->error_message.len > 0);
}

static void services_are_listed_under_both_names_of_the_protocol(void **state) {
    (void)state;
    static const char *const versions[] = {"v1", "v1alpha"};
    static const char *const names[] = {"t.Other", "grpc.reflection.v1.ServerReflection",
                                        "grpc.reflection.v1alpha.ServerReflection"};
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        fake_leave(x);
        fake_settle(loop);
        fake_free(x);
        start(versions[i]);
        struct grpc_server_reflection_response response =
            ASK(list_services, LIST_SERVICES, STR("*"));
        assert_int_equal(response.which_message_response,
                         GRPC_SERVER_REFLECTION_RESPONSE_LIST_SERVICES_RESPONSE);
        assert_int_equal(response.list_services_response->service_count, ARRAY_LEN(names));
        for (size_t j = 0; j < ARRAY_LEN(names); j++)
            assert_str(response.list_services_response->service[j].name, names[j]);
    }
}

static void an_answer_repeats_what_was_asked(void **state) {
    (void)state;
    struct grpc_server_reflection_response response =
        ASK(file_by_filename, FILE_BY_FILENAME, STR("none.proto"));
    assert_str(response.valid_host, "h");
    assert_str(response.original_request->host, "h");
    assert_str(response.original_request->file_by_filename, "none.proto");
    fails_with(&response, 5);
}

#define MEMORY "agentruntime/v1/memory.proto google/protobuf/timestamp.proto"
#define RUNTIME "agentruntime/v1/runtime.proto"

static void a_file_comes_with_all_that_it_imports(void **state) {
    (void)state;
    struct grpc_server_reflection_response response =
        ASK(file_by_filename, FILE_BY_FILENAME, STR("agentruntime/v1/memory.proto"));
    names_are(&response, MEMORY);
    response = ASK(file_by_filename, FILE_BY_FILENAME, STR(RUNTIME));
    names_are(&response, RUNTIME);
}

static void a_symbol_of_any_kind_leads_to_its_file(void **state) {
    (void)state;
    static const struct {
        const char *symbol, *files;
    } rows[] = {
        {"crawbl.agentruntime.v1.AgentRuntime", RUNTIME},
        {"crawbl.agentruntime.v1.AgentRuntime.Converse", RUNTIME},
        {"crawbl.agentruntime.v1.ConverseEvent", RUNTIME},
        {"crawbl.agentruntime.v1.ConverseEvent.event", RUNTIME},
        {"crawbl.agentruntime.v1.DoneEvent.turns", RUNTIME},
        {"crawbl.agentruntime.v1.Memory", MEMORY},
        {"crawbl.agentruntime.v1.MemoryEntry", MEMORY},
        {"google.protobuf.Timestamp", "google/protobuf/timestamp.proto"},
        {"grpc.reflection.v1.ErrorResponse", "grpc/reflection/v1/reflection.proto"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct grpc_server_reflection_response response =
            ASK(file_containing_symbol, FILE_CONTAINING_SYMBOL, str_from(rows[i].symbol));
        names_are(&response, rows[i].files);
    }
}

static void an_enum_and_its_values_are_symbols(void **state) {
    (void)state;
    static const char *const symbols[] = {
        "grpc.health.v1.HealthCheckResponse.ServingStatus",
        "grpc.health.v1.HealthCheckResponse.NOT_SERVING",
    };
    reflection_add(reflection, grpc_health_descriptor);
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        struct grpc_server_reflection_response response =
            ASK(file_containing_symbol, FILE_CONTAINING_SYMBOL, str_from(symbols[i]));
        names_are(&response, "grpc/health/v1/health.proto");
    }
}

static void an_unknown_symbol_is_not_found(void **state) {
    (void)state;
    static const char *const symbols[] = {
        "",
        ".",
        "crawbl",
        "crawbl.agentruntime.v1",
        "crawbl.agentruntime.v1.",
        "crawbl.agentruntime.v1.Convers",
        "crawbl.agentruntime.v1.ConverseEventX",
        "crawbl.agentruntime.v1.ConverseEvent.",
        "crawbl.agentruntime.v1.AgentRuntime.No",
        "crawbl.agentruntime.v1.ConverseEvent.event.more",
        "ConverseEvent",
    };
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        struct grpc_server_reflection_response response =
            ASK(file_containing_symbol, FILE_CONTAINING_SYMBOL, str_from(symbols[i]));
        fails_with(&response, 5);
    }
}

static void a_message_has_no_extensions_and_other_names_are_not_found(void **state) {
    (void)state;
    struct grpc_server_reflection_response response =
        ASK(all_extension_numbers_of_type, ALL_EXTENSION_NUMBERS_OF_TYPE,
            STR("crawbl.agentruntime.v1.Turn"));
    assert_int_equal(response.which_message_response,
                     GRPC_SERVER_REFLECTION_RESPONSE_ALL_EXTENSION_NUMBERS_RESPONSE);
    assert_str(response.all_extension_numbers_response->base_type_name,
               "crawbl.agentruntime.v1.Turn");
    static const char *const others[] = {"crawbl.agentruntime.v1.Memory", "t.None", ""};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        response = ASK(all_extension_numbers_of_type, ALL_EXTENSION_NUMBERS_OF_TYPE,
                       str_from(others[i]));
        fails_with(&response, 5);
    }
    response = ASK(file_containing_extension, FILE_CONTAINING_EXTENSION,
                   (&(struct grpc_extension_request){STR("crawbl.agentruntime.v1.Turn"), 1}));
    fails_with(&response, 5);
}

static void no_question_is_an_error_and_the_stream_goes_on(void **state) {
    (void)state;
    struct grpc_server_reflection_response response =
        ask(&(struct grpc_server_reflection_request){.host = STR("h")});
    fails_with(&response, 3);
    response = ASK(file_by_filename, FILE_BY_FILENAME, STR(RUNTIME));
    names_are(&response, RUNTIME);
    fake_body_end(x);
    fake_settle(loop);
    assert_str(fake_value(fake_trailers(x), "grpc-status"), "0");
}

static void bytes_that_are_no_request_end_the_call(void **state) {
    (void)state;
    fake_body(x, STR("\0\0\0\0\1\xFF"));
    fake_settle(loop);
    struct str said = fake_value(fake_head(x), "grpc-status");
    assert_str(said, "13");
}

static void a_stopping_site_ends_the_stream(void **state) {
    (void)state;
    ASK(file_by_filename, FILE_BY_FILENAME, STR(RUNTIME));
    rpc_site_stop(site);
    fake_settle(loop);
    assert_str(fake_value(fake_trailers(x), "grpc-status"), "14");
}

static void a_client_that_asks_and_does_not_read_has_to_wait(void **state) {
    (void)state;
    struct buf body;
    buf_init(&body, 1 * MIB);
    struct grpc_server_reflection_request request = {
        .which_message_request = GRPC_SERVER_REFLECTION_REQUEST_FILE_BY_FILENAME,
        .file_by_filename = STR(RUNTIME)};
    for (int i = 0; i < 1000; i++) {
        size_t begin = grpc_begin_message(&body);
        pb_encode(&grpc_server_reflection_request_table, &request, &body);
        grpc_end_message(&body, begin);
    }
    fake_stop_reading(x);
    fake_body(x, buf_str(&body));
    fake_settle(loop);
    buf_done(&body);
    assert_false(fake_ended(x));
    assert_true(fake_unconsumed(x) > 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(services_are_listed_under_both_names_of_the_protocol),
        TEST(an_answer_repeats_what_was_asked),
        TEST(a_file_comes_with_all_that_it_imports),
        TEST(a_symbol_of_any_kind_leads_to_its_file),
        TEST(an_enum_and_its_values_are_symbols),
        TEST(an_unknown_symbol_is_not_found),
        TEST(a_message_has_no_extensions_and_other_names_are_not_found),
        TEST(no_question_is_an_error_and_the_stream_goes_on),
        TEST(bytes_that_are_no_request_end_the_call),
        TEST(a_stopping_site_ends_the_stream),
        TEST(a_client_that_asks_and_does_not_read_has_to_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
