/* Linked into builds for ThreadSanitizer, with -Wl,--wrap=syscall.
 *
 * libuv closes descriptors with syscall(SYS_close), which ThreadSanitizer does not see. When
 * the number is reused, it reports that two threads opened the same descriptor. It does see a
 * call of close(). */
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ARGUMENTS = 6 }; /* of a system call, at most */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...) {
    long arguments[ARGUMENTS];
    va_list values;
    va_start(values, number);
    for (int i = 0; i < ARGUMENTS; i++) arguments[i] = va_arg(values, long);
    va_end(values);
    if (number == SYS_close) return close((int)arguments[0]);
    return __real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3],
                          arguments[4], arguments[5]);
}
