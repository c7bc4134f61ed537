/* Checks the rows with known answers and says how large the program is. */
#define TINY_CHECK
#include "say.h"
#include "tiny.h"

extern char flash_used, ram_used; /* their addresses are sizes */

#ifdef COUNT_INSTRUCTIONS
/* With `-icount shift=0` an instruction takes a nanosecond, and a tick of 25 MHz is 40 of them. */
#define SYSTICK ((volatile uint32_t *)0xe000e010)
#define NANOSECONDS 40u
#define REPEATS 8u

static void count(void)
{
    unsigned i, k;
    volatile int answer;
    uint32_t ticks;
    SYSTICK[1] = 0xffffff;
    SYSTICK[2] = 0;
    SYSTICK[0] = 5;
    ticks = SYSTICK[2];
    for (k = 0; k < REPEATS; k++) {
        for (i = 0; i < TINY_GOLDEN; i++) {
            answer = tiny_predict(&tiny_golden_rows[i]);
        }
    }
    (void)answer;
    ticks = (ticks - SYSTICK[2]) & 0xffffffu;
    say_number(ticks * NANOSECONDS / (REPEATS * TINY_GOLDEN));
    say(" instructions per prediction\n");
}
#endif

int main(void)
{
    const unsigned wrong = tiny_check();
    say_number(TINY_GOLDEN - wrong);
    say(" of ");
    say_number(TINY_GOLDEN);
    say(" known answers agree\n");
    say_number((uint32_t)&flash_used);
    say(" bytes of flash, ");
    say_number((uint32_t)&ram_used);
    say(" of RAM beside the stack, with this check\n");
#ifdef COUNT_INSTRUCTIONS
    count();
#endif
    return wrong != 0;
}
