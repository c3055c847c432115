/* provider_fake: a model and tools whose answers are given by the test.
 *
 * It is stricter than a real kind: giving while paused, or after the ending, fails an assert,
 * and cancelled calls are freed, so a sanitizer finds who kept them. Cancelling from inside a
 * callback is allowed, as the header of providers says.
 *
 * Memory   the test frees providers and tools, when no call is out.
 * Threads  none.
 */
#ifndef WEIR_TEST_FAKE_PROVIDER_FAKE_H
#define WEIR_TEST_FAKE_PROVIDER_FAKE_H

#include "provider/provider.h"
#include "tool/tool.h"

struct provider *fake_provider_new(void);
/* From now on it has no use for what was said before a turn. */
void fake_reads_turn_only(struct provider *provider);

/* Calls that are out, the oldest first, and how many there ever were. */
size_t fake_calls(const struct provider *provider);
size_t fake_calls_ever(const struct provider *provider);
struct provider_call *fake_call(const struct provider *provider, size_t index);

const struct provider_request *fake_request(const struct provider_call *call);
bool fake_paused(const struct provider_call *call);

/* What the model says. False: the call was cancelled from inside, it is gone. */
bool fake_text(struct provider_call *call, struct str text);
/* The same text in pieces of these lengths, at once. The caller of the model must take them. */
bool fake_pieces(struct provider_call *call, struct str text, const uint32_t *lens,
                 size_t count);
bool fake_thinking(struct provider_call *call, struct str text);
bool fake_tool_call(struct provider_call *call, const char *id, const char *tool,
                    const char *args);
bool fake_approval(struct provider_call *call, const char *id, const char *question);
bool fake_opaque(struct provider_call *call, const char *dialect, const char *bytes);
bool fake_note(struct provider_call *call, const char *text);
bool fake_own_call(struct provider_call *call, const char *id, const char *tool,
                   const char *args);
/* why: empty, or why it failed */
bool fake_own_result(struct provider_call *call, const char *id, const char *result,
                     const char *why);
bool fake_usage(struct provider_call *call, int64_t prompt, int64_t completion);
/* It has counted what it thought, and not its answer. */
bool fake_thoughts(struct provider_call *call, int64_t thoughts);
void fake_done(struct provider_call *call, const char *model);
void fake_fail(struct provider_call *call, enum err_code code, const char *reason);

struct tool *fake_tool_new(const char *name);
size_t fake_tool_calls(const struct tool *tool);
struct str fake_tool_args(const struct tool *tool, size_t index);
void fake_tool_answer(struct tool *tool, size_t index, const char *result);
void fake_tool_fail(struct tool *tool, size_t index, enum err_code code);

#endif
