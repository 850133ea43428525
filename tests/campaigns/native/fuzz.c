// Damages valid plans and runs what is still accepted: fuzz FILE SEED ROUNDS, or of recurrent nodes fuzz cells SEED ROUNDS.
// The file holds plans, each after its number of bytes.
// Built with sanitizers, which end it where a plan reaches outside anything. It also ends if two runs of a plan differ.
#include "growth.h"
#include "loop.h"
#include "run.h"
#include "until.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_DATA = 1 << 18, MOST_WORK = 1 << 20, MOST_GROWTH = 64 };

static uint64_t state;
static uint32_t any(uint32_t below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33) % below;
}

static void damage(unsigned char *bytes, size_t count) {
  static const int32_t odd[] = {0, 1, -1, 2, 3, 4, 7, 16, 1000, INT32_MAX, INT32_MIN, INT32_MIN + 1, 65536, 1 << 30};
  for (uint32_t times = any(4); times--;) {
    size_t word = any((uint32_t)(count / 4)) * 4u;
    int32_t w, other;
    memcpy(&w, bytes + word, 4);
    memcpy(&other, bytes + any((uint32_t)(count / 4)) * 4u, 4);
    switch (any(6)) {
      case 0: bytes[any((uint32_t)count)] = (unsigned char)any(256); continue;
      case 1: w = odd[any(14)]; break;
      case 2: w = (int32_t)((uint32_t)w + any(3) - 1u); break;
      case 3: w = other; break;
      case 4: w = (int32_t)any(40); break;
      case 5: w = (int32_t)(0u - (uint32_t)w); break;
    }
    memcpy(bytes + word, &w, 4);
  }
}

// Each tensor in a block of its own size, so that one element too far is seen.
static void *numbers(int64_t count, int32_t type) {
  char *x = malloc((size_t)(count * bytes_of(type)));
  for (int64_t i = 0; x && i < count; i++) {
    const float number = (float)any(2000) / 100 - 10;
    const double wide = number;
    const int64_t whole = any(2) ? (int64_t)number : (int64_t)((uint64_t)any(UINT32_MAX) << any(33));
    const void *from = type == FLOAT ? (const void *)&number : type == DOUBLE ? (const void *)&wide : &whole;
    memcpy(x + i * bytes_of(type), from, (size_t)bytes_of(type));
  }
  return x;
}

static int64_t elements(const int64_t *dims, size_t axes) {
  int64_t n = 1;
  for (size_t d = 0; d < axes; d++)
    if (!dims[d]) return 0;
  for (size_t d = 0; d < axes; d++)
    if ((n *= dims[d]) > MOST_DATA) return MOST_DATA + 1;
  return n;
}

static bool is_short(const frame *f, int64_t steps) {
  double work = 0;
  for (int32_t i = 0; i < f->plan->n_states; i++)
    if (grown_rows(f->plan, i) > MOST_GROWTH) return false;
  for (int32_t i = 0; i < f->plan->n_instructions; i++) {
    const task *t = f->tasks + i;
    double products = (double)t->m * t->n * t->k + (double)t->m * t->n;
    work += (double)t->n0 * t->n1 * t->n2 * t->n3 * (products ? products : 1) + (double)t->n1 * t->n2 * t->n3;
  }
  for (int32_t i = 0; i < f->plan->n_packs; i++) work += (double)packed_elements(f->sizes.sizes[f->plan->packs[i].k], f->sizes.sizes[f->plan->packs[i].n]);
  return work * (double)(steps ? steps : 1) < MOST_WORK;
}

static bool make_outputs(const frame *f, int32_t count, int64_t steps, void **outputs) {
  const plan *p = f->plan;
  bool good = true;
  for (int32_t i = 0; i < count && good; i++) {
    int64_t dims[MOST_RANK + 1];
    const int64_t n = elements(dims, dims_of_output(f, i, steps, dims));
    good = n <= MOST_DATA && (outputs[i] = numbers(n, i < p->n_states ? p->inputs[i].type : p->outputs[i - p->n_states].type));
  }
  return good;
}

// Add to a hash of all results.
static void add_bytes(uint64_t *hash, const void *data, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i++) *hash = (*hash ^ ((const unsigned char *)data)[i]) * 0x100000001B3u;
}

static void add_results(const frame *f, void *const *outputs, int64_t steps, uint64_t *hash) {
  const plan *p = f->plan;
  for (int32_t i = first_output(p); i < p->n_states; i++) add_bytes(hash, outputs[i], f->sizes.input_rows[i] * bytes_of(p->inputs[i].type));
  for (int32_t i = 0; i < p->n_outputs; i++) add_bytes(hash, outputs[p->n_states + i], steps * f->sizes.output_rows[i] * bytes_of(p->outputs[i].type));
}

// Change what the run leaves in the memory that the next run takes.
static void soil(frame *f) {
  for (int32_t i = 0; i < f->plan->n_regions; i++)
    if (f->regions[i].data) memset(f->regions[i].at, 0x3D, (size_t)f->regions[i].bytes);
  for (int32_t i = 0; i < f->plan->n_outputs; i++)
    if (f->stacks[i].data) memset(f->stacks[i].data, 0x3D, (size_t)f->stacks[i].bytes);
}

