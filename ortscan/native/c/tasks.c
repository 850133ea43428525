// Turns instructions into tasks with as few and as long loops as the strides allow.
#include "tasks.h"
#include <string.h>

// The dims of a task, innermost first.
typedef struct { int64_t n[AXES], s[AXES][MOST_OPERANDS]; } nest;

static void drop(nest *x, int d) {
  for (; d + 1 < AXES; d++) {
    x->n[d] = x->n[d + 1];
    memcpy(x->s[d], x->s[d + 1], sizeof x->s[d]);
  }
  x->n[AXES - 1] = 1;
  memset(x->s[AXES - 1], 0, sizeof x->s[AXES - 1]);
}

// Drop dims of 1 and merge a dim that continues its inner dim. Dims below `first` are unchanged.
static void merge(nest *x, int first) {
  for (int d = AXES - 1; d >= first; d--)
    if (x->n[d] == 1) drop(x, d);
  for (int d = first; d + 1 < AXES;) {
    bool whole = x->n[d + 1] != 1;
    for (int k = 0; k < MOST_OPERANDS; k++) whole = whole && x->s[d + 1][k] == x->s[d][k] * x->n[d];
    if (!whole) {
      d++;
      continue;
    }
    x->n[d] *= x->n[d + 1];
    drop(x, d + 1);
  }
}

// Return whether kernels support the strides of the innermost dim.
static bool is_inner(const nest *x) {
  bool fits = x->n[0] == 1 || x->s[0][0] == 1;
  for (int k = 1; k < MOST_OPERANDS; k++) fits = fits && (x->n[0] == 1 || x->s[0][k] == 0 || x->s[0][k] == 1);
  return fits;
}

// Insert an innermost dim of 1 again, so that the next dim may have any strides.
static void put_one(nest *x) {
  for (int d = AXES - 1; d > 0; d--) {
    x->n[d] = x->n[d - 1];
    memcpy(x->s[d], x->s[d - 1], sizeof x->s[d]);
  }
  x->n[0] = 1;
  memset(x->s[0], 0, sizeof x->s[0]);
}

// Transpose a product, so that the product of a column-major matrix [K, N] by a column becomes that of a row by a matrix.
static void transpose(task *t) {
  ptrdiff_t x;
  int n = t->m;
  t->m = t->n, t->n = n;
  for (int k = 0; k < 4; k++) x = t->down[k], t->down[k] = t->across[k], t->across[k] = x;
  int32_t v = t->value[1];
  t->value[1] = t->value[2], t->value[2] = v;
  x = t->offset[1], t->offset[1] = t->offset[2], t->offset[2] = x;
  x = t->down[1], t->down[1] = t->down[2], t->down[2] = x;
  x = t->across[1], t->across[1] = t->across[2], t->across[2] = x;
  x = t->s1[1], t->s1[1] = t->s1[2], t->s1[2] = x;
  x = t->s2[1], t->s2[1] = t->s2[2], t->s2[2] = x;
}

static void product(const resolved *z, const instruction_words *w, const nest *x, task *t) {
  t->m = (int)z->sizes[w->m], t->n = (int)z->sizes[w->n], t->k = (int)z->sizes[w->k];
  t->n0 = 1, t->n1 = (int)x->n[2], t->n2 = (int)x->n[3], t->n3 = 1;
  for (int k = 0; k < 4; k++) {
    t->down[k] = (ptrdiff_t)x->s[1][k], t->across[k] = (ptrdiff_t)x->s[0][k];
    t->s1[k] = (ptrdiff_t)x->s[2][k], t->s2[k] = (ptrdiff_t)x->s[3][k];
  }
  if (t->n == 1) t->across[0] = t->across[2] = t->across[3] = 1; // unused strides
  if (t->k == 1) t->across[1] = 1;
  bool by_columns = t->across[2] != 1 && t->down[1] == 1, column = t->n == 1 && t->down[1] == 1 && t->across[1] != 1;
  if (w->op == MATMUL && (by_columns || column) && t->m > 1 && t->down[0] == 1) transpose(t);
  t->idle = !t->n1 || !t->n2 || !t->m || !t->n;
}

