// The kernels, compiled once for each instruction set with -DISA=its name. No fast-math: Add, Mul, ... round as onnxruntime's do.
#include "../task.h"

#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#define PLAIN_LOOP _Pragma("clang loop unroll(disable) vectorize(disable)")
#else
#define UNROLLED
#define PLAIN_LOOP
#endif
#define W 16
#include "lanes.inc"
#include "functions.inc"
#undef W
#define W 4
#include "lanes.inc"
#include "functions.inc"
#undef W

// The first 1 to 3 numbers; the lanes that are left are 0.
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

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define NAMED_(x) isa_##x
#define NAMED(x) NAMED_(x)
const isa NAMED(ISA) = {TEXT(ISA), {
  [ADD] = add_rows, [SUB] = sub_rows, [MUL] = mul_rows, [DIV] = div_rows, [MAX] = max_rows, [MIN] = min_rows, [GREATER] = greater_rows,
  [LESS] = less_rows, [GREATER_OR_EQUAL] = greater_or_equal_rows, [LESS_OR_EQUAL] = less_or_equal_rows, [EQUAL] = equal_rows,
  [COPY] = copy_any, [NEG] = neg_rows, [ABS] = abs_rows, [SQRT] = root_rows, [EXP] = exp_rows, [TANH] = tanh_rows, [SIGMOID] = sigmoid_rows,
  [LOG] = log_rows, [RECIPROCAL] = reciprocal_rows, [NOT] = not_rows, [SOFTPLUS] = softplus_rows, [RELU] = relu_rows, [ERF] = erf_rows,
  [FLOOR] = floor_rows, [CEIL] = ceil_rows, [ROUND] = round_rows, [SIGN] = sign_rows, [ELU] = elu_rows, [LEAKY_RELU] = leaky_relu_rows,
  [HARD_SIGMOID] = hard_sigmoid_rows, [SOFTSIGN] = softsign_rows, [GELU] = gelu_rows,
  [WHERE] = where_rows, [MUL_ADD] = mul_add_rows, [MUL_SUB] = mul_sub_rows, [SUB_MUL] = sub_mul_rows, [MUL_MUL_ADD] = mul_mul_add_rows,
  [SUM] = sum_rows, [MEAN] = mean_rows, [REDUCE_MAX] = highest_rows, [REDUCE_MIN] = lowest_rows, [SUM_OF_SQUARES] = sum_of_squares_rows,
  [DOT] = dot_rows, [LAYER_NORM] = layer_norm_rows, [SOFTMAX] = softmax_rows, [LOG_SOFTMAX] = log_softmax_rows, [RMS_NORM] = rms_norm_rows,
  [GEMM] = gemm_rows, [MATMUL] = matmul_rows,
}};
