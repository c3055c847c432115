/* fixture: an instance of nimi.runtime.v1 with a scripted model and media provider.
 *
 * A request is a call on a fake exchange. What it receives is compared as words.
 */
#ifndef WEIR_TEST_CONTRACT_NIMI_FIXTURE_H
#define WEIR_TEST_CONTRACT_NIMI_FIXTURE_H

#include "contract/nimi/instance_fixture.h"

#include "base/mem.h"
#include "fake/media_fake.h"
#include "fake/provider_fake.h"
#include "helper/assert_str.h"
#include "proto/nimi.pb.h"
#include "wire/grpc.h"

#include <stdio.h>
#include <stdlib.h>

FRESH struct provider *model;
FRESH struct media *media;
FRESH struct nimi_connector connector;

FRESH int setup(void **state) {
    (void)state;
    loop = loop_new_fake();
    model = fake_provider_new();
    media = fake_media_new(1u << MEDIA_SPEECH | 1u << MEDIA_EMBEDDING);
    nimi_open(model, NULL, NULL);
    connector = (struct nimi_connector){.id = STR("local"),
                                        .provider = model,
                                        .media = media,
                                        .local = true,
                                        .enabled = true,
                                        .has_credential = true};
    settings = (struct nimi_settings){.connectors = &connector,
                                      .connector_count = 1,
                                      .version = STR("0.1.0"),
                                      .message_max_bytes = 4 * MIB,
                                      .stall_ms = 30000,
                                      .shutdown_ms = 10000,
                                      .text = {60000, 30000, 120000},
                                      .speech = {60000, 30000, 45000},
                                      .embedding = {60000, 30000, 20000}};
    nimi_serve();
    nimi_site(&instance, site);
    return 0;
}

FRESH int teardown(void **state) {
    (void)state;
    fake_settle(loop);
    nimi_close();
    provider_free(model);
    media_free(media);
    loop_free(loop);
    return 0;
}

/* A call of RuntimeAiService with its envelope; not started. */
FRESH struct exchange *open_call(const char *method) {
    char path[128];
    snprintf(path, sizeof(path), "/nimi.runtime.v1.RuntimeAiService/%s", method);
    struct exchange *x = fake_new(loop, "POST", path);
    fake_field(x, "content-type", "application/grpc");
    fake_field(x, "x-nimi-protocol-version", "1.0.0");
    fake_field(x, "x-nimi-participant-protocol-version", "1.0.0");
    fake_field(x, "x-nimi-participant-id", "demo.app");
    fake_field(x, "x-nimi-domain", "runtime.rpc");
    return x;
}

FRESH void send_message(struct exchange *x, const struct pb_message *type,
                        const void *message) {
    struct buf body;
    buf_init(&body, 8 * MIB);
    size_t begin = grpc_begin_message(&body);
    assert_true(pb_encode(type, message, &body));
    grpc_end_message(&body, begin);
    fake_body(x, buf_str(&body));
    fake_body_end(x);
    buf_done(&body);
    fake_settle(loop);
}

/* The message at the front of *rest, which moves past it; false at the end. */
FRESH bool next_message(struct str *rest, struct str *ret) {
    if (rest->len < 5) return false;
    const unsigned char *at = (const unsigned char *)rest->at;
    size_t len = (size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | at[4];
    *ret = str_head(str_skip(*rest, 5), len);
    assert_int_equal(ret->len, len);
    *rest = str_skip(*rest, 5 + len);
    return true;
}

FRESH void put_event(struct buf *out, const struct nimi_stream_scenario_event *event) {
    const struct nimi_stream_frame *frame = event->frame;
    switch (event->which_payload) {
    case NIMI_STREAM_SCENARIO_EVENT_STARTED:
        assert_null(frame);
        buf_printf(out, "started(" STR_FMT ") ", STR_ARG(event->started->model_resolved));
        break;
    case NIMI_STREAM_SCENARIO_EVENT_USAGE:
        assert_null(frame);
        buf_printf(out, "usage(%lld/%lld) ", (long long)event->usage->input_tokens,
                   (long long)event->usage->output_tokens);
        break;
    case NIMI_STREAM_SCENARIO_EVENT_DELTA:
        if (event->delta->which_delta == NIMI_SCENARIO_STREAM_DELTA_TEXT) {
            assert_false(frame->done);
            assert_true(frame->text_delta.len > 0);
            assert_true(str_equal(frame->text_delta, event->delta->text->text));
            buf_printf(out, "text(" STR_FMT ") ", STR_ARG(frame->text_delta));
        } else if (event->delta->which_delta == NIMI_SCENARIO_STREAM_DELTA_ARTIFACT) {
            assert_false(frame->done);
            assert_true(frame->audio_chunk.len > 0);
            assert_true(str_equal(frame->audio_chunk, event->delta->artifact->chunk));
            buf_printf(out, "audio(" STR_FMT " %zu) ",
                       STR_ARG(event->delta->artifact->mime_type), frame->audio_chunk.len);
        } else {
            assert_null(frame);
            buf_printf(out, "thought(" STR_FMT ") ", STR_ARG(event->delta->reasoning->text));
        }
        break;
    default:
        assert_true(frame->done);
        assert_int_equal(frame->audio_chunk.len + frame->text_delta.len, 0);
        buf_printf(out, "%s(%d %lld/%lld) ",
                   event->which_payload == NIMI_STREAM_SCENARIO_EVENT_COMPLETED ? "completed"
                                                                                : "failed",
                   frame->reason_code, (long long)frame->usage->input_tokens,
                   (long long)frame->usage->output_tokens);
    }
}

/* Everything that got out, as words: the events, then the status. */
FRESH void assert_heard(const struct exchange *x, const char *expected) {
    struct buf heard;
    uint64_t sequence = 0;
    struct str rest = fake_sent(x), message;
    buf_init(&heard, 64 * KIB);
    while (next_message(&rest, &message)) {
        struct arena *arena = arena_new(MIB);
        struct nimi_stream_scenario_event event;
        struct err e;
        assert_true(
            pb_decode_view(&nimi_stream_scenario_event_table, message, arena, &event, &e));
        assert_int_equal(event.sequence, ++sequence);
        assert_int_equal(event.trace_id.len, 26);
        put_event(&heard, &event);
        arena_free(arena);
    }
    struct str status = fake_value(fake_trailers(x), "grpc-status");
    if (status.at) buf_printf(&heard, "=" STR_FMT, STR_ARG(status));
    assert_str(buf_str(&heard), expected);
    buf_done(&heard);
}

FRESH void finish(struct exchange *x, const char *expected) {
    fake_settle(loop);
    assert_heard(x, expected);
    assert_true(fake_closed(x));
    fake_free(x);
}

/* Refused before anything was sent: the status, and the reason in its message. */
FRESH void refused(struct exchange *x, const char *status, const char *reason) {
    char wanted[96];
    fake_settle(loop);
    assert_int_equal(fake_sent(x).len, 0);
    assert_str(fake_value(fake_trailers(x), "grpc-status"), status);
    struct str text = fake_value(fake_trailers(x), "grpc-message");
    snprintf(wanted, sizeof(wanted), "\"reasonCode\":\"%s\"", reason);
    if (str_find(text, str_from(wanted)) >= text.len)
        fail_msg("no %s in " STR_FMT, wanted, STR_ARG(text));
    assert_true(fake_value(fake_trailers(x), "grpc-status-details-bin").at != NULL);
    assert_str(fake_value(fake_head(x), "x-nimi-runtime-version"), "0.1.0");
    fake_free(x);
}

#endif
