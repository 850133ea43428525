// What a kernel gets to do: an instruction with sizes and addresses instead of words. Its bounds are proven.
#pragma once
#include "cell_step.h"
#include "operations.h"
#include "types.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_OPERANDS = 5, PANEL = 16 };

// Kinds of lists: any, and those whose rows are all of so many numbers, or of one.
typedef enum { ANY_ROWS, ROWS_OF_4, ROWS_OF_8, ROWS_OF_16, LISTS } list_kind;

typedef struct task task;
typedef struct micro micro;
typedef void kernel(const task *t, void *const *p); // over n1 rows of n0; outer dims and steps are walked by the caller

struct task {
  kernel *run;
  int n0, n1, n2, n3;
  unsigned repeated; // bit k: operand k is one number for each row (its inner stride is 0)
  bool outer, idle;  // there are outer dims; there is nothing to do
  ptrdiff_t s0[MOST_OPERANDS], s1[MOST_OPERANDS]; // in elements, as kernels count
  ptrdiff_t s2[MOST_OPERANDS], s3[MOST_OPERANDS]; // in bytes, like all else that moves addresses
  int32_t *failed, number; // where a failure is noted, and the number to note: that of the instruction, counted from 1
  int m, n, k; // products: the strides of the matrices are in down and across, those of their batch in s1 and (in bytes) s2
  ptrdiff_t down[4], across[4];
  float immediate[2];
  int32_t value[MOST_OPERANDS];
  ptrdiff_t offset[MOST_OPERANDS];
};

// The kernels for one instruction set.
typedef struct {
  const char *name;
  kernel *kernels[ELEMENTS][OPERATIONS]; // null where an operation is not there for a type
  kernel *casts[ELEMENTS][ELEMENTS];     // to, from
  void (*run[LISTS])(micro *list, int64_t steps); // do what a list says, so many times
  cell_kernels cells[CELL_STEPS];
  bool has_fast_cells; // onnxruntime's recurrent nodes are no faster
} isa;

// Return the best one for this machine, or the one that ORTSCAN_ISA names, or null where there is no such.
const isa *choose_isa(void);

// Packed matrices: panels of PANEL columns, in each all of k, zero-padded.
static inline size_t packed_elements(int64_t k, int64_t n) { return (size_t)k * (size_t)((n + PANEL - 1) / PANEL * PANEL); }
