/* The name of a class, a null pointer if there is none. */
static inline const char *tiny_label(int number)
{
    static const char *const labels[TINY_CLASSES] = {@labels|map("string")|join(", ")@};
    return number >= 0 && number < TINY_CLASSES ? labels[number] : 0;
}
