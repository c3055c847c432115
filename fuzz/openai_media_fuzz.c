/* Any bytes as the answer to each task: what is read fits what was asked, and what is refused
 * has a reason and a sentence. The first byte chooses the task, the second the format and the
 * rate that were asked for. Then the same bytes as what is asked: no content ends its part of a
 * form. */
#include "provider/openai_media.h"

#include "base/utf8.h"

#include <assert.h>
#include <math.h>

static const struct str inputs[] = {STR_INIT("a"), STR_INIT("b"), STR_INIT("c")};

static void look_at_vectors(const struct media_request *request,
                            const struct media_made *made) {
    assert(made->vector_count == request->input_count);
    for (size_t i = 0; i < made->vector_count; i++) {
        assert(made->vectors[i].count > 0 && made->vectors[i].count == made->vectors[0].count);
        for (size_t k = 0; k < made->vectors[i].count; k++)
            assert(isfinite(made->vectors[i].values[k]));
    }
}

static void look_at_artifacts(const struct media_request *request,
                              const struct media_made *made) {
    size_t max = request->task == MEDIA_IMAGE && request->count ? (size_t)request->count : 1;
    assert(made->artifact_count > 0 && made->artifact_count <= max);
    for (size_t i = 0; i < made->artifact_count; i++) {
        const struct media_artifact *artifact = &made->artifacts[i];
        assert(artifact->bytes.len || artifact->uri.len);
        assert(artifact->bytes.len <= MEDIA_ARTIFACT_MAX_BYTES);
        assert(artifact->content_type.len);
        assert(artifact->width >= 0 && artifact->height >= 0 && artifact->duration_ms >= 0);
    }
}

static void read_as(const struct media_request *request, struct str type, struct str body) {
    struct arena *arena = arena_new(MEDIA_WORK_MAX_BYTES);
    struct media_made made = {0};
    struct reply_failure failure = {.reason = NULL};
    if (!openai_media_read(request, type, body, arena, &made, &failure)) {
        assert(failure.reason && failure.why.code != ERR_NONE && failure.why.text[0]);
    } else if (request->task == MEDIA_EMBEDDING) {
        look_at_vectors(request, &made);
    } else if (request->task == MEDIA_TRANSCRIPT) {
        assert(made.text.at && utf8_valid(made.text));
    } else {
        look_at_artifacts(request, &made);
    }
    arena_free(arena);
}

static void ask_with(struct str bytes) {
    struct media_request request = {.task = MEDIA_TRANSCRIPT,
                                    .bytes = bytes,
                                    .content_type = bytes,
                                    .language = bytes,
                                    .text = bytes};
    struct err e;
    struct buf type, out;
    buf_init(&type, KIB);
    buf_init(&out, 8 * bytes.len + 4 * KIB);
    if (openai_media_body(&request, &type, &out, &e)) {
        struct str boundary = str_skip(buf_str(&type), str_find(buf_str(&type), STR("weir-")));
        size_t seen = 0;
        struct str rest = buf_str(&out);
        for (size_t at; (at = str_find(rest, boundary)) < rest.len; seen++)
            rest = str_skip(rest, at + boundary.len);
        size_t language = 0;
        struct str said = str_trim(bytes);
        while (language < said.len && said.at[language] != '-' && said.at[language] != '_')
            language++;
        assert(seen == 3u + (language > 0) + 1u + 1u); /* model, format, text, file, the end */
        assert(str_equal(rest, STR("--\r\n")));
    } else {
        assert(bytes.len == 0 && e.code == ERR_INVALID_ARGUMENT);
    }
    buf_done(&type);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct str formats[] = {STR_INIT(""), STR_INIT("pcm"), STR_INIT("mp3"),
                                         STR_INIT("webp")};
    static const struct str types[] = {STR_INIT("audio/wav"), STR_INIT("audio/pcm;rate=8000"),
                                       STR_INIT(""), STR_INIT("application/json")};
    if (size < 2) return 0;
    struct str body = str_of(data + 2, size - 2);
    struct media_request request = {.task = (enum media_task)(data[0] % MEDIA_TASKS),
                                    .inputs = inputs,
                                    .input_count = 1 + data[0] / MEDIA_TASKS % 3,
                                    .count = data[0] / 64,
                                    .format = formats[data[1] % 4],
                                    .sample_rate_hz = data[1] & 64 ? 16000 : 0,
                                    .size = str_head(body, data[1] / 16)};
    read_as(&request, types[data[1] / 4 % 4], body);
    ask_with(body);
    return 0;
}
