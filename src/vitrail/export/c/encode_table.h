/* How each column becomes bits, in this order: one for each category, one for any other word,
   one for each bin between thresholds, one for each threshold that the number is above, one for
   a missing value. */
#define TINY_HAS_OTHER 1u
#define TINY_HAS_BINS 2u
#define TINY_HAS_THRESHOLDS 4u
#define TINY_HAS_MISSING 8u
typedef struct {
    @size@ categories, thresholds, flags;
} tiny_column;
@columns@

//: if real
/* Thresholds of columns of real numbers; before them, where a column has no bit for a missing
   value, the number that is read instead. */
@reals@

//: end
//: if whole
/* Thresholds of columns of whole numbers, rounded down, in the same way. */
@wholes@

//: end
/* How far encoding has come. */
typedef struct {
    tiny_word *x;
    tiny_index bit, column, real, whole;
    int fault;
} tiny_cursor;

#define TINY_NONE ((tiny_index)-1)

/* Sets the bits of the next column: of the category at place `word`, of the number above `bin`
   thresholds, of a missing value. */
static inline void tiny_put(tiny_cursor *c, tiny_index word, tiny_index bin, int missing)
{
    const tiny_column *column = tiny_columns + c->column++;
    tiny_index words, i;
    TINY_NEAR(tiny_column, column);
    words = column->categories + (column->flags & TINY_HAS_OTHER);
    if (word < words) {
        tiny_set(c->x, c->bit + word);
    }
    c->bit += words;
    if (column->flags & TINY_HAS_BINS) {
        if (bin != TINY_NONE) {
            tiny_set(c->x, c->bit + bin);
        }
        c->bit += column->thresholds + 1u;
    }
    if (column->flags & TINY_HAS_THRESHOLDS) {
        for (i = 0; bin != TINY_NONE && i < bin; i++) {
            tiny_set(c->x, c->bit + i);
        }
        c->bit += column->thresholds;
    }
    if (column->flags & TINY_HAS_MISSING) {
        if (missing) {
            tiny_set(c->x, c->bit);
        }
        c->bit++;
    }
}

//: if real
static inline void tiny_put_real(tiny_cursor *c, float value@word_parameter@)
{
    const tiny_column *column = tiny_columns + c->column;
    int missing = !(value == value);
    tiny_index i, bin = 0;
    TINY_NEAR(tiny_column, column);
    if (!(column->flags & TINY_HAS_MISSING)) {
        if (missing) {
            value = TINY_LOAD_FLOAT(tiny_reals + c->real);
            missing = 0;
        }
        c->real++;
    }
    for (i = 0; i < column->thresholds; i++) {
        bin += value > TINY_LOAD_FLOAT(tiny_reals + c->real++);
    }
@put_number@
}

//: end
//: if whole
static inline void tiny_put_whole(tiny_cursor *c, int32_t value@word_parameter@)
{
    const tiny_column *column = tiny_columns + c->column;
    int missing = value == TINY_NO_NUMBER;
    tiny_index i, bin = 0;
    TINY_NEAR(tiny_column, column);
    if (!(column->flags & TINY_HAS_MISSING)) {
        if (missing) {
            value = (int32_t)TINY_LOAD32(tiny_wholes + c->whole);
            missing = 0;
        }
        c->whole++;
    }
    for (i = 0; i < column->thresholds; i++) {
        bin += value > (int32_t)TINY_LOAD32(tiny_wholes + c->whole++);
    }
@put_number@
}

//: end
//: if words
static inline void tiny_put_word(tiny_cursor *c, @code@ value)
{
    const tiny_column *column = tiny_columns + c->column;
    TINY_NEAR(tiny_column, column);
    if (value == TINY_MISSING && column->flags & TINY_HAS_MISSING) {
        tiny_put(c, TINY_NONE, TINY_NONE, 1);
    } else if (value == TINY_MISSING || value == TINY_OTHER) {
        tiny_put(c, column->categories, TINY_NONE, 0);
    } else {
        c->fault |= value >= column->categories;
        tiny_put(c, value < column->categories ? value : TINY_NONE, TINY_NONE, 0);
    }
}

//: end
/* The bits of a row; 0, or a negative code. */
static inline int tiny_encode(const tiny_row *row, tiny_bits *bits)
{
    tiny_cursor c = {0, 0, 0, 0, 0, 0};
    if (!row || !bits) {
        return TINY_NULL;
    }
    c.x = bits->word;
    tiny_clear(c.x, TINY_INPUTS);
@puts@
//: if bias
    for (; c.bit < TINY_INPUTS; c.bit++) {
        tiny_set(c.x, c.bit); /* constant inputs */
    }
//: end
    return c.fault ? TINY_BAD_INPUT : 0;
}
