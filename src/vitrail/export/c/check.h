#if defined(TINY_MAIN) && !defined(TINY_CHECK)
#define TINY_CHECK
#endif
#if defined(TINY_MAIN) && !defined(TINY_CSV)
#define TINY_CSV
#endif

#ifdef TINY_CHECK
/* Rows with the answers and probabilities that they have in Python. */
//: if not_a_number
#include <math.h> /* NAN */
//: endif
#define TINY_GOLDEN @rows|length@u
static const tiny_row tiny_golden_rows[TINY_GOLDEN] TINY_FLASH = {
//: for row in rows
    @row@@"" if loop.last else ","@
//: endfor
};
@table(answer_type, "tiny_golden_answers", answers.numbers.tolist())@
@table("uint16_t", "tiny_golden_proba", answers.probabilities.flatten().tolist())@

/* How many of the rows above get another answer or other probabilities here. */
static inline unsigned tiny_check(void)
{
    unsigned i, c, wrong = 0;
    for (i = 0; i < TINY_GOLDEN; i++) {
        const tiny_row *row = tiny_golden_rows + i;
        uint16_t proba[TINY_CLASSES] = {0};
        int same, answer;
        TINY_NEAR(tiny_row, row);
        answer = (int)@read(answer_type, "tiny_golden_answers + i")@;
        same = tiny_predict(row) == answer && tiny_proba(row, proba) == answer;
        for (c = 0; c < TINY_CLASSES; c++) {
            same = same && proba[c] == TINY_LOAD16(tiny_golden_proba + i * TINY_CLASSES + c);
        }
        wrong += !same;
    }
    return wrong;
}
#endif

#ifdef TINY_CSV
/* Reads a table and answers its rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TINY_COLUMNS @names|length@
static const char *const tiny_names[TINY_COLUMNS] = {
    @names|map("string")|join(",\n    ")@
};
//: if words
static const char *const tiny_categories[] = {
    @(categories or [""])|map("string")|join(",\n    ")@
};
//: endif

/* The classes as cells spell them. */
static const char *const tiny_targets[TINY_CLASSES] = {
    @labels|map("string")|join(",\n    ")@
};

#define TINY_CELL 65536u /* bytes of a cell and its end */

/* Skips a byte order mark at the beginning of a file; if only a part of one is there, it is the
   beginning of a cell. How many bytes these are. */
static inline unsigned tiny_begin(FILE *in, char *cell)
{
    static const unsigned char mark[] = {0xef, 0xbb, 0xbf};
    unsigned i;
    for (i = 0; i < sizeof mark; i++) {
        const int c = getc(in);
        if (c != mark[i]) {
            ungetc(c, in);
            return i;
        }
        cell[i] = (char)c;
    }
    return 0;
}

/* Goes to the next line that is not empty; 0 if there is none. */
static inline int tiny_next(FILE *in)
{
    int c;
    do {
        c = getc(in);
    } while (c == '\n' || c == '\r');
    return ungetc(c, in) != EOF;
}

static inline int tiny_is_blank(int c)
{
    return @is_blank@;
}

/* Reads a cell, of which some bytes may be there, without quotes and without blanks around it.
   Its letter 0 becomes two bytes, as in tiny_categories. What follows the cell: a comma or not;
   `cut` says whether it is too long to be kept. */
static inline int tiny_cell(FILE *in, char *cell, unsigned size, int *cut)
{
    int c = getc(in);
    int quoted = c == '"' && !size;
    if (quoted) {
        c = getc(in);
    }
    *cut = 0;
    for (; c != EOF; c = getc(in)) {
        if (quoted && c == '"') {
            c = getc(in);
            quoted = c == '"'; /* two stand for one */
        }
        if (c == EOF || (!quoted && (c == ',' || c == '\n' || c == '\r'))) {
            break;
        }
        if (size + 2 >= TINY_CELL) {
            *cut = 1;
        } else if (size || !tiny_is_blank(c)) {
            if (!c) {
                cell[size++] = (char)0xc0;
            }
            cell[size++] = (char)(c ? c : 0x80);
        }
    }
    while (size && tiny_is_blank(cell[size - 1])) {
        size--;
    }
    cell[size] = 0;
    return c == ',';
}

static inline int tiny_same(const char *cell, const char *word)
{
    for (; *cell && *word; cell++, word++) {
        if (*cell != *word && !(*cell >= 'A' && *cell <= 'Z' && *cell + 'a' - 'A' == *word)) {
            return 0;
        }
    }
    return *cell == *word;
}

static inline int tiny_is_missing(const char *cell)
{
    static const char *const spellings[] = {@missing_words|map("string")|join(", ")@};
    unsigned i;
    for (i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        if (tiny_same(cell, spellings[i])) {
            return 1;
        }
    }
    return 0;
}

/* Whether a cell holds a number. */
static inline int tiny_number(const char *cell, double *value)
{
    const char *word = cell + (*cell == '+' || *cell == '-');
    char *end;
    if (tiny_same(cell, "true") || tiny_same(cell, "false")) {
        *value = tiny_same(cell, "true");
        return 1;
    }
    if (!tiny_same(word, "inf") && !tiny_same(word, "infinity") &&
        (!*cell || strspn(cell, "0123456789.eE+-") < strlen(cell))) {
        return 0;
    }
    *value = strtod(cell, &end);
    return !*end;
}

//: if numbers
/* Whether a cell that is no number may be one to people, such as 1,234 or 5 kg: a digit comes
   before all letters. Write it plainly. */
