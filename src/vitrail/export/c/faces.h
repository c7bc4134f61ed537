//: if form
//: if form != "two"
/* The scores as votes have them. */
//: if form == "leads"
static inline void tiny_to_votes(const tiny_row *row, tiny_score *score)
//: else
static inline void tiny_to_votes(tiny_score *score)
//: endif
{
    tiny_index net;
//: if form == "leads"
    tiny_score first = 0;
    (void)tiny_first(row, &first);
//: endif
    for (net = 0; net < TINY_CLASSES; net++) {
        score[net] = @to_votes@;
    }
}

//: endif
/* The class of a row: from 0 on, or a negative code. */
static inline int tiny_predict(const tiny_row *row)
{
//: if form == "two"
    tiny_score score = 0;
    const int code = tiny_linear(row, &score);
    return code ? code : score < 0;
//: else
    tiny_score score[TINY_CLASSES];
    const int code = tiny_linear(row, score);
    if (code) {
        return code;
    }
//: if form != "leads"
    tiny_to_votes(score);
//: endif
    return tiny_best(score);
//: endif
}

/* The same, and the probability of each class in parts of 65535. */
static inline int tiny_proba(const tiny_row *row, uint16_t *proba)
{
//: if form == "two"
    tiny_score score = 0;
    const int code = proba ? tiny_linear(row, &score) : TINY_NULL;
    return code ? code : tiny_proba_of(@to_votes@, proba);
//: else
    tiny_score score[TINY_CLASSES];
    const int code = proba ? tiny_linear(row, score) : TINY_NULL;
    if (code) {
        return code;
    }
//: if form == "leads"
    tiny_to_votes(row, score);
//: else
    tiny_to_votes(score);
//: endif
    return tiny_proba_of(score, proba);
//: endif
}
//: else
/* The class of a row: from 0 on, or a negative code. */
static inline int tiny_predict(const tiny_row *row)
{
    tiny_bits bits;
    const int code = tiny_encode(row, &bits);
    return code ? code : tiny_predict_bits(&bits);
}

/* The same, and the probability of each class in parts of 65535. */
static inline int tiny_proba(const tiny_row *row, uint16_t *proba)
{
    tiny_bits bits;
    const int code = tiny_encode(row, &bits);
    return code ? code : tiny_proba_bits(&bits, proba);
}
//: endif
