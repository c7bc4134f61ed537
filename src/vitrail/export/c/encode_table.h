//: if plain
//: if not even
/* How many thresholds each column has; a bit says whether a number is above one. */
@counts@

//: end
//: else
/* How each column becomes bits, in this order: one for each category, one for any other word,
   one for each bin between thresholds, one for each threshold that the number is above, one for
   a missing value. */
//: if other
#define TINY_HAS_OTHER 1u
//: end
//: if bins
#define TINY_HAS_BINS 2u
//: end
//: if thermometer
#define TINY_HAS_THRESHOLDS 4u
//: end
//: if missing
#define TINY_HAS_MISSING 8u
//: end
typedef struct {
    @size@ categories, thresholds, flags;
} tiny_column;
@columns@

//: end
//: if numbers
/* Thresholds of the columns of numbers, whole ones rounded down, others as tiny_order() has them;
   before them, where a column has no bit for a missing value, what is read instead. */
static const @cut@ tiny_cuts[] TINY_FLASH = {
@cuts@
};
#define TINY_CUT(i) ((int32_t)(@cut@)TINY_LOAD@cut_bits@(tiny_cuts + (i)))

//: end
//: if real
/* A whole number for each real one, in the same order, so that no arithmetic of floats is needed;
   TINY_NO_NUMBER if it is none. */
static inline int32_t tiny_order(float value)
{
    union {
        float real;
        int32_t bits;
    } both;
    both.real = value;
    if ((both.bits & 0x7fffffff) > 0x7f800000) {
        return TINY_NO_NUMBER;
    }
    return both.bits < 0 ? both.bits ^ 0x7fffffff : both.bits;
}

//: end
/* How far encoding has come. */
typedef struct {
    tiny_word *x;
    tiny_index bit, column, cut;
    int fault;
} tiny_cursor;

//: if not plain
#define TINY_NONE ((tiny_index)-1)

//: end
//: if plain
/* A number: a bit for each of its thresholds. */
static inline void tiny_put_number(tiny_cursor *c, int32_t value)
{
    const tiny_index cuts = @count@;
    tiny_index i;
    if (value == TINY_NO_NUMBER) {
        value = TINY_CUT(c->cut);
    }
    c->cut++;
    for (i = 0; i < cuts && value > TINY_CUT(c->cut + i); i++) {
        tiny_set(c->x, c->bit + i);
    }
    c->cut += cuts;
    c->bit += cuts;
}

//: else
/* Sets the bits of the next column: of the category at place `word`, of the number above `bin`
   thresholds, of a missing value. */
static inline void tiny_put(tiny_cursor *c, tiny_index word, tiny_index bin, int missing)
{
    const tiny_column *column = tiny_columns + c->column++;
//: if categories
    tiny_index words;
//: end
//: if thermometer
    tiny_index i;
//: end
    TINY_NEAR(tiny_column, column);
//: if categories
//: if other
    words = column->categories + (column->flags & TINY_HAS_OTHER);
//: else
    words = column->categories;
//: end
    if (word < words) {
        tiny_set(c->x, c->bit + word);
    }
    c->bit += words;
//: else
    (void)word;
//: end
//: if bins
    if (column->flags & TINY_HAS_BINS) {
        if (bin != TINY_NONE) {
            tiny_set(c->x, c->bit + bin);
        }
        c->bit += column->thresholds + 1u;
    }
//: end
//: if thermometer
    if (column->flags & TINY_HAS_THRESHOLDS) {
        for (i = 0; bin != TINY_NONE && i < bin; i++) {
            tiny_set(c->x, c->bit + i);
        }
        c->bit += column->thresholds;
    }
//: end
//: if not numbers
    (void)bin;
//: end
//: if missing
    if (column->flags & TINY_HAS_MISSING) {
        if (missing) {
            tiny_set(c->x, c->bit);
        }
        c->bit++;
    }
//: else
    (void)missing;
//: end
}

//: if numbers
/* A number, which lies above some of its thresholds, or none. */
static inline void tiny_put_number(tiny_cursor *c, int32_t value@word_parameter@)
{
    const tiny_column *column = tiny_columns + c->column;
    tiny_index bin = 0;
//: if missing
    int missing;
//: end
    TINY_NEAR(tiny_column, column);
//: if mixed
//: if other
    if (word == TINY_OTHER && !(column->flags & TINY_HAS_OTHER)) {
//: else
    if (word == TINY_OTHER) {
//: end
        value = TINY_NO_NUMBER; /* a word that means nothing here */
        word = 0;
    }
//: end
//: if missing
    missing = value == TINY_NO_NUMBER;
//: end
//: if missing
    if (!(column->flags & TINY_HAS_MISSING)) {
        if (missing) {
            value = TINY_CUT(c->cut);
            missing = 0;
        }
        c->cut++;
    }
//: else
    if (value == TINY_NO_NUMBER) {
        value = TINY_CUT(c->cut);
    }
    c->cut++;
//: end
    while (bin < column->thresholds && value > TINY_CUT(c->cut + bin)) {
        bin++;
    }
    c->cut += column->thresholds;
//: if mixed
    if (word) {
        const tiny_index place = word == TINY_OTHER ? column->categories : word - 1u;
        c->fault |= word != TINY_OTHER && place >= column->categories;
        tiny_put(c, place, TINY_NONE, 0);
        return;
    }
//: end
//: if missing
    tiny_put(c, TINY_NONE, missing ? TINY_NONE : bin, missing);
//: else
    tiny_put(c, TINY_NONE, bin, 0);
//: end
}

//: end

//: end
//: if real
static inline void tiny_put_real(tiny_cursor *c, float value@word_parameter@)
{
    tiny_put_number(c, tiny_order(value)@word_argument@);
}

//: end
//: if words
static inline void tiny_put_word(tiny_cursor *c, @code@ value)
{
    const tiny_column *column = tiny_columns + c->column;
    TINY_NEAR(tiny_column, column);
//: if missing
    if (value == TINY_MISSING && column->flags & TINY_HAS_MISSING) {
        tiny_put(c, TINY_NONE, TINY_NONE, 1);
        return;
    }
//: end
    if (value == TINY_MISSING || value == TINY_OTHER) {
        tiny_put(c, column->categories, TINY_NONE, 0);
    } else {
        c->fault |= value >= column->categories;
        tiny_put(c, value < column->categories ? value : TINY_NONE, TINY_NONE, 0);
    }
}

//: end
//: if alike
typedef char tiny_columns_are_alike[sizeof(tiny_row) == @num_columns@ * sizeof(@field@) ? 1 : -1];

//: end
/* The bits of a row; 0, or a negative code. */
static inline int tiny_encode(const tiny_row *row, tiny_bits *bits)
{
//: if alike
    const @field@ *value = (const @field@ *)(const void *)row;
    tiny_index i;
//: end
    tiny_cursor c;
    if (!row || !bits) {
        return TINY_NULL;
    }
    tiny_clear(bits->word, TINY_INPUTS);
    c.x = bits->word; /* one by one, so that no call of memset is made of it */
    c.bit = 0;
    c.column = 0;
    c.cut = 0;
    c.fault = 0;
//: if alike
    for (i = 0; i < @num_columns@u; i++) {
        tiny_put_@what@(&c, value[i]);
    }
//: else
@puts@
//: end
//: if bias
    for (; c.bit < TINY_INPUTS; c.bit++) {
        tiny_set(c.x, c.bit); /* constant inputs */
    }
//: end
    return c.fault ? TINY_BAD_INPUT : 0;
}
