//: if numbers
#define TINY_NO_NUMBER (-2147483647 - 1) /* of whole numbers: missing */

//: endif
//: if words
/* Categories. */
enum {
//: for column in columns
//: for word in column.code.categories
    @names[column.code.name, word]@ = @loop.index0 + column.mixed@, /* @column.code.name|comment@=@word|comment@ */
//: endfor
//: endfor
    TINY_OTHER = @limits(code)[1] - 1@, /* any other word */
    TINY_MISSING = @limits(code)[1]@
};

//: endif
/* A row: one field for each column that counts. */
typedef struct {
//: for column in columns
    @column.type@ @column.field@; /* @column.code.name|comment@: @VALUES[column.kind]@ */
//: if column.mixed
    @code@ @column.word_field@; /* 0 where a number stands, or the word that stands there */
//: endif
//: endfor
} tiny_row;

//: if plain
//: if not even
/* How many thresholds each column has; a bit says whether a number is above one. */
@table(mark_type, "tiny_columns", packed_marks)@

//: endif
//: else
//: if not even
/* What each column is: how many categories or thresholds it has, times @2 ** varying|length@, and marks. */
@table(mark_type, "tiny_columns", packed_marks)@
//: endif
/* What becomes of a column, in this order: a bit for each category, one for any other word, one
   for each bin between thresholds, one for each threshold that the number is above (of two bins
   none), @"one for each that it is not above, " if both else ""@one for a missing value. */
#define TINY_COLUMN(i) @"0u" if even else load ~ "(tiny_columns + (i))"@
//: if counts_vary
#define TINY_COUNT(column) (@"(column) / %uu" % 2 ** varying|length if varying else "(column)"@)
//: else
#define TINY_COUNT(column) @counts[0]@u
//: endif
//: for name, value in marks.items()
#define TINY_@name.upper()@(column) @value@
//: endfor

//: endif
//: if numbers
/* Thresholds of the columns of numbers, whole ones rounded down, others as tiny_order() has them;
   before them, where a column has no bit for a missing value, what is read instead. */
static const @cut@ tiny_cuts[] TINY_FLASH = {
//: for column in columns if column.kind != "word"
    /* @column.about|comment@ */
    @column.cuts|map("int32_literal")|join(", ")@@"" if loop.last else ","@
//: endfor
};
#define TINY_CUT(i) ((int32_t)@read(cut, "tiny_cuts + (i)")@)

//: endif
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
    if ((uint32_t)both.bits << 1 > 0xff000000u) { /* no number, of either sign */
        both.bits = -1;
    }
    return both.bits ^ (int32_t)(-(uint32_t)(both.bits < 0) >> 1); /* negative ones turned around */
}

//: endif
/* How far encoding has come. */
typedef struct {
    tiny_word *x;
    tiny_index bit, column;
//: if cut_apart
    tiny_index cut;
//: endif
//: if words
    int fault;
//: endif
} tiny_cursor;

//: if plain
/* A number: a bit for each of its thresholds. */
static inline void tiny_put(tiny_cursor *c, int32_t value)
{
    const tiny_index end = c->bit + @counts[0] ~ "u" if even else load ~ "(tiny_columns + c->column)"@;
    if (value == TINY_NO_NUMBER) {
        value = TINY_CUT(c->bit + c->column);
    }
    c->column++;
    for (; c->bit < end && value > TINY_CUT(c->bit + c->column); c->bit++) {
        tiny_set(c->x, c->bit);
    }
    c->bit = end;
}

//: endif
//: if not plain
#define TINY_NONE ((tiny_index)-1)

//: endif
//: if some_words
/* The bit of a category by its place, of TINY_OTHER or of TINY_MISSING. */
static inline tiny_index tiny_word_bit(tiny_cursor *c, tiny_index column, int32_t value)
{
    const tiny_index count = TINY_COUNT(column), first = c->bit;
    tiny_index bit = TINY_NONE;
    (void)column; /* where all columns are alike */
    c->bit += count;
    if ((uint32_t)value < count) {
        bit = first + (tiny_index)value;
    } else {
        c->fault |= (uint32_t)value - TINY_OTHER > 1u;
        if (TINY_OTHER_WORD(column)) {
            bit = c->bit;
        }
    }
    c->bit += TINY_OTHER_WORD(column);
    if (TINY_MISSING_WORD(column)) {
        if (value == TINY_MISSING) {
            bit = c->bit;
        }
        c->bit++;
    }
    return bit;
}

//: endif
//: if cut_apart
/* Sets the bits of the thresholds that a number is above; the bit of its bin or of
   TINY_NO_NUMBER. */