static inline int tiny_is_odd(const char *cell)
{
    while (*cell && !(*cell >= 'A' && *cell <= 'Z') && !(*cell >= 'a' && *cell <= 'z') &&
           !(*cell >= '0' && *cell <= '9')) {
        cell++;
    }
    return *cell >= '0' && *cell <= '9';
}

//: endif
//: if words
static inline unsigned tiny_find(const char *cell, unsigned first, unsigned count)
{
    unsigned i;
    for (i = 0; i < count; i++) {
        if (!strcmp(cell, tiny_categories[first + i])) {
            return i;
        }
    }
    return TINY_OTHER;
}

//: endif
/* Puts a cell into its place in a row; 0, or a negative code. */
static inline int tiny_read(tiny_row *row, int column, const char *cell)
{
    const int missing = tiny_is_missing(cell);
//: if numbers
    double value = 0;
    int number = !missing && tiny_number(cell, &value);
//: endif
//: if bits
    if (!number || value < @low@ || value > @high@) {
        return TINY_BAD_INPUT;
    }
    row->x[column] = (@type@)value;
    return (double)row->x[column] == value ? 0 : TINY_BAD_INPUT; /* not whole */
//: else
//: set places = namespace(first=0)
    switch (column) {
//: for column in columns
//: set found = "tiny_find(cell, %d, %d)" % (places.first, column.code.categories|length)
//: set places.first = places.first + column.code.categories|length
    case @loop.index0@:
//: if column.kind == "word"
        row->@column.field@ = (@code@)(missing ? (unsigned)TINY_MISSING : @found@);
//: else
//: set bare = column.code.spelling.accepts("")
//: if not bare
        number = 0; /* one has a unit here */
//: endif
//: if column.mixed
        if (!missing && !number) {
            const unsigned found = @found@;
            if (found != TINY_OTHER || !tiny_is_odd(cell)) {
                row->@column.word_field@ = (@code@)(found == TINY_OTHER ? found : found + 1u);
                return 0;
            }
        }
//: endif
        if (!missing@" && !number" if bare and column.code.spelling.decimal == "." else ""@ && tiny_is_odd(cell)) {
            return TINY_BAD_INPUT;
        }
//: if column.kind == "whole"
        value = value > 2147483647.0 ? 2147483647.0 : value;
        value = value < -2147483647.0 ? -2147483647.0 : value;
        if ((double)(int32_t)value != value) {
            return TINY_BAD_INPUT; /* not whole */
        }
        row->@column.field@ = number ? (int32_t)value : TINY_NO_NUMBER;
//: else
        value = value > 3.402823466e38 ? 3.402823466e38 : value;
        value = value < -3.402823466e38 ? -3.402823466e38 : value;
        row->@column.field@ = number ? (float)value : strtof("nan", 0);
//: endif
//: endif
        return 0;
//: endfor
    default:
        return TINY_BAD_INPUT;
    }
//: endif
}

/* Answers the rows of a table with a header, one line each: the class, then the probabilities; or a
   negative code. Returns how many rows were answered as the column `@target|comment or "none"@` says, or -1 if
   a column is not there. */
static inline long tiny_csv(FILE *in, FILE *out, long *rows)
{
    static char cell[TINY_CELL];
    int place[TINY_COLUMNS], columns = 0, target = -1, more = 1, cut, c;
    long right = 0;
    unsigned begun = tiny_begin(in, cell);
    *rows = 0;
    for (c = 0; c < TINY_COLUMNS; c++) {
        place[c] = -1;
    }
    if (!begun && !tiny_next(in)) {
        return 0;
    }
    for (; more; columns++) {
        more = tiny_cell(in, cell, begun, &cut);
        begun = 0;
        for (c = 0; c < TINY_COLUMNS; c++) {
            place[c] = strcmp(cell, tiny_names[c]) ? place[c] : columns;
        }
        target = strcmp(cell, @target|string@) ? target : columns;
    }
    for (c = 0; c < TINY_COLUMNS; c++) {
        if (place[c] < 0) {
            fprintf(stderr, "the table has no column %s\n", tiny_names[c]);
            return -1;
        }
    }
    while (tiny_next(in)) {
        tiny_row row;
        uint16_t proba[TINY_CLASSES];
        int answer = 0, label = -1, at;
        memset(&row, 0, sizeof row);
        for (more = 1, at = 0; more; at++) {
            more = tiny_cell(in, cell, 0, &cut);
            for (c = 0; c < TINY_COLUMNS; c++) {
                if (place[c] == at && (cut || tiny_read(&row, c, cell))) {
                    answer = TINY_BAD_INPUT;
                }
            }
            for (c = 0; at == target && c < TINY_CLASSES; c++) {
                label = strcmp(cell, tiny_targets[c]) ? label : c;
            }
        }
        answer = at != columns ? TINY_BAD_INPUT : answer ? answer : tiny_proba(&row, proba);
        fprintf(out, "%d", answer);
        for (c = 0; answer >= 0 && c < TINY_CLASSES; c++) {
            fprintf(out, ",%u", (unsigned)proba[c]);
        }
        fprintf(out, "\n");
        right += answer >= 0 && answer == label;
        ++*rows;
    }
    return right;
}
#endif

#ifdef TINY_MAIN
/* Checks the rows with known answers, then answers a table on standard input. */
int main(void)
{
    const unsigned wrong = tiny_check();
    long rows, right;
    fprintf(stderr, "%u of %u known answers agree\n", TINY_GOLDEN - wrong, TINY_GOLDEN);
    right = tiny_csv(stdin, stdout, &rows);
    if (rows) {
        fprintf(stderr, "%ld of %ld rows answered as their label says\n", right, rows);
    }
    return wrong || right < 0;
}
#endif
