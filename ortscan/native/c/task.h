// A task: an instruction with sizes and addresses, whose bounds are proven.
#pragma once
#include "cell_step.h"
#include "operations.h"
#include "types.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_OPERANDS = 5, PANEL = 16 };

// Kinds of lists: any rows, or only rows of 4, 8 or 16 numbers, or of one number.
typedef enum { ANY_ROWS, ROWS_OF_4, ROWS_OF_8, ROWS_OF_16, LISTS } list_kind;

typedef struct task task;
typedef struct micro micro;
typedef void kernel(const task *t, void *const *p); // over n1 rows of n0; the caller loops over outer dims and steps

struct task {
  kernel *run;
  int n0, n1, n2, n3;
  unsigned repeated; // bit k: operand k is constant within a row (its inner stride is 0)
  bool outer, idle;  // has outer dims; is empty
  ptrdiff_t s0[MOST_OPERANDS], s1[MOST_OPERANDS]; // in elements
  ptrdiff_t s2[MOST_OPERANDS], s3[MOST_OPERANDS]; // in bytes
  int32_t *failed, number; // `number`, the instruction counted from 1, is stored in `failed` on a failure
  int m, n, k; // products: matrix strides are in down and across, batch strides in s1 and (in bytes) s2
  ptrdiff_t down[4], across[4];
  float immediate[2];
  int32_t value[MOST_OPERANDS];
  ptrdiff_t offset[MOST_OPERANDS];
};

// The kernels for one instruction set.
typedef struct {
  const char *name;
  kernel *kernels[ELEMENTS][OPERATIONS]; // null if a type does not have an operation
  kernel *casts[ELEMENTS][ELEMENTS];     // to, from
  void (*run[LISTS])(micro *list, int64_t steps); // run a list this number of times
  cell_kernels cells[CELL_FORMATS][CELL_STEPS]; // null if a format does not have a kernel
  widen_kernel *widen[CELL_FORMATS];
  bool has_fast_cells; // its cells are at least as fast as onnxruntime's
} isa;

// Return the kernels that ORTSCAN_ISA names, else the best for this machine, or null if there are none.
const isa *choose_isa(void);

// Packed matrices: zero-padded panels of PANEL columns, each with all of k.
static inline size_t packed_elements(int64_t k, int64_t n) { return (size_t)k * (size_t)((n + PANEL - 1) / PANEL * PANEL); }