static inline tiny_index tiny_number_bit(
    tiny_cursor *c, tiny_index column, int32_t value@", int counts" if mixed else ""@)
{
    const tiny_index count = TINY_COUNT(column), first = c->bit;
    const int missing = value == TINY_NO_NUMBER;
    tiny_index i, bit = TINY_NONE;
    (void)column; /* where all columns are alike */
    if (!TINY_MISSING_NUMBER(column)) {
        if (missing) {
            value = TINY_CUT(c->cut);
        }
        c->cut++;
    }
    if (TINY_BINS(column)) {
        c->bit += count + (count > 1u); /* the second of two bins is the threshold */
    }
    for (i = 0; @"counts && " if mixed else ""@i < count && value > TINY_CUT(c->cut + i); i++) {
        tiny_set(c->x, c->bit + i);
    }
    if (TINY_BINS(column)) {
        bit = first + i;
    }
    c->cut += count;
    c->bit += count;
//: if both
    if (TINY_BOTH(column)) {
        for (; @"counts && " if mixed else ""@i < count && !(missing && TINY_MISSING_NUMBER(column)); i++) {
            tiny_set(c->x, c->bit + i);
        }
        c->bit += count;
    }
//: endif
    if (TINY_MISSING_NUMBER(column)) {
        if (missing) {
            bit = c->bit;
        }
        c->bit++;
    }
    return @"counts ? " if mixed else ""@bit@" : TINY_NONE" if mixed else ""@;
}

//: endif
//: if not plain
/* Sets the bits of the next column. */
static inline void tiny_put(tiny_cursor *c, int32_t value@", int counts" if mixed else ""@)
{
    const tiny_index column = TINY_COLUMN(c->column);
//: if forks
    const tiny_index bit = TINY_IS_WORDS(column) ? tiny_word_bit(c, column, value)
                                                 : tiny_number_bit(c, column, value@", counts" if mixed else ""@);
//: else
    const tiny_index bit = tiny_@"word" if some_words else "number"@_bit(c, column, value@", counts" if mixed else ""@);
//: endif
    c->column++;
    if (bit != TINY_NONE) {
        tiny_set(c->x, bit);
    }
}

//: endif
//: if mixed
/* A category by its place from 1 on or TINY_OTHER, or 0 where a number stands. */
static inline void tiny_put_either(tiny_cursor *c, int32_t value, @code@ word)
{
    const tiny_index column = TINY_COLUMN(c->column), count = TINY_COUNT(column);
    (void)column; /* where all columns are alike */
    c->column++;
    if (word == TINY_OTHER && !TINY_OTHER_WORD(column)) {
        value = TINY_NO_NUMBER; /* a word that means nothing here */
        word = 0;
    }
    if (word) {
        const tiny_index place = word == TINY_OTHER ? count : word - 1u;
        if (place < count + TINY_OTHER_WORD(column)) {
            tiny_set(c->x, c->bit + place);
        } else {
            c->fault = 1;
        }
    }
    c->bit += count + TINY_OTHER_WORD(column);
    tiny_put(c, value, !word);
}

//: endif
//: if alike
typedef char tiny_columns_are_alike[sizeof(tiny_row) == @columns|length@ * sizeof(@columns[0].type@) ? 1 : -1];

//: endif
/* The bits of a row; 0, or a negative code. */
static inline int tiny_encode(const tiny_row *row, tiny_bits *bits)
{
//: if alike
    const @columns[0].type@ *value = (const @columns[0].type@ *)(const void *)row;
//: endif
    tiny_cursor c;
    if (!row || !bits) {
        return TINY_NULL;
    }
    tiny_clear(bits->word, TINY_INPUTS);
//: include "constants.h"
    c.x = bits->word; /* one by one, so that no call of memset is made of it */
    c.bit = 0;
    c.column = 0;
//: if cut_apart
    c.cut = 0;
//: endif
//: if words
    c.fault = 0;
//: endif
//: if alike
    while (c.column < @columns|length@u) {
        tiny_put(&c, @"tiny_order(value[c.column])" if real else "value[c.column]"@);
    }
//: else
//: for column in columns
//: set value = "tiny_order(row->%s)" % column.field if column.kind == "real" else "row->" ~ column.field
//: if column.mixed
    tiny_put_either(&c, @value@, row->@column.word_field@);
//: else
    tiny_put(&c, @value@@", 1" if mixed else ""@);
//: endif
//: endfor
//: endif
//: if words
    return c.fault ? TINY_BAD_INPUT : 0;
//: else
    return 0;
//: endif
}
