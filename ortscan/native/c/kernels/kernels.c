// The kernels, compiled once for each instruction set with -DISA=its name. No fast-math: Add, Mul, ... round as onnxruntime's do.
#include "../micro.h"
#include <math.h>

#define INLINE static inline __attribute__((always_inline))
#define RARE static __attribute__((noinline, cold))
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#define PLAIN_LOOP _Pragma("clang loop unroll(disable) vectorize(disable)")
#else
#define UNROLLED
#define PLAIN_LOOP
#endif
#if defined(__AVX512F__)
#define MOST_LANES 64
#define W MOST_LANES
#include "lanes.inc"
#include "functions.inc"
#undef W
#endif
#define W 16
#include "lanes.inc"
#include "functions.inc"
#undef W
#define W 8
#include "lanes.inc"
#include "functions.inc"
#undef W
#define W 4
#include "lanes.inc"
#include "functions.inc"
#undef W
#define W 1
#include "lanes.inc"
#include "functions.inc"
#undef W

// Load the first 1 to 3 numbers; the other lanes are 0.
static inline floats4 load_some(const float *p, int count) {
  floats4 v = {p[0]};
  if (count > 1) v[1] = p[1];
  if (count > 2) v[2] = p[2];
  return v;
}
static inline void store_some(float *p, floats4 v, int count) {
  p[0] = v[0];
  if (count > 1) p[1] = v[1];
  if (count > 2) p[2] = v[2];
}
static inline floats4 load_some_of(floats4 v, int count) {
  float x[4];
  store4(x, v);
  return load_some(x, count);
}
static const float zeros[16];

#include "elementwise.inc"
#include "reductions.inc"
#include "products.inc"
#include "steps.inc"
#define W 4
#include "short.inc"
#undef W
#define W 8
#include "short.inc"
#undef W
#define W 16
#include "short.inc"
#undef W
#include "cells.inc"

#define T int32_t
#define U uint32_t
#define SUFFIX i32
#define LOWEST INT32_MIN
#define HIGHEST INT32_MAX
#include "typed.inc"
#include "integers.inc"
#define T int64_t
#define U uint64_t
#define SUFFIX i64
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX
#include "typed.inc"
#include "integers.inc"
#define T double
#define U double
#define SUFFIX f64
#define LOWEST -__builtin_inf()
#define HIGHEST __builtin_inf()
#include "typed.inc"
#include "doubles.inc"
#include "casts.inc"

// Functions from the C library, which onnxruntime calls too.
#define CALLED(name, CALL) \
  static void name(const task *t, void *const *p) { \
    float *d = p[0]; \
    const float *a = p[1], *b = p[2]; \
    for (int r = 0; r < t->n1; r++, d += t->s1[0], a += t->s1[1], b += t->s1[2]) \
      for (ptrdiff_t i = 0; i < t->n0; i++) d[i * t->s0[0]] = CALL(a[i * t->s0[1]], b[i * t->s0[2]]); \
  }
CALLED(pow_rows, powf)
CALLED(mod_rows, fmodf)

#define NUMBERS_TOO
#define T float
#define U float
#define SUFFIX f32
#include "indexed.inc"
#define T int32_t
#define U uint32_t
#define SUFFIX i32
#include "indexed.inc"
#define T int64_t
#define U uint64_t
#define SUFFIX i64
#include "indexed.inc"
#define T double
#define U double
#define SUFFIX f64
#include "indexed.inc"
#undef NUMBERS_TOO
#define T uint8_t
#define SUFFIX b8
#include "indexed.inc"
#define FOUND_BY_INDEX(k) [GATHER] = gather_##k, [SCATTER] = scatter_##k,
#define SEARCHED(k) FOUND_BY_INDEX(k) [ARG_MAX] = arg_max_##k, [ARG_MIN] = arg_min_##k, [TOP_K] = top_##k,

#define NUMBERS(k) \
  [ADD] = add_##k, [SUB] = sub_##k, [MUL] = mul_##k, [DIV] = div_##k, [MAX] = max_##k, [MIN] = min_##k, [GREATER] = greater_##k, [LESS] = less_##k, \
  [GREATER_OR_EQUAL] = greater_or_equal_##k, [LESS_OR_EQUAL] = less_or_equal_##k, [EQUAL] = equal_##k, [COPY] = copy_##k, [NEG] = neg_##k, \
  [ABS] = abs_##k, [NOT] = not_##k, [RELU] = relu_##k, [SIGN] = sign_##k, [WHERE] = where_##k, [SELECT] = select_##k, [MUL_ADD] = mul_add_##k, [MUL_SUB] = mul_sub_##k, \
  [SUB_MUL] = sub_mul_##k, [MUL_MUL_ADD] = mul_mul_add_##k, [MUL_MUL_SUB] = mul_mul_sub_##k, [SUM] = sum_##k, [REDUCE_MAX] = highest_##k, [REDUCE_MIN] = lowest_##k,

