/* protojson: protobuf messages as JSON, and back.
 *
 * The mapping is the one of protobuf itself: names in lowerCamelCase, enums by name, 64-bit
 * integers as strings, bytes in base64, moments and durations as text, a Struct as an object.
 * Fields that have their default value are left out. When reading, names may also be spelled as
 * in the .proto file, enums be numbers, and 64-bit integers be numbers.
 *
 * Values are walked by the tables of wire/pb.h. The names of enums are not in them; they come
 * from descriptors, which the program carries for reflection.
 *
 * Memory   protojson_new() borrows the descriptors and owns what it makes of them. What is read
 *          lies in the arena.
 * Threads  any, after protojson_new(); it is not changed afterwards.
 * Source   protobuf.dev, "ProtoJSON Format".
 */
#ifndef WEIR_WIRE_PROTOJSON_H
#define WEIR_WIRE_PROTOJSON_H

#include "wire/json.h"
#include "wire/pb.h"
#include "wire/pb_descriptor.h"

struct protojson;

/* sets  FileDescriptorSets; they stay where they are.
 * errors  ERR_MALFORMED, ERR_TOO_LARGE one of them is no such set, or too large */
MUST_CHECK bool protojson_new(const struct str *sets, size_t count, struct protojson **ret,
                              struct err *e);
void protojson_free(struct protojson *json); /* accepts NULL */

/* Append the message. False, and `out` is cut back to where it was: it nests deeper than
 * JSON_DEPTH_MAX, or the buffer is full. */
bool protojson_write(const struct protojson *json, const struct pb_message *type,
                     const void *message, struct buf *out);

/* Read an object into *ret, a struct of that type, all zero before.
 * errors  ERR_INVALID_ARGUMENT "head: nimi.runtime.v1.ScenarioRequestHead has no field 'app';
 *         did you mean 'app_id'?"; ERR_TOO_LARGE the arena */
MUST_CHECK bool protojson_read(const struct protojson *json, const struct pb_message *type,
                               struct json from, struct arena *arena, void *ret, struct err *e);

/* The name of a value of an enum, ".package.Enum"; empty: not known. */
struct str protojson_value_name(const struct protojson *json, struct str enum_name,
                                int32_t number);

/* --- private to protojson_*.c ------------------------------------------------------------ */

/* The enum of a field, or NULL where it is not known. */
const struct pb_enum_descriptor *protojson_enum_of(const struct protojson *json,
                                                   const struct pb_message *type,
                                                   const struct pb_field *field);

/* Messages whose JSON is not an object of their fields. */
enum protojson_known {
    KNOWN_NOT,
    KNOWN_TIMESTAMP,
    KNOWN_DURATION,
    KNOWN_STRUCT,
    KNOWN_VALUE,
    KNOWN_LIST,
};
enum protojson_known protojson_known(const struct pb_message *type);
bool protojson_write_known(enum protojson_known known, const void *message,
                           struct json_writer *writer);
MUST_CHECK bool protojson_read_known(enum protojson_known known, struct json from,
                                     struct arena *arena, void *ret, struct err *e);

#endif
