//: set width = (2 * bits|length + 7) // 8
static int best(const tiny_row *row)
{
    static const uint8_t clauses[] = {@masks|numbers@};
    static const uint8_t votes[] = {@votes|numbers@};
//: for name, pairs in tests.items()
    static const uint8_t @name@[] = {@pairs|map("first")|list|numbers@};
    static const int16_t @name@_cut[] = {@pairs|map("last")|list|numbers@};
//: endfor
    const uint8_t *clause = clauses;
    uint8_t x[@width@] = {0};
    int c, i, j, k, most = 0, answer = -1;
//: for name, pairs in tests.items()
    for (i = 0; i < @pairs|length@; i++) {
//: if name == "number"
        j = 2 * (i + 0) + !(row->n[number[i]] > number_cut[i]);
//: else
        j = 2 * (i + @bits|length - pairs|length@) + !(row->w[word[i]] == word_cut[i]);
//: endif
        x[j >> 3] = (uint8_t)(x[j >> 3] | 1 << (j & 7));
    }
//: endfor
    for (c = 0; c < @votes|length // 2@; c++) {
        int sum = 0;
        for (k = 0; k < 2; k++) {
            for (j = votes[2 * c + k]; j; j--) {
                int misses = 0;
                for (i = 0; i < @width@; i++) misses |= *clause++ & ~x[i];
                if (!misses) sum += k ? -1 : 1;
            }
        }
        if (answer < 0 || sum > most) {
            most = sum;
            answer = c;
        }
    }
    return answer;
}
