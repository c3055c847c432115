/* A blueprint that is taken has a manager in front, agents within their limits and no slug
 * twice. */
#include "contract/crawbl/blueprint.h"

#include "base/utf8.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena *arena = arena_new(BLUEPRINT_ARENA_BYTES);
    struct blueprint blueprint;
    struct err e;
    if (blueprint_read(str_of(data, size), STR("w"), arena, &blueprint, &e)) {
        assert(blueprint.agent_count > 0 && blueprint.agent_count <= BLUEPRINT_AGENTS_MAX);
        for (size_t i = 0; i < blueprint.agent_count; i++) {
            const struct blueprint_agent *agent = &blueprint.agents[i];
            assert(agent->slug.len > 0 && utf8_valid(agent->prompt));
            assert(utf8_valid(agent->description));
            assert(agent->description.len <= BLUEPRINT_DESCRIPTION_MAX_BYTES);
            assert(agent->picks_tools == (agent->tool_count > 0));
            for (size_t j = 0; j < i; j++)
                assert(!str_equal(agent->slug, blueprint.agents[j].slug));
        }
    } else {
        assert(e.code != ERR_NONE && e.text[0]);
    }
    arena_free(arena);
    return 0;
}
