#include <stdint.h>

#if defined(__AVR__)
#include <avr/pgmspace.h>
#define TINY_FLASH PROGMEM
#define TINY_LOAD8(p) pgm_read_byte(p)
#define TINY_LOAD16(p) pgm_read_word(p)
#define TINY_LOAD32(p) pgm_read_dword(p)
#define TINY_NEAR(type, p) type near_##p; memcpy_P(&near_##p, p, sizeof(type)); p = &near_##p
#else
#define TINY_FLASH
#define TINY_LOAD8(p) (*(p))
#define TINY_LOAD16(p) (*(p))
#define TINY_LOAD32(p) (*(p))
#define TINY_NEAR(type, p) (void)0
#endif


