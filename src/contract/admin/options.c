#include "contract/admin/options.h"

#include "config/rows.h"

#define ROW_OF struct admin_options

/* clang-format off */
static const struct setting rows[] = {
    {.group = "Listening", .key = "listen.admin", .flag = "admin", .env = {"WEIR_ADMIN"},
     ADDRESS(address), .preset = "off", .fixed = true,
     .help = "the operator's HTTP listener, 127.0.0.1:9464 by habit: /metrics, /readyz, "
             "/livez; it asks for no token"},
};
/* clang-format on */

const struct setting_rows admin_rows = {
    .rows = rows, .count = ARRAY_LEN(rows), .size = sizeof(struct admin_options)};

const struct admin_options *admin_options(const struct config *config) {
    static const struct admin_options none = {.address = STR_INIT("")};
    const struct admin_options *options = config_values(config, &admin_rows);
    return options ? options : &none;
}
