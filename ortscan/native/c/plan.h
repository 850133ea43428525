// A loop plan: tables of 32-bit words, described in loop-plans.md. Immutable after reading.
#pragma once
#include "fault.h"
#include "types.h"
#include <stddef.h>
#include <stdint.h>

enum { MAGIC = 0x314E4C50, HEADER = 16, OPERANDS = 5, AXES = 4, NO_VALUE = -1, WORD = 4, ALIGNED = 64 };
enum { MOST_RANK = 16, MOST_PORTS = 4096, MOST_SYMBOLS = 64, MOST_EXPONENT = 4, MOST_OF_A_TABLE = 65536, MOST_STEPS_OF_A_BLOCK = 65536 };
#define MOST_ELEMENTS INT32_MAX

typedef enum { SCAN_FORM, LOOP_FORM } form;
typedef enum { INITIAL_STATE, SCANNED_INPUT, CAPTURED_INPUT, LIMIT_INPUT } input_kind;
// GROWS + a: along axis a; GROWS_IN_TWO + a: the same, but old and new state are in two regions, which swap
typedef enum { IN_PLACE, TWO_ROWS, ROWS_OF_AN_OUTPUT, GROWS, GROWS_IN_TWO = GROWS + MOST_RANK } storage;
typedef enum { SCANNED, CAPTURED, CONSTANT, TEMPORARY, ROWS, STACKED, OLD, NEW, PACK, STEP_NUMBER } value_kind;

// Sizes, dims, counts, offsets and strides are indices into the table of sizes; `dims` of a port has `rank` indices.
typedef struct { int32_t kind, type, backwards, rank; const int32_t *dims; } port;
typedef struct { int32_t input, axis; } symbol_words; // axis -1 - a: axis a of a state after the step
// place: the output that stores the state, or its region; offset: of a state that grows, the rows of a step
typedef struct { int32_t storage, offset, place; } state_words;
typedef struct { int32_t input, offset, k, n, stride_k, stride_n; } pack_words;
typedef struct { int32_t kind, index, type, count, offset; } value_words;
typedef struct { int32_t value, offset, strides[AXES]; } operand_words; // strides outermost first
typedef struct {
  int32_t op, flags, dims[AXES], operands; // dims outermost first
  operand_words operand[OPERANDS];
  int32_t m, n, k, immediate[2];
} instruction_words;
typedef struct { int32_t stepwise, first, count; } phase_words;

typedef struct {
  int32_t *words;
  int32_t n_symbols, n_sizes, n_inputs, n_states, n_outputs, n_packs, n_constants, n_values, n_instructions, n_phases, block, form, n_regions;
  port *inputs, *outputs;
  const symbol_words *symbols;
  const int32_t *sizes; // a coefficient and exponents for each
  const int32_t *regions; // regions of the workspace, with sizes in words
  const state_words *states;
  const pack_words *packs;
  void *constants; // as in memory, aligned for any element type
  const value_words *values;
  const instruction_words *instructions;
  const phase_words *phases;
} plan;

// Parse a plan; return null and the fault if it is invalid. Every index in it is within its table.
plan *plan_read(const void *bytes, size_t count, fault *why);
void plan_free(plan *p);

// The outputs of a node are final states and stacks. The first state of a Loop, its condition, is no output.
static inline int32_t first_output(const plan *p) { return p->form == LOOP_FORM; }
static inline int32_t outputs_of(const plan *p) { return p->n_states + p->n_outputs - first_output(p); }
