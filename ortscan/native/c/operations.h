// The operations of format 1, by their numbers in plans.
#pragma once
#include <stdint.h>

enum {
  ADD = 0, SUB, MUL, DIV, MAX, MIN, GREATER, LESS, GREATER_OR_EQUAL, LESS_OR_EQUAL, EQUAL, MOD, POW,
  COPY = 16, NEG, ABS, SQRT, EXP, TANH, SIGMOID, LOG, RECIPROCAL, NOT, SOFTPLUS, RELU, ERF, FLOOR, CEIL, ROUND, SIGN, SIN, COS, ELU, LEAKY_RELU,
  HARD_SIGMOID, SOFTSIGN, GELU, CAST, TO_FLOAT16, TO_BFLOAT16,
  WHERE = 48, MUL_ADD, MUL_SUB, SUB_MUL, MUL_MUL_ADD, SELECT, MUL_MUL_SUB, LOG_ADD_EXP,
  SUM = 64, MEAN, REDUCE_MAX, REDUCE_MIN, SUM_OF_SQUARES, DOT,
  LAYER_NORM = 72, SOFTMAX, LOG_SOFTMAX, RMS_NORM,
  GEMM = 80, MATMUL,
  GATHER = 84, SCATTER, LOCATE,
  ARG_MAX = 88, ARG_MIN, TOP_K,
  OPERATIONS = 96
};

// All operations of a family have the same bounds and allowed strides.
typedef enum { UNKNOWN, ELEMENTWISE, COPYING, REDUCTION, NORMALIZATION, PRODUCT, INDEXED, SEARCH } family;

// The number of required operands (including the destination), the largest number, and a bit for each type.
typedef struct { uint8_t family, least, most, elements; } operation;

// The operand that an INDEXED operation indexes: the source, the destination, or -1 for neither. It has an additional axis of M elements, N apart.
static inline int indexed_operand(int32_t op) { return op == GATHER ? 1 : op == SCATTER ? 0 : -1; }
static inline int holds_indices(int32_t op, int k) { return k == 2 && (op == GATHER || op == SCATTER); }

// Return the properties of an operation; its family is UNKNOWN if this library has no kernel for it.
operation operation_of(int32_t op);
