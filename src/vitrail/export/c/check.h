#if defined(TINY_MAIN) && !defined(TINY_CHECK)
#define TINY_CHECK
#endif
#if defined(TINY_MAIN) && !defined(TINY_CSV)
#define TINY_CSV
#endif

#ifdef TINY_CHECK
/* Rows with the answers and chances that they have in Python. */
//: if not_a_number
#include <math.h> /* NAN */
//: end
#define TINY_GOLDEN @golden@u
static const tiny_row tiny_golden_rows[TINY_GOLDEN] TINY_FLASH = {
@rows@
};
@answers@
@chances@

/* How many of the rows above get another answer or other chances here. */
static inline unsigned tiny_check(void)
{
    unsigned i, c, wrong = 0;
    for (i = 0; i < TINY_GOLDEN; i++) {
        const tiny_row *row = tiny_golden_rows + i;
        uint16_t proba[TINY_CLASSES] = {0};
        int same, answer;
        TINY_NEAR(tiny_row, row);
        answer = (int)@load_answer@(tiny_golden_answers + i);
        same = tiny_predict(row) == answer && tiny_proba(row, proba) == answer;
        for (c = 0; c < TINY_CLASSES; c++) {
            same = same && proba[c] == TINY_LOAD16(tiny_golden_chances + i * TINY_CLASSES + c);
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

#define TINY_COLUMNS @num_columns@
static const char *const tiny_names[TINY_COLUMNS] = {
    @names@
};
//: if words
static const char *const tiny_categories[] = {
    @categories@
};
//: end

/* Takes the next cell out of a line, without quotes and without blanks around it. */
static inline char *tiny_cell(char **line, int *more)
{
    char *from = *line, *to, *cell, *end;
    while (*from == ' ' || *from == '\t') {
        from++;
    }
    cell = to = from;
    if (*from == '"') {
        for (from++; *from; from++) {
            if (*from == '"' && from[1] != '"') {
                from++;
                break;
            }
            from += *from == '"';
            *to++ = *from;
        }
    }
    while (*from && *from != ',' && *from != '\n' && *from != '\r') {
        *to++ = *from++;
    }
    *more = *from == ',';
    *line = from + (*from != 0);
    for (end = to; end > cell && (end[-1] == ' ' || end[-1] == '\t'); end--) {
    }
    *end = 0;
    while (*cell == ' ' || *cell == '\t') {
        cell++;
    }
    return cell;
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
    static const char *const spellings[] = {@missing@};
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
/* Whether a cell that is no number is one to people, such as 1,234 or 5 kg: write it plainly. */
static inline int tiny_is_odd(const char *cell)
{
    const int letter = (*cell >= 'A' && *cell <= 'Z') || (*cell >= 'a' && *cell <= 'z');
    return !letter && strpbrk(cell, "0123456789") != 0;
}

//: end
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

//: end
/* Puts a cell into its place in a row; 0, or a negative code. */
static inline int tiny_read(tiny_row *row, int column, const char *cell)
{
    const int missing = tiny_is_missing(cell);
//: if numbers
    double value = 0;
    const int number = !missing && tiny_number(cell, &value);
//: end
@read@
}

/* Answers the rows of a table with a header, one line each: the class, then the chances; or a
   negative code. Returns how many rows were answered as the column `@target_name@` says, or -1 if
   a column is not there. */
static inline long tiny_csv(FILE *in, FILE *out, long *rows)
{
    static char text[1 << 16];
    int place[TINY_COLUMNS], columns = 0, target = -1, more = 1, c;
    long right = 0;
    char *line = text;
    *rows = 0;
    for (c = 0; c < TINY_COLUMNS; c++) {
        place[c] = -1;
    }
    if (!fgets(text, sizeof text, in)) {
        return 0;
    }
    for (; more; columns++) {
        const char *name = tiny_cell(&line, &more);
        for (c = 0; c < TINY_COLUMNS; c++) {
            place[c] = strcmp(name, tiny_names[c]) ? place[c] : columns;
        }
        target = strcmp(name, @target@) ? target : columns;
    }
    for (c = 0; c < TINY_COLUMNS; c++) {
        if (place[c] < 0) {
            fprintf(stderr, "the table has no column %s\n", tiny_names[c]);
            return -1;
        }
    }
    while (fgets(text, sizeof text, in)) {
        tiny_row row;
        uint16_t proba[TINY_CLASSES];
        const char *label = "";
        int answer = 0, at;
        memset(&row, 0, sizeof row);
        for (line = text, more = 1, at = 0; more; at++) {
            const char *cell = tiny_cell(&line, &more);
            label = at == target ? cell : label;
            for (c = 0; c < TINY_COLUMNS; c++) {
                if (place[c] == at && tiny_read(&row, c, cell)) {
                    answer = TINY_BAD_INPUT;
                }
            }
        }
        answer = at != columns ? TINY_BAD_INPUT : answer ? answer : tiny_proba(&row, proba);
        fprintf(out, "%d", answer);
        for (c = 0; answer >= 0 && c < TINY_CLASSES; c++) {
            fprintf(out, ",%u", (unsigned)proba[c]);
        }
        fprintf(out, "\n");
        right += answer >= 0 && target >= 0 && !strcmp(label, tiny_label(answer));
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
