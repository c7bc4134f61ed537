#include <stdint.h>
#include <string.h>
typedef struct { int16_t n[@[numbers, 1]|max@]; uint8_t w[@[words, 1]|max@]; } tiny_row;
@code@
static int tiny_predict(const tiny_row *row) { return (int)@answer@; }
#ifdef TINY_CHECK
#define TINY_GOLDEN @answers|length@u
static const tiny_row tiny_golden_rows[] = {@rows|join(", ")@};
static unsigned tiny_check(void)
{
    static const uint8_t answers[] = {@answers|numbers@};
    unsigned i, wrong = 0;
    for (i = 0; i < TINY_GOLDEN; i++) wrong += tiny_predict(&tiny_golden_rows[i]) != answers[i];
    return wrong;
}
#endif
