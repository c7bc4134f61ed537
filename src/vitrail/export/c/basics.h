//: include "flash.h"
/* Bits are packed into words, the first bit lowest: of 8 bits on AVR, of @row_bits@ elsewhere. */
#ifndef TINY_WORD_BITS
#if defined(__AVR__)
#define TINY_WORD_BITS 8
#else
#define TINY_WORD_BITS @row_bits@
#endif
#endif
#if TINY_WORD_BITS == @row_bits@
typedef uint@row_bits@_t tiny_word;
#define TINY_LOAD(p) TINY_LOAD@row_bits@(p)
#elif TINY_WORD_BITS == 8
typedef uint8_t tiny_word;
#define TINY_LOAD(p) TINY_LOAD8(p)
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "words of 8 bits need a processor that stores the lowest byte first"
#endif
#else
#error "TINY_WORD_BITS must be 8 or @row_bits@"
#endif
#define TINY_WORDS(bits) (((bits) + @row_bits@u - 1u) / @row_bits@u * (@row_bits@u / TINY_WORD_BITS))
//: if strings

/* Weights stand as strings, a row each, which compilers read far faster than many numbers. */
typedef uint8_t tiny_stored;
#define TINY_STRIDE(bits) (((bits) + 31u) / 32u * 4u + 4u) /* bytes of a row, and its end */
#if TINY_WORD_BITS == 32
#define TINY_BYTE(w, i, k) ((tiny_word)TINY_LOAD8((w) + 4u * (i) + (k)) << (8u * (k)))
#define TINY_WEIGHT(w, i) \
    (TINY_BYTE(w, i, 0u) | TINY_BYTE(w, i, 1u) | TINY_BYTE(w, i, 2u) | TINY_BYTE(w, i, 3u))
#else
#define TINY_WEIGHT(w, i) TINY_LOAD8((w) + (i))
#endif
//: else
typedef tiny_word tiny_stored;
#define TINY_STRIDE(bits) TINY_WORDS(bits)
#define TINY_WEIGHT(w, i) TINY_LOAD((w) + (i))
//: endif

typedef @int@ tiny_int;         /* sums of weights times values */
typedef @index@ tiny_index;
typedef @score@ tiny_score;     /* sums over networks */

/* Sizes that the code relies on: a wrong one makes an array of negative size. */
typedef char tiny_words_have_their_bits[sizeof(tiny_word) * 8 == TINY_WORD_BITS ? 1 : -1];
typedef char tiny_sums_fit[sizeof(tiny_int) >= @int_bytes@ ? 1 : -1];
typedef char tiny_indices_fit[sizeof(tiny_index) >= @index_bytes@ ? 1 : -1];

#define TINY_BITS @bits@u     /* that a row becomes */
#define TINY_INPUTS @inputs@u   /* those and constant ones */
#define TINY_CLASSES @classes@
#define TINY_NULL (-1)      /* returned for a null pointer */
#define TINY_BAD_INPUT (-2) /* returned for a row with a value that its column cannot have */

typedef struct {
    tiny_word word[TINY_WORDS(TINY_INPUTS)];
} tiny_bits;

#define TINY_MOST_BITS @most_bits@u /* of any row of bits here */

#define TINY_AT(bit) (TINY_MOST_BITS > TINY_WORD_BITS ? (bit) / TINY_WORD_BITS : 0)
#define TINY_SET(x, bit) \
    ((x)[TINY_AT(bit)] = (tiny_word)((x)[TINY_AT(bit)] | ((tiny_word)1 << (bit) % TINY_WORD_BITS)))

static inline void tiny_set(tiny_word *x, tiny_index bit)
{
    TINY_SET(x, bit);
}

static inline void tiny_clear(tiny_word *x, tiny_index bits)
{
    tiny_index i;
    for (i = 0; i < TINY_WORDS(bits); i++) {
        x[i] = 0;
#if defined(__GNUC__)
        __asm__ volatile(""); /* so that no call of memset is made of this */
#endif
    }
}

/* How many bits of a word are 1, added to a number. */
static inline tiny_int tiny_ones(tiny_word x, tiny_int ones)
{
#if defined(__POPCNT__) || defined(__aarch64__)
    return ones + __builtin_popcount(x);
#elif defined(__OPTIMIZE_SIZE__)
    for (; x; x = (tiny_word)(x & (x - 1u))) { /* the last 1 becomes a 0 */
        ones++;
    }
    return ones;
#else
    x = (tiny_word)(x - ((x >> 1) & (tiny_word)0x55555555u));
    x = (tiny_word)((x & (tiny_word)0x33333333u) + ((x >> 2) & (tiny_word)0x33333333u));
    x = (tiny_word)((x + (x >> 4)) & (tiny_word)0x0f0f0f0fu);
#if TINY_WORD_BITS == 32
    x = (x * 0x01010101u) >> 24;
#elif TINY_WORD_BITS == 16
    x = (tiny_word)((x + (x >> 8)) & 0x1fu);
#endif
    return ones + (tiny_int)x;
#endif
}
//: if total

/* How many of the first bits of x are 1. */
static inline tiny_int tiny_total(const tiny_word *x, tiny_index bits)
{
    tiny_int total = 0;
    tiny_index i;
    for (i = 0; i < TINY_WORDS(bits); i++) {
        total = tiny_ones(x[i], total);
    }
    return total;
}
//: endif
