#include "client/request_line.h"

bool request_is_line(struct str text) {
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '\r' || text.at[i] == '\n' || text.at[i] == '\0') return false;
    }
    return true;
}

bool request_check_header(const struct http_header *header, struct err *e) {
    bool good = header->name.len && request_is_line(header->name) &&
                request_is_line(header->value) &&
                str_find_byte(header->name, ':') == header->name.len;
    return good || err_set(e, ERR_INVALID_ARGUMENT,
                           "a header of the request has no name, or a line break in it");
}
