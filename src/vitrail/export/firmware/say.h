/* What the check says goes through one function, which every device has its own of. */
#ifndef SAY_H
#define SAY_H

#include <stdint.h>

void say(const char *text);

static inline void say_number(uint32_t number)
{
    char digits[11];
    int i = 10;
    digits[i] = 0;
    do {
        digits[--i] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    say(digits + i);
}

#endif
