/* Facts that the analyzers cannot see across files; included only by `make lint`.
 *
 * err_set() and err_add() always return false. Unless told, an analyzer follows the road on
 * which `return err_set(...)` was a success, and finds results there that nobody filled.
 *
 * strerror() keeps its text per thread in glibc (since 2.32). */
#include "base/err.h"

#define err_set(...) ((void)err_set(__VA_ARGS__), false)
#define err_add(...) ((void)err_add(__VA_ARGS__), false)
#define strerror(number) ((void)(number), "")
