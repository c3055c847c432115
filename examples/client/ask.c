/* One question over nimi.runtime.v1, its answer as it comes, and how the stream ended.
 *
 *     cc ask.c $(pkg-config --cflags --libs weir-client) -o ask
 *     weir serve -c examples/weir.yaml --nimi-grpc 127.0.0.1:46371
 *     ./ask 127.0.0.1:46371 */
#include <stdio.h>
#include <weir/client.h>

static const char request[] =
    "{\"head\": {\"appId\": \"demo.app\", \"modelId\": \"local/any\", \"routePolicy\": 1},"
    " \"scenarioType\": \"SCENARIO_TYPE_TEXT_GENERATE\", \"executionMode\": 2, \"spec\": {"
    "\"textGenerate\": {\"input\": [{\"role\": \"user\", \"content\": \"plan two days in "
    "Kyoto\"}]}}}";

int main(int argc, char **argv) {
    char why[256] = "";
    struct weir_client_options to = {
        .size = sizeof(to), .address = argc > 1 ? argv[1] : "", .app_id = "demo.app"};
    struct weir_stream_options ask = {
        .size = sizeof(ask), .method = "StreamScenario", .json = request};
    struct weir_frame frame = {.size = sizeof(frame)};
    struct weir_outcome outcome = {.size = sizeof(outcome)};
    struct weir_client *client = weir_client_new(&to, why, sizeof(why));
    struct weir_stream *stream =
        client ? weir_stream_open(client, &ask, why, sizeof(why)) : NULL;
    if (!stream) {
        fprintf(stderr, "%s\n", why);
        return 2;
    }
    while (weir_stream_next(stream, &frame, -1) == WEIR_NEXT_FRAME) {
        fwrite(frame.text, 1, frame.text_len, stdout);
        fflush(stdout);
    }
    weir_stream_outcome(stream, &outcome);
    printf("\n-- %s: %s\n", outcome.name, outcome.meaning);
    weir_stream_free(stream);
    weir_client_free(client);
    return outcome.code == WEIR_COMPLETED ? 0 : 1;
}
