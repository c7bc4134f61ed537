//: if line
//: if not two
/* The scores as votes have them. */
//: if leads
static inline void tiny_to_votes(const tiny_row *row, tiny_score *score)
//: else
static inline void tiny_to_votes(tiny_score *score)
//: end
{
    tiny_index net;
//: if leads
    tiny_score first = 0;
    (void)tiny_first(row, &first);
//: end
    for (net = 0; net < TINY_CLASSES; net++) {
        score[net] = @to_votes@;
    }
}

//: end
/* The class of a row: from 0 on, or a negative code. */
static inline int tiny_predict(const tiny_row *row)
{
//: if two
    tiny_score score = 0;
    const int code = tiny_line(row, &score);
    return code ? code : score < 0;
//: else
    tiny_score score[TINY_CLASSES];
    const int code = tiny_line(row, score);
    if (code) {
        return code;
    }
//: if not leads
    tiny_to_votes(score);
//: end
    return tiny_best(score);
//: end
}

/* The same, and the probability of each class in parts of 65535. */
static inline int tiny_proba(const tiny_row *row, uint16_t *proba)
{
//: if two
    tiny_score score = 0;
    const int code = proba ? tiny_line(row, &score) : TINY_NULL;
    return code ? code : tiny_chances_of(@to_votes@, proba);
//: else
    tiny_score score[TINY_CLASSES];
    const int code = proba ? tiny_line(row, score) : TINY_NULL;
    if (code) {
        return code;
    }
//: if leads
    tiny_to_votes(row, score);
//: else
    tiny_to_votes(score);
//: end
    return tiny_chances_of(score, proba);
//: end
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
//: end

/* The name of a class, a null pointer if there is none. */
static inline const char *tiny_label(int number)
{
    static const char *const labels[TINY_CLASSES] = {@labels@};
    return number >= 0 && number < TINY_CLASSES ? labels[number] : 0;
}
