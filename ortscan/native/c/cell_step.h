// One step of a recurrent node, for rows side by side: what its kernel is given.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { USE_TANH, USE_SIGMOID, USE_RELU, USE_HARD_SIGMOID, USE_LEAKY_RELU, USE_ELU, USE_SOFTSIGN, CELL_FUNCTIONS } cell_use;
typedef struct { int32_t use; float parameters[2]; } cell_function;

typedef struct {
  int hidden, blocks, rows;     // blocks of 16 units; all but outputs have whole ones
  const float *sums;            // the projections, with all that is added
  ptrdiff_t sums_down, down;    // from row to row of these, and of the states
  const float *h;               // before the step
  float *h_new, *c;             // c is in place
  float *y;                     // or null: rows of `hidden` numbers
  float *reset, *update;        // GRU without linear_before_reset: r * h, and z
  const float *r, *r_hidden, *bias_hidden, *peepholes;
  const cell_function *functions;
  float clip;
  bool input_forget, turned;    // turned: the last block first, for what was read last is still near
} cell_step;

typedef void cell_kernel(const cell_step *s);

// A kernel for the usual activations, without clip and peepholes; one for all others.
typedef struct { cell_kernel *usual, *any; } cell_kernels;
enum { RNN_STEP, GRU_STEP, GRU_LINEAR_STEP, LSTM_STEP, CELL_STEPS };
