// Compiles tasks into lists of micros: a list for each stepwise phase, and for each instruction of other phases.
#include "program.h"
#include <stdlib.h>
#include <string.h>

enum { SPREAD_NUMBERS = 16 };

// Return whether a task is one row of an operation on 32-bit floats.
static bool is_row(const plan *p, const task *t, int32_t op) {
  const family kind = (family)operation_of(op).family;
  if (t->n1 != 1 || t->outer || op == CAST || op == POW || op == MOD || p->values[t->value[0]].type != FLOAT) return false;
  return kind == ELEMENTWISE || (kind == COPYING && (t->n0 == 1 || (t->s0[0] == 1 && (t->s0[1] == 0 || t->s0[1] == 1))));
}

static bool never_changes(const plan *p, int32_t value) { return p->values[value].kind == CONSTANT || p->values[value].kind == CAPTURED; }

// Write the micros of an instruction to `at`, or only count them if `at` is null.
static int32_t add(const frame *f, int32_t i, micro *at, size_t *n_spread) {
  const task *t = f->tasks + i;
  const bool row = is_row(f->plan, t, f->plan->instructions[i].op);
  micro own = {.task = t, .code = row ? f->plan->instructions[i].op : TASK, .n = t->n0};
  int32_t count = 0;
  if (t->idle) return 0;
  for (int k = 0; k < MOST_OPERANDS; k++) {
    own.on[k] = -1;
    if (!row || !(t->repeated >> k & 1)) continue;
    float *numbers = at ? f->program.spread + SPREAD_NUMBERS * *n_spread : 0;
    own.on[k] = 0, own.p[k] = numbers, *n_spread += 1;
    if (never_changes(f->plan, t->value[k])) continue;
    if (at) at[count] = (micro){.task = t, .code = SPREAD, .operand = (int8_t)k, .p = {numbers}};
    count++;
  }
  if (at) at[count] = own;
  return count + 1;
}

// Return whether lists of short rows support an operation.
static bool is_short_operation(int32_t op) {
  switch (op) {
    case ADD: case SUB: case MUL: case DIV: case MAX: case MIN: case GREATER: case LESS: case GREATER_OR_EQUAL: case LESS_OR_EQUAL: case EQUAL:
    case COPY: case NEG: case ABS: case SQRT: case TANH: case SIGMOID: case RECIPROCAL: case NOT: case RELU: case WHERE: case SELECT: case MUL_ADD:
    case MUL_SUB: case SUB_MUL: case MUL_MUL_ADD: case MUL_MUL_SUB: return true;
    default: return false;
  }
}

// Return whether a task uses a state that alternates between two buffers.
static bool turns(const plan *p, const task *t) {
  bool found = false;
  for (int k = 0; k < MOST_OPERANDS; k++) {
    const value_words v = p->values[t->value[k] == NO_VALUE ? t->value[0] : t->value[k]];
    found = found || ((v.kind == OLD || v.kind == NEW) && p->states[v.index].storage == TWO_ROWS);
  }
  return found;
}

// Return the kind of a list by the length of its rows.
static list_kind kind_of(const plan *p, const micro *list) {
  int n = 1;
  for (const micro *m = list; m->code != END; m++) {
    if (turns(p, m->task)) return ANY_ROWS;
    if (m->code == SPREAD) continue;
    if (!is_short_operation(m->code) || (m->n != 1 && n != 1 && m->n != n)) return ANY_ROWS;
    if (m->n != 1) n = m->n;
  }
  return n == 1 || n == 4 ? ROWS_OF_4 : n == 8 ? ROWS_OF_8 : n == 16 ? ROWS_OF_16 : ANY_ROWS;
}

// Return whether `writer` computes operand k of a task: in the same step, or in the previous step if `before`.
static bool is_written_by(const frame *f, const task *t, int k, const task *writer, bool before) {
  const plan *p = f->plan;
  if (t->value[k] == NO_VALUE || t->offset[k] != writer->offset[0]) return false;
  if (!before) return t->value[k] == writer->value[0];
  const value_words old = p->values[t->value[k]], new = p->values[writer->value[0]];
  if (old.kind != OLD || f->sizes.sizes[old.offset] != f->sizes.sizes[new.offset]) return false;
  const state_words s = p->states[old.index];
  return s.storage == ROWS_OF_AN_OUTPUT ? new.kind == STACKED && new.index == s.place : new.kind == NEW && new.index == old.index;
}

static void hand(const frame *f, micro *m, const task *writer, bool before) {
  for (int k = 1; k < MOST_OPERANDS && writer; k++) {
    if (!m->on[k] || !is_written_by(f, m->task, k, writer, before)) continue;
    m->handed = (uint8_t)k, m->code += HANDED_1 + (k - 1) * OPERATIONS;
    return;
  }
}

// Mark the operands of short rows that can stay in a register. An operation on one number may overwrite the register.
static void hand_on(const frame *f, micro *list) {
  const task *last = 0;
  const micro *first = 0;
  for (micro *m = list; m->code != END; m++) {
    if (m->code == SPREAD) continue;
    if (m->n == 1) {
      m->code += SINGLE, last = 0;
      continue;
    }
    hand(f, m, last, false);
    last = m->task;
    if (!first) first = m;
  }
  if (first == list) hand(f, list, last, true);
}

// Return the number of micros. Write them and the beginnings of lists if memory for them is passed.
static size_t lists(const frame *f, program *x, size_t *n_spread) {
  const plan *p = f->plan;
  size_t count = 0;
  x->n_lists = 0;
  for (int32_t i = 0; i < p->n_phases; i++) {
    const phase_words w = p->phases[i];
    for (int32_t j = 0; j < w.count; j++) {
      const bool begins = p->block == 1 ? !x->n_lists : !w.stepwise || !j; // blocks of one step keep the order of the step
      if (begins) {
        if (x->n_lists) count += 1;
        if (x->n_lists && x->micros) x->micros[count - 1] = (micro){.code = END};
        if (x->lists) x->lists[x->n_lists] = count;
        x->n_lists++;
      }
      count += (size_t)add(f, w.first + j, x->micros ? x->micros + count : 0, n_spread);
    }
  }
  if (x->n_lists && x->micros) x->micros[count] = (micro){.code = END};
  return count + (x->n_lists != 0);
}

bool program_make(frame *f, fault *why) {
  program *x = &f->program;
  program_free(x);
  size_t n_spread = 0;
  x->n_micros = lists(f, x, &n_spread);
  x->room = malloc(x->n_micros * sizeof(micro) + n_spread * SPREAD_NUMBERS * sizeof(float) + ALIGNED);
  x->lists = malloc(sizeof *x->lists * ((size_t)x->n_lists + 1));
  x->kinds = malloc(sizeof *x->kinds * ((size_t)x->n_lists + 1));
  if (!x->room || !x->lists || !x->kinds) return refuse(why, "out of memory");
  x->micros = (micro *)(((uintptr_t)x->room + ALIGNED - 1) & ~(uintptr_t)(ALIGNED - 1));
  x->spread = (float *)(x->micros + x->n_micros);
  n_spread = 0;
  lists(f, x, &n_spread);
  for (int32_t i = 0; i < x->n_lists; i++) {
    x->kinds[i] = kind_of(f->plan, x->micros + x->lists[i]);
    if (x->kinds[i] != ANY_ROWS) hand_on(f, x->micros + x->lists[i]);
  }
  return true;
}

void program_free(program *x) {
  free(x->room);
  free(x->lists);
  free(x->kinds);
  memset(x, 0, sizeof *x);
}
