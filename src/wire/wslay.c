#include "wire/wslay.h"

#include "base/shared_library.h"

static struct wslay table;

#define SYMBOL(name) SHARED_SYMBOL(struct wslay, name),
static const struct shared_symbol symbols[] = {WSLAY_FUNCTIONS(SYMBOL)};

static struct shared_library library = {
    .file = "libwslay.so.1",
    .title = "libwslay",
    .needs = "WebSocket needs libwslay",
    .package = "libwslay1",
    .version = "weir needs 1.1 or later",
    .code = ERR_UNAVAILABLE,
    .symbols = symbols,
    .symbols_count = ARRAY_LEN(symbols),
    .table = &table,
};

bool wslay_load(struct err *e) {
    return shared_library_load(&library, e);
}

const struct wslay *wslay_loaded(void) {
    return &table;
}