// Run once; `hash`: of the results, or 0 if the run fails.
static bool run(loop *l, tensor *inputs, int64_t steps, uint64_t *hash) {
  const plan *p = l->plan;
  const int32_t n_outputs = p->n_states + p->n_outputs;
  fault why;
  void **data = calloc((size_t)p->n_inputs + 1, sizeof *data), **outputs = calloc((size_t)n_outputs + 1, sizeof *outputs);
  frame *f = loop_begin(l, inputs, &steps, &why);
  bool good = f && is_short(f, steps);
  for (int32_t i = 0; i < p->n_inputs; i++) data[i] = inputs[i].data;
  const bool is_loop = p->form == LOOP_FORM;
  if (good && !is_loop) good = make_outputs(f, n_outputs, steps, outputs);
  run_data d = {data, outputs, steps};
  *hash = 0;
  if (good && is_loop) {
    void **stacked = outputs + p->n_states;
    if (frame_run_until(f, &d, stacked, steps, &why) && make_outputs(f, p->n_states, d.steps, outputs)) {
      run_finish(f, &d);
      add_results(f, outputs, d.steps, hash);
    }
    for (int32_t i = 0; i < p->n_outputs; i++) stacked[i] = 0; // the frame's
  } else if (good && frame_run(f, &d, &why))
    add_results(f, outputs, steps, hash);
  if (f) soil(f), loop_end(l, f);
  for (int32_t i = 0; i < n_outputs; i++) free(outputs[i]);
  free(outputs);
  free(data);
  return good;
}

// Inputs of the sizes that the plan says; false where they are too large to make.
static bool make_inputs(const plan *p, tensor *inputs, int64_t steps) {
  fault why;
  int64_t symbols[MOST_SYMBOLS];
  for (int32_t s = 0; s < MOST_SYMBOLS; s++) symbols[s] = any(6);
  resolved z = {calloc((size_t)p->n_sizes + 1, 8), calloc((size_t)p->n_inputs + 1, 8), calloc((size_t)p->n_outputs + 1, 8), calloc((size_t)p->n_states + 1, 8), calloc((size_t)p->n_regions + 1, 8)};
  bool good = resolve(p, symbols, &z, &why);
  for (int32_t i = 0; i < p->n_inputs && good; i++) {
    const port *o = p->inputs + i;
    const size_t lead = o->kind == SCANNED_INPUT;
    inputs[i] = (tensor){.type = o->type, .axes = (size_t)o->rank + lead, .dims = {steps}};
    for (int32_t d = 0; d < o->rank; d++) inputs[i].dims[d + (int32_t)lead] = z.sizes[o->dims[d]];
    const int64_t count = elements(inputs[i].dims, inputs[i].axes);
    good = count <= MOST_DATA && (inputs[i].data = numbers(count, o->type));
    if (good && o->kind == LIMIT_INPUT && o->type == INT64 && count) *(int64_t *)inputs[i].data = any(100); // at times more rows than a stack has at first
  }
  free(z.sizes);
  free(z.input_rows);
  free(z.output_rows);
  free(z.new_rows);
  free(z.regions);
  return good;
}

// Return 0 where the plan is refused, 1 where it is accepted but not run, 2 where it ran.
static int attempt(const void *bytes, size_t count) {
  fault why;
  int result = 0;
  plan *p = plan_read(bytes, count, &why);
  if (!p) return 0;
  tensor *inputs = calloc((size_t)p->n_inputs + 1, sizeof *inputs), *constants = calloc((size_t)p->n_inputs + 1, sizeof *constants);
  const bool made = make_inputs(p, inputs, any(5));
  for (int32_t i = 0; i < p->n_inputs && made; i++)
    if (p->inputs[i].kind == CAPTURED_INPUT && any(2)) constants[i] = inputs[i];
  loop *l = loop_new(bytes, count, constants, p->n_inputs, &why);
  if (l) {
    result = 1;
    uint64_t hashes[2] = {0};
    for (int again = 0; again < 2 && made; again++)
      if (run(l, inputs, 0, hashes + again)) result = 2;
    if (result == 2 && hashes[0] != hashes[1]) {
      fprintf(stderr, "a run returned what another one left in memory\n");
      abort();
    }
  }
  loop_free(l);
  for (int32_t i = 0; i < p->n_inputs; i++) free(inputs[i].data);
  free(inputs);
  free(constants);
  plan_free(p);
  return result;
}

int fuzz_cells(const char *seed, const char *rounds);

int main(int argc, char **argv) {
  if (argc == 4 && !strcmp(argv[1], "cells")) return fuzz_cells(argv[2], argv[3]);
  FILE *file = argc == 4 ? fopen(argv[1], "rb") : 0;
  if (!file) return 2;
  state = strtoull(argv[2], 0, 10);
  static unsigned char *plans[4096];
  static uint32_t sizes[4096];
  uint32_t n = 0;
  while (n < 4096 && fread(&sizes[n], 4, 1, file) == 1) {
    plans[n] = malloc(sizes[n]);
    if (fread(plans[n], 1, sizes[n], file) != sizes[n]) return 2;
    n++;
  }
  fclose(file);
  long results[3] = {0}, whole[3] = {0};
  for (uint32_t i = 0; i < n; i++) whole[attempt(plans[i], sizes[i])]++;
  for (long round = strtol(argv[3], 0, 10); round--;) {
    const uint32_t i = any(n);
    size_t count = sizes[i];
    unsigned char *bytes = malloc(count);
    memcpy(bytes, plans[i], count);
    damage(bytes, count);
    if (!any(50)) count = any((uint32_t)count + 1);
    results[attempt(bytes, count)]++;
    free(bytes);
  }
  for (uint32_t i = 0; i < n; i++) free(plans[i]);
  printf("whole %ld %ld %ld damaged %ld %ld %ld\n", whole[0], whole[1], whole[2], results[0], results[1], results[2]);
  return 0;
}
