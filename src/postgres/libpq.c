#include "postgres/libpq.h"

#include "base/shared_library.h"

static struct libpq table;

#define SYMBOL(name) SHARED_SYMBOL(struct libpq, name),
static const struct shared_symbol symbols[] = {LIBPQ_FUNCTIONS(SYMBOL)};

static struct shared_library library = {
    .file = "libpq.so.5",
    .title = "libpq",
    .needs = "PostgreSQL needs libpq",
    .package = "libpq5",
    .version = "weir needs libpq 14 or later",
    .code = ERR_UNAVAILABLE,
    .symbols = symbols,
    .symbols_count = ARRAY_LEN(symbols),
    .table = &table,
};

bool libpq_load(const struct libpq **ret, struct err *e) {
    *ret = &table;
    return shared_library_load(&library, e);
}

const struct libpq *libpq_loaded(void) {
    return &table;
}
