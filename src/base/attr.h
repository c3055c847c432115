/* attr: the compiler attributes that our signatures use, spelled once. */
#ifndef WEIR_BASE_ATTR_H
#define WEIR_BASE_ATTR_H

/* The caller must check the result: an ignored failure is a hidden failure. */
#define MUST_CHECK __attribute__((warn_unused_result))

/* printf-like: argument `fmt` is the format, `args` the first of its values, counted from 1. */
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

#define NORETURN __attribute__((noreturn))

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* The object that holds `member` at address `at`. */
#define CONTAINER_OF(at, type, member) ((type *)((char *)(at)-offsetof(type, member)))

#endif
