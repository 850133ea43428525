// The arguments of a kernel that runs one step of a recurrent node for several rows.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { USE_TANH, USE_SIGMOID, USE_RELU, USE_HARD_SIGMOID, USE_LEAKY_RELU, USE_ELU, USE_SOFTSIGN, CELL_FUNCTIONS } cell_use;
typedef struct { int32_t use; float parameters[2]; } cell_function;

// How weights are stored. Numbers of int8 are multiples of the scale of their output channel.
typedef enum { FLOAT_WEIGHTS, INT8_WEIGHTS, FLOAT16_WEIGHTS, BFLOAT16_WEIGHTS, CELL_FORMATS } cell_format;

typedef struct {
  int hidden, blocks, rows;     // blocks of 16 units; only outputs are not padded to whole blocks
  const float *sums;            // the projections with all biases
  ptrdiff_t sums_down, down;    // the row strides of the sums and of the states
  const float *h;               // the state before the step
  float *h_new, *c;             // c is updated in place
  float *y;                     // rows of `hidden` numbers, or null
  float *reset, *update;        // GRU without linear_before_reset: r * h, and z
  const void *r, *r_hidden;     // in the format of the kernel
  const float *scale, *scale_hidden; // of int8, like one row of r and r_hidden
  const float *bias_hidden, *peepholes;
  const cell_function *functions;
  float clip;
  bool input_forget, turned;    // turned: the last block first, because the data read last is still in the cache
} cell_step;

typedef void cell_kernel(const cell_step *s);

// A fast kernel for default activations without clip and peepholes, and a general kernel.
typedef struct { cell_kernel *usual, *any; } cell_kernels;
// Write 16 columns of `count` rows as floats. `scale`: of each column, or null.
typedef void widen_kernel(const void *from, const float *scale, float *to, ptrdiff_t count);
enum { RNN_STEP, GRU_STEP, GRU_LINEAR_STEP, LSTM_STEP, CELL_STEPS };
