#include "client/curl.h"

#include "base/shared_library.h"

/* 7.87.0: the first version in which a cancelled call does not wait for a name server. */
#define VERSION_MIN 0x075700

static struct curl table;

static bool start_up(struct err *e) {
    if (table.curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) return true;
    return err_set(e, ERR_UNAVAILABLE, "libcurl is installed and does not start");
}

static bool curl_check_version(struct err *e) {
    const curl_version_info_data *info = table.curl_version_info(CURLVERSION_NOW);
    if (info->version_num < VERSION_MIN)
        return err_set(e, ERR_UNAVAILABLE,
                       "the installed libcurl is %s; weir needs 7.87 or later", info->version);
    /* Without asynchronous DNS, a name lookup would block the loop. */
    int needed = CURL_VERSION_SSL | CURL_VERSION_ASYNCHDNS;
    if ((info->features & needed) != needed)
        return err_set(e, ERR_UNAVAILABLE,
                       "the installed libcurl %s was built without TLS or without a resolver "
                       "that does not block: install the package libcurl4",
                       info->version);
    return true;
}

static bool curl_check(struct err *e) {
    return start_up(e) && curl_check_version(e);
}

#define SYMBOL(name) SHARED_SYMBOL(struct curl, name),
static const struct shared_symbol symbols[] = {CURL_FUNCTIONS(SYMBOL)};

static struct shared_library library = {
    .file = "libcurl.so.4",
    .title = "libcurl",
    .needs = "asking other servers needs libcurl",
    .package = "libcurl4",
    .version = "weir needs 7.87 or later",
    .code = ERR_UNAVAILABLE,
    .symbols = symbols,
    .symbols_count = ARRAY_LEN(symbols),
    .table = &table,
    .check = curl_check,
};

bool curl_load(const struct curl **ret, struct err *e) {
    *ret = &table;
    return shared_library_load(&library, e);
}
