/* What a Cortex-M needs before main, and a line to the machine that runs or emulates it. */
#include "say.h"

extern uint32_t stack_top, data_from, data_start, data_end, bss_start, bss_end;
int main(void);
void reset(void);

#define ADP_STOPPED 0x20026 /* the program has ended */

/* A call of the debugger or emulator: semihosting. */
static int semihosting(uint32_t what, const void *with)
{
    register uint32_t r0 __asm__("r0") = what;
    register const void *r1 __asm__("r1") = with;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return (int)r0;
}

void say(const char *text)
{
    semihosting(0x04, text);
}

void reset(void)
{
    uint32_t *from = &data_from, *to;
    uint32_t ended[2] = {ADP_STOPPED, 0};
    for (to = &data_start; to < &data_end; to++) {
        *to = *from++;
    }
    for (to = &bss_start; to < &bss_end; to++) {
        *to = 0;
        __asm__ volatile("");
    }
    ended[1] = (uint32_t)main();
    semihosting(0x20, ended);
    for (;;) {
    }
}

void fault(void)
{
    uint32_t ended[2] = {ADP_STOPPED, 3};
    say("the processor met a fault\n");
    semihosting(0x20, ended);
    for (;;) {
    }
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    &stack_top, (const void *)reset, (const void *)fault, (const void *)fault,
    (const void *)fault, (const void *)fault, (const void *)fault};
