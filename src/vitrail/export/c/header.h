/*
 * Made by `vitrail export` from a trained model; change the model, not this file.
 *
 * @bits@ one-bit weights in @networks@ networks; classes @classes|map("comment")|join(", ")@
 *
 *   tiny_predict(&row)         the class of a row, or a negative code
 *   tiny_proba(&row, proba)    the same, and each class's probability in parts of 65535
 *   tiny_encode(&row, &bits)   the bits of a row, for tiny_predict_bits, tiny_proba_bits
 *   tiny_label(number)         the name of a class
 *
 * Define TINY_CHECK for tiny_check(), which counts wrong answers to rows that have known
 * ones; TINY_MAIN for a program that does so and answers a CSV table on standard input.
//: if record
 *
 * The record of its training:
//: for line in record
 * @line@
//: endfor
//: endif
 */
#ifndef TINY_H
#define TINY_H

@body@

#endif
