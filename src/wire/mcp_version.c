#include "wire/mcp_version.h"

#include <assert.h>

static const char *const versions[MCP_VERSIONS] = {"2025-11-25", "2025-06-18", "2025-03-26",
                                                   "2024-11-05"};

struct str mcp_version_at(size_t index) {
    assert(index < MCP_VERSIONS);
    return str_from(versions[index]);
}

const char *mcp_version_known(struct str version) {
    for (size_t i = 0; i < MCP_VERSIONS; i++) {
        if (str_equal(version, str_from(versions[i]))) return versions[i];
    }
    return NULL;
}