#define STEPS_OF(k) [GRU_STEP] = {gru_usual_##k, gru_any_##k}, [GRU_LINEAR_STEP] = {gru_linear_usual_##k, gru_linear_any_##k}, [LSTM_STEP] = {lstm_usual_##k, lstm_any_##k}

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define NAMED_(x) isa_##x
#define NAMED(x) NAMED_(x)
const isa NAMED(ISA) = {TEXT(ISA), {[F32] = {
  [ADD] = add_rows, [SUB] = sub_rows, [MUL] = mul_rows, [DIV] = div_rows, [MAX] = max_rows, [MIN] = min_rows, [GREATER] = greater_rows,
  [LESS] = less_rows, [GREATER_OR_EQUAL] = greater_or_equal_rows, [LESS_OR_EQUAL] = less_or_equal_rows, [EQUAL] = equal_rows,
  [COPY] = copy_any, [NEG] = neg_rows, [ABS] = abs_rows, [SQRT] = root_rows, [EXP] = exp_rows, [TANH] = tanh_rows, [SIGMOID] = sigmoid_rows,
  [LOG] = log_rows, [RECIPROCAL] = reciprocal_rows, [NOT] = not_rows, [SOFTPLUS] = softplus_rows, [RELU] = relu_rows, [ERF] = erf_rows,
  [FLOOR] = floor_rows, [CEIL] = ceil_rows, [ROUND] = round_rows, [SIGN] = sign_rows, [ELU] = elu_rows, [LEAKY_RELU] = leaky_relu_rows,
  [HARD_SIGMOID] = hard_sigmoid_rows, [SOFTSIGN] = softsign_rows, [GELU] = gelu_rows, [SIN] = sin_rows, [COS] = cos_rows,
  [TO_FLOAT16] = to_float16_rows, [TO_BFLOAT16] = to_bfloat16_rows,
  [WHERE] = where_rows, [SELECT] = select_rows, [MUL_ADD] = mul_add_rows, [MUL_SUB] = mul_sub_rows, [SUB_MUL] = sub_mul_rows, [MUL_MUL_ADD] = mul_mul_add_rows,
  [MUL_MUL_SUB] = mul_mul_sub_rows, [LOG_ADD_EXP] = log_add_exp_rows,
  [SUM] = sum_rows, [MEAN] = mean_rows, [REDUCE_MAX] = highest_rows, [REDUCE_MIN] = lowest_rows, [SUM_OF_SQUARES] = sum_of_squares_rows,
  [DOT] = dot_rows, [LAYER_NORM] = layer_norm_rows, [SOFTMAX] = softmax_rows, [LOG_SOFTMAX] = log_softmax_rows, [RMS_NORM] = rms_norm_rows,
  [POW] = pow_rows, [MOD] = mod_rows, [GEMM] = gemm_rows, [MATMUL] = matmul_rows, SEARCHED(f32)
}, [I32] = {NUMBERS(i32) [MOD] = mod_i32, [MATMUL] = matmul_i32, SEARCHED(i32)
}, [I64] = {NUMBERS(i64) [MOD] = mod_i64, [MATMUL] = matmul_i64, SEARCHED(i64) [LOCATE] = locate,
}, [F64] = {NUMBERS(f64) [POW] = pow_f64, [MOD] = mod_f64, [SIN] = sin_f64, [COS] = cos_f64, [SQRT] = root_f64, [RECIPROCAL] = reciprocal_f64, [FLOOR] = floor_f64, [CEIL] = ceil_f64, [ROUND] = round_f64,
  [MEAN] = mean_f64, [SUM_OF_SQUARES] = sum_of_squares_f64, [DOT] = dot_f64, [MATMUL] = matmul_f64, SEARCHED(f64)
}, [B8] = {[COPY] = copy_b8, FOUND_BY_INDEX(b8)}}, {
  [F32] = {copy_any, f32_of_i32, f32_of_i64, f32_of_f64, f32_of_b8},
  [I32] = {i32_of_f32, copy_i32, i32_of_i64, i32_of_f64, i32_of_b8},
  [I64] = {i64_of_f32, i64_of_i32, copy_i64, i64_of_f64, i64_of_b8},
  [F64] = {f64_of_f32, f64_of_i32, f64_of_i64, copy_f64, f64_of_b8},
  [B8] = {b8_of_f32, b8_of_i32, b8_of_i64, b8_of_f64, copy_b8},
}, {run_list, run_rows_of_4, run_rows_of_8, run_rows_of_16}, {
  [FLOAT_WEIGHTS] = {[RNN_STEP] = {rnn_usual_f32, rnn_any_f32}, STEPS_OF(f32)},
  [INT8_WEIGHTS] = {STEPS_OF(i8)}, [FLOAT16_WEIGHTS] = {STEPS_OF(f16)}, [BFLOAT16_WEIGHTS] = {STEPS_OF(bf16)},
}, {[FLOAT_WEIGHTS] = widen_f32, [INT8_WEIGHTS] = widen_i8, [FLOAT16_WEIGHTS] = widen_f16, [BFLOAT16_WEIGHTS] = widen_bf16,
}, FAST_CELLS};
