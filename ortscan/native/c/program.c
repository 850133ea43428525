// Turns tasks into lists of micros: one for each stepwise phase, one for each instruction of the others.
#include "program.h"
#include <stdlib.h>
#include <string.h>

enum { SPREAD_NUMBERS = 16 };

// Whether a task is one row of an operation on 32-bit floats.
static bool is_row(const plan *p, const task *t, int32_t op) {
  const family kind = (family)operation_of(op).family;
  if (t->n1 != 1 || t->outer || op == CAST || p->values[t->value[0]].type != FLOAT) return false;
  return kind == ELEMENTWISE || (kind == COPYING && (t->n0 == 1 || (t->s0[0] == 1 && (t->s0[1] == 0 || t->s0[1] == 1))));
}

static bool never_changes(const plan *p, int32_t value) { return p->values[value].kind == CONSTANT || p->values[value].kind == CAPTURED; }

// Write the micros of an instruction to `at`, or only count them where that is null.
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

// Return how many micros there are, and write them and where the lists begin where there is room for them.
static size_t lists(const frame *f, program *x, size_t *n_spread) {
  const plan *p = f->plan;
  size_t count = 0;
  x->n_lists = 0;
  for (int32_t i = 0; i < p->n_phases; i++) {
    const phase_words w = p->phases[i];
    for (int32_t j = 0; j < w.count; j++) {
      const bool begins = p->block == 1 ? !x->n_lists : !w.stepwise || !j; // a block of one step: all in the order of the step
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
  if (!x->room || !x->lists) return refuse(why, "out of memory");
  x->micros = (micro *)(((uintptr_t)x->room + ALIGNED - 1) & ~(uintptr_t)(ALIGNED - 1));
  x->spread = (float *)(x->micros + x->n_micros);
  n_spread = 0;
  lists(f, x, &n_spread);
  return true;
}

void program_free(program *x) {
  free(x->room);
  free(x->lists);
  memset(x, 0, sizeof *x);
}
