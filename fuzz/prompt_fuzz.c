/* Any row of messages becomes turns that an API takes: two bytes a message, role and agent in
 * the first, call id in the second. Each call has its own result, no result serves twice, and
 * no turn is empty. */
#include "provider/prompt.h"

#include <assert.h>
#include <stdlib.h>

#define MESSAGES_MAX 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct str ids[] = {STR_INIT(""), STR_INIT("a"), STR_INIT("b"), STR_INIT("c")};
static const struct str agents[] = {STR_INIT("manager"), STR_INIT("wally"), STR_INIT("")};
static const struct str texts[] = {STR_INIT(""), STR_INIT("{}"), STR_INIT("hi")};

static struct message message_of(uint8_t kind, uint8_t rest) {
    static const enum message_role roles[] = {MESSAGE_USER,      MESSAGE_AGENT,
                                              MESSAGE_TOOL_CALL, MESSAGE_TOOL_RESULT,
                                              MESSAGE_OPAQUE,    MESSAGE_SYSTEM};
    return (struct message){.role = roles[kind % 6],
                            .agent = agents[kind / 6 % 3],
                            .text = texts[kind / 18 % 3],
                            .call_id = ids[rest % 4],
                            .tool = rest / 4 % 2 ? STR("openai") : STR("gemini")};
}

static void check_turn(const struct prompt_turn *turn, const struct message *messages,
                       bool used[MESSAGES_MAX]) {
    assert(turn->text.len || turn->call_count || turn->role == PROMPT_USER);
    assert(turn->role == PROMPT_AGENT || (!turn->call_count && !turn->opaque.len));
    assert(turn->role == PROMPT_AGENT || !turn->prefill);
    for (size_t i = 0; i < turn->call_count; i++) {
        const struct message *call = turn->calls[i].call, *result = turn->calls[i].result;
        assert(call->role == MESSAGE_TOOL_CALL && result->role == MESSAGE_TOOL_RESULT);
        assert(str_equal(call->call_id, result->call_id) && call < result);
        assert(str_equal(call->agent, agents[0]) || call->agent.len == 0);
        assert(!used[result - messages]);
        used[result - messages] = true;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct message messages[MESSAGES_MAX];
    bool used[MESSAGES_MAX] = {false};
    size_t count = size / 2 < MESSAGES_MAX ? size / 2 : MESSAGES_MAX;
    for (size_t i = 0; i < count; i++) messages[i] = message_of(data[2 * i], data[2 * i + 1]);
    struct provider_request request = {
        .agent = agents[0], .messages = messages, .message_count = count};
    struct prompt prompt;
    struct err e;
    if (!prompt_init(&prompt, &request, STR("openai"), &e)) abort();
    assert(prompt.turn_count <= count && prompt.call_count <= count);
    for (size_t i = 0; i < prompt.turn_count; i++) check_turn(&prompt.turns[i], messages, used);
    prompt_done(&prompt);
    return 0;
}
