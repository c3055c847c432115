/* file_write: the tool that writes a whole file of the workspace.
 *
 * {"key":"notes/plan.md","content":"..."} gives {"key","object_key","content_type",
 * "size_bytes"}. An existing file is replaced atomically.
 *
 * Source   crawbl.md 2.8
 */
#include "tool/file_tool.h"
#include "tool/local.h"

static bool file_write_result(const struct file_request *request, struct str type,
                              struct str bytes, struct buf *out) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_member_str(&writer, "key", request->key);
    json_member_str(&writer, "object_key", request->path);
    json_member_str(&writer, "content_type", type);
    json_member_u64(&writer, "size_bytes", bytes.len);
    json_close(&writer);
    return buf_ok(out);
}

static bool file_write_prepare(const struct file_request *request, struct file_content *ret,
                               struct buf *out, struct err *e) {
    struct str content, type = STR("text/plain; charset=utf-8");
    if (!json_str(json_find(request->args, STR("content")), request->arena, &content))
        return err_set(e, ERR_INVALID_ARGUMENT, "the argument 'content' must be a string");
    struct json given = json_find(request->args, STR("content_type"));
    if (given.kind == JSON_STRING && !json_str(given, request->arena, &type))
        return err_set(e, ERR_INVALID_ARGUMENT, "the content type is too long");
    if (type.len == 0) type = STR("text/plain; charset=utf-8");
    if (!str_is_printable(type))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the content type may have printable characters of ASCII only");

    /* Write the result first: if it failed after the file was written, the call would look like
     * a failure. */
    if (!file_write_result(request, type, content, out))
        return err_set(e, ERR_INVALID_ARGUMENT, "the key or the content type is too long");
    *ret = (struct file_content){content, type, content.len};
    return content.len <= PLACE_FILE_MAX_BYTES ||
           err_set(e, ERR_TOO_LARGE,
                   "write key \"" STR_FMT "\": it would be larger than %zu bytes",
                   STR_ARG(request->key), (size_t)PLACE_FILE_MAX_BYTES);
}

const struct file_tool_kind file_write_tool = {
    .name = STR_INIT("file_write"),
    .description = STR_INIT(
        "Write a file of this workspace under a key, such as \"notes/plan.md\", and replace "
        "what stood there. At most 25 MiB."),
    .parameters = STR_INIT(
        "{\"type\":\"object\",\"properties\":{\"key\":{\"type\":\"string\",\"description\":"
        "\"Which file, by its path in the workspace.\"},\"content\":{\"type\":\"string\","
        "\"description\":\"The whole text of the file.\"},\"content_type\":{\"type\":"
        "\"string\",\"description\":\"Such as text/markdown; plain text without "
        "one.\"}," LOCAL_DESCRIPTION
        "},\"required\":[\"key\",\"content\"],\"additionalProperties\":false}"),
    .prepare = file_write_prepare,
};
