static int best(const tiny_row *row)
{
    static const int8_t w[] = {@weights|numbers@};
    static const int32_t b[] = {@bias|numbers@};
//: if count
    static const int16_t middle[] = {@middle|numbers@};
    static const @"int32_t" if factor.max() > 32767 else "int16_t"@ factor[] = {@factor|numbers@};
//: endif
//: if sizes
    static const @"uint8_t" if n < 256 else "uint16_t"@ first[] = {@first|numbers@};
    static const uint8_t count[] = {@sizes|numbers@};
//: endif
    int16_t x[@n@];
    int c, i, answer = 0;
    int32_t most = 0;
//: if count
    for (i = 0; i < @count@; i++) {
        x[i] = (int16_t)(@"row->n[i] == %d ? 0 : " % missing if has_missing else ""@((row->n[i] - middle[i]) * factor[i] >> @shift@));
    }
//: endif
//: if sizes
    for (i = @count@; i < @n@; i++) {
        x[i] = 0;
    }
    for (i = 0; i < @sizes|length@; i++) {
        if (row->w[i] < count[i]) {
            x[first[i] + row->w[i]] = @unit@;
        }
    }
//: endif
    for (c = 0; c < @bias|length@; c++) {
        int32_t sum = b[c];
        for (i = 0; i < @n@; i++) {
            sum += w[c * @n@ + i] * x[i];
        }
        if (@bias|length@ == 1) return sum > 0;
        if (c == 0 || sum > most) {
            most = sum;
            answer = c;
        }
    }
    return answer;
}
