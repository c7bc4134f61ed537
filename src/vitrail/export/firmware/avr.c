/* The same check on an AVR: answers go to the serial line, cycles are counted by timer 1. */
#define TINY_CHECK
#include "say.h"
#include "tiny.h"

#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>

void say(const char *text)
{
    while (*text) {
        while (!(UCSR0A & (1 << UDRE0))) {
        }
        UDR0 = (uint8_t)*text++;
    }
}

int main(void)
{
    const unsigned wrong = tiny_check();
    uint32_t cycles = 0;
    unsigned i;
    UCSR0B = 1 << TXEN0;
    say_number(TINY_GOLDEN - wrong);
    say(" of ");
    say_number(TINY_GOLDEN);
    say(" known answers agree\n");
    for (i = 0; i < TINY_GOLDEN; i++) {
        const tiny_row *row = tiny_golden_rows + i;
        volatile int answer;
        TINY_NEAR(tiny_row, row);
        TCCR1B = 0;
        TCNT1 = 0;
        TCCR1B = 3; /* a tick in 64 cycles */
        answer = tiny_predict(row);
        cycles += 64ul * TCNT1;
        (void)answer;
    }
    say_number(cycles / TINY_GOLDEN);
    say(" cycles per prediction\n");
    cli();
    sleep_mode(); /* simavr ends here */
    return wrong != 0;
}