// Only check the indices, because the result is empty.
static void look_at_indices(const task *t, void *const *p) {
  const int64_t *at = p[2];
  for (int r = 0; r < t->n1; r++, at += t->s1[2])
    for (ptrdiff_t i = 0; i < t->n0; i++)
      if (at[i * t->s0[2]] < -(int64_t)t->m || at[i * t->s0[2]] >= t->m) *t->failed = t->number;
}

static void without_elements(nest *x, task *t) {
  bool empty = false;
  for (int d = 0; d < AXES; d++) empty = empty || !x->n[d];
  if (!empty) return;
  t->run = look_at_indices;
  for (int d = 0; d < AXES; d++) {
    if (!x->n[d] && !x->s[d][2]) x->n[d] = 1;
    x->s[d][0] = x->s[d][1] = 0;
  }
}

void make_task(const plan *p, const resolved *z, const instruction_words *w, const isa *set, task *t) {
  family kind = (family)operation_of(w->op).family;
  memset(t, 0, sizeof *t);
  const value_words to = p->values[w->operand[0].value], from = p->values[w->operand[1].value];
  t->run = w->op == CAST ? set->casts[element_of(to.type)][element_of(from.type)] : set->kernels[element_of(kind == SEARCH ? from.type : to.type)][w->op];
  memcpy(t->immediate, w->immediate, sizeof t->immediate);
  nest x;
  for (int d = 0; d < AXES; d++) {
    x.n[d] = z->sizes[w->dims[AXES - 1 - d]];
    for (int k = 0; k < MOST_OPERANDS; k++) x.s[d][k] = 0;
  }
  for (int k = 0; k < MOST_OPERANDS; k++) {
    bool there = k < w->operands && w->operand[k].value != NO_VALUE;
    t->value[k] = there ? w->operand[k].value : NO_VALUE;
    t->offset[k] = there ? (ptrdiff_t)(z->sizes[w->operand[k].offset] * bytes_of(p->values[w->operand[k].value].type)) : 0;
    for (int d = 0; d < AXES && there; d++) // the stride of a dim of 1 is unused
      if (x.n[d] != 1 || (kind == PRODUCT && d < 2)) x.s[d][k] = z->sizes[w->operand[k].strides[AXES - 1 - d]];
  }
  if (kind == PRODUCT) {
    product(z, w, &x, t);
  } else {
    bool along = kind == REDUCTION || kind == NORMALIZATION || kind == SEARCH;
    if (kind == INDEXED || kind == SEARCH) t->m = (int)z->sizes[w->m], t->n = (int)z->sizes[w->n];
    if (along && x.n[0] <= 1)
      for (int k = 0; k < MOST_OPERANDS; k++) x.s[0][k] = 1; // a row of at most one number
    if (holds_indices(w->op, 2) && !(w->op == GATHER && t->immediate[0] == 1)) without_elements(&x, t);
    merge(&x, along ? 1 : 0);
    if (kind == ELEMENTWISE && !is_inner(&x)) put_one(&x);
    t->n0 = (int)x.n[0], t->n1 = (int)x.n[1], t->n2 = (int)x.n[2], t->n3 = (int)x.n[3];
    for (int k = 0; k < MOST_OPERANDS; k++) {
      t->s0[k] = (ptrdiff_t)x.s[0][k], t->s1[k] = (ptrdiff_t)x.s[1][k], t->s2[k] = (ptrdiff_t)x.s[2][k], t->s3[k] = (ptrdiff_t)x.s[3][k];
      if (k && t->value[k] != NO_VALUE && !t->s0[k] && t->n0 > 1) t->repeated |= 1u << k;
    }
    t->idle = !t->n1 || !t->n2 || !t->n3 || (!t->n0 && kind != REDUCTION);
  }
  for (int k = 0; k < MOST_OPERANDS; k++) {
    const ptrdiff_t bytes = t->value[k] == NO_VALUE ? 0 : (ptrdiff_t)bytes_of(p->values[t->value[k]].type);
    t->s2[k] *= bytes, t->s3[k] *= bytes;
  }
  t->outer = t->n2 != 1 || t->n3 != 1;
}
