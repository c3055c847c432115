/* messages: the messages of a conversation, short to write. Each is an initializer. */
#ifndef WEIR_TEST_HELPER_MESSAGES_H
#define WEIR_TEST_HELPER_MESSAGES_H

#include "provider/provider.h"

#define M_USER(said)                                                                           \
    { .role = MESSAGE_USER, .text = STR_INIT(said) }
#define M_SAID(who, said)                                                                      \
    { .role = MESSAGE_AGENT, .agent = STR_INIT(who), .text = STR_INIT(said) }
#define M_OPAQUE(who, dialect, bytes)                                                          \
    {                                                                                          \
        .role = MESSAGE_OPAQUE, .agent = STR_INIT(who), .text = STR_INIT(bytes),               \
        .tool = STR_INIT(dialect)                                                              \
    }
#define M_CALL(who, id, name, args)                                                            \
    {                                                                                          \
        .role = MESSAGE_TOOL_CALL, .agent = STR_INIT(who), .text = STR_INIT(args),             \
        .call_id = STR_INIT(id), .tool = STR_INIT(name)                                        \
    }
#define M_RESULT(id, result)                                                                   \
    { .role = MESSAGE_TOOL_RESULT, .call_id = STR_INIT(id), .text = STR_INIT(result) }
#define M_ERROR(id, result)                                                                    \
    {                                                                                          \
        .role = MESSAGE_TOOL_RESULT, .call_id = STR_INIT(id), .text = STR_INIT(result),        \
        .error = true                                                                          \
    }

#endif
