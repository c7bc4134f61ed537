/* The class of a row: from 0 on, or a negative code. */
static inline int tiny_predict(const tiny_row *row)
{
    tiny_bits bits;
    const int code = tiny_encode(row, &bits);
    return code ? code : tiny_predict_bits(&bits);
}

/* The same, and the chance of each class in parts of 65535. */
static inline int tiny_proba(const tiny_row *row, uint16_t *proba)
{
    tiny_bits bits;
    const int code = tiny_encode(row, &bits);
    return code ? code : tiny_proba_bits(&bits, proba);
}

/* The name of a class, a null pointer if there is none. */
static inline const char *tiny_label(int number)
{
    static const char *const labels[TINY_CLASSES] = {@labels@};
    return number >= 0 && number < TINY_CLASSES ? labels[number] : 0;
}
