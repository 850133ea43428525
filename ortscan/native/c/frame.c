#include "frame.h"
#include "growth.h"
#include "program.h"
#include "tasks.h"
#include "written.h"
#include <stdlib.h>
#include <string.h>

enum { KEPT_BYTES = 1 << 24 };

static void *room(int32_t count, size_t size) { return calloc((size_t)count + 1, size); }

frame *frame_new(const plan *p, const isa *set, const float *const *shared) {
  frame *f = calloc(1, sizeof *f);
  if (!f) return 0;
  f->plan = p, f->set = set, f->shared = shared;
  f->symbols = room(p->n_symbols, sizeof *f->symbols);
  f->sizes.sizes = room(p->n_sizes, sizeof(int64_t));
  f->sizes.input_rows = room(p->n_inputs, sizeof(int64_t));
  f->sizes.new_rows = room(p->n_states, sizeof(int64_t));
  f->sizes.output_rows = room(p->n_outputs, sizeof(int64_t));
  f->sizes.regions = room(p->n_regions, sizeof(int64_t));
  f->tasks = room(p->n_instructions, sizeof *f->tasks);
  f->regions = room(p->n_regions, sizeof *f->regions);
  f->packs = room(p->n_packs, sizeof *f->packs);
  f->stacks = room(p->n_outputs, sizeof *f->stacks);
  const resolved z = f->sizes;
  if (f->symbols && z.sizes && z.input_rows && z.new_rows && z.output_rows && z.regions && f->tasks && f->regions && f->packs && f->stacks) return f;
  frame_free(f);
  return 0;
}

void frame_free(frame *f) {
  if (!f) return;
  free(f->symbols);
  free(f->sizes.sizes);
  free(f->sizes.input_rows);
  free(f->sizes.new_rows);
  free(f->sizes.output_rows);
  free(f->sizes.regions);
  free(f->tasks);
  program_free(&f->program);
  for (int32_t i = 0; f->regions && i < f->plan->n_regions; i++) free(f->regions[i].data);
  free(f->regions);
  free(f->block);
  free(f->packs);
  for (int32_t i = 0; f->stacks && i < f->plan->n_outputs; i++) free(f->stacks[i].data);
  free(f->stacks);
  free(f);
}

void frame_let_go(frame *f) {
  for (int32_t i = 0; i < f->plan->n_outputs; i++)
    if (f->stacks[i].bytes > KEPT_BYTES) free(f->stacks[i].data), f->stacks[i] = (stack){0, 0};
  for (int32_t i = 0; i < f->plan->n_regions; i++)
    if (grows(f->plan) && f->regions[i].bytes > KEPT_BYTES) free(f->regions[i].data), f->regions[i] = (region){0, 0, 0}, f->ready = false;
}

static bool make_region(region *r, int64_t bytes) {
  const size_t room = (size_t)bytes + ALIGNED;
  void *data = calloc(room, 1);
  if (!data) return false;
  char *at = (char *)(((uintptr_t)data + ALIGNED - 1) & ~(uintptr_t)(ALIGNED - 1));
  if (r->bytes) memcpy(at, r->at, (size_t)r->bytes);
  free(r->data);
  *r = (region){data, at, bytes};
  return true;
}

static bool lay_out(frame *f, fault *why) {
  const plan *p = f->plan;
  const int64_t *z = f->sizes.sizes;
  size_t elements = 0;
  for (int32_t i = 0; i < p->n_regions; i++) {
    const int64_t bytes = f->sizes.regions[i + 1] - f->sizes.regions[i];
    region *r = f->regions + i;
    if (r->data && bytes <= r->bytes) continue;
    const bool doubles = grows(p) && bytes < 2 * r->bytes; // a region that grows in each step is seldom copied
    if (!(doubles && make_region(r, 2 * r->bytes)) && !make_region(r, bytes)) return refuse(why, "there is no memory for a workspace of %lld bytes", (long long)bytes);
  }
  for (int32_t i = 0; i < p->n_packs; i++)
    if (!f->shared[i]) elements += packed_elements(z[p->packs[i].k], z[p->packs[i].n]);
  if (!f->block || elements > f->elements) {
    free(f->block);
    f->elements = elements;
    f->block = calloc(elements + ALIGNED / sizeof(float), sizeof(float));
    if (!f->block) return refuse(why, "there is no memory for packs of %zu elements", elements);
  }
  float *next = (float *)(((uintptr_t)f->block + ALIGNED - 1) & ~(uintptr_t)(ALIGNED - 1));
  for (int32_t i = 0; i < p->n_packs; i++) {
    f->packs[i] = f->shared[i] ? (float *)f->shared[i] : next;
    if (!f->shared[i]) next += packed_elements(z[p->packs[i].k], z[p->packs[i].n]);
  }
  return true;
}

bool frame_ready(frame *f, const int64_t *symbols, fault *why) {
  const plan *p = f->plan;
  if (f->ready && !memcmp(f->symbols, symbols, sizeof *symbols * (size_t)p->n_symbols)) return true;
  f->ready = false;
  memcpy(f->symbols, symbols, sizeof *symbols * (size_t)p->n_symbols);
  if (!resolve(p, symbols, &f->sizes, why) || !within_bounds(p, &f->sizes, why) || !lay_out(f, why)) return false;
  for (int32_t i = 0; i < p->n_instructions; i++) {
    make_task(p, &f->sizes, p->instructions + i, f->set, f->tasks + i);
    f->tasks[i].failed = &f->failed, f->tasks[i].number = i + 1;
  }
  if (!program_make(f, why)) return false;
  f->clears = !writes_before_reading(p, &f->sizes);
  f->ready = true;
  return true;
}

bool frame_grow(frame *f, fault *why) {
  int64_t symbols[MOST_SYMBOLS];
  for (int32_t s = 0; s < f->plan->n_symbols; s++) symbols[s] = f->symbols[s] + growth_of_symbol(f->plan, s);
  return frame_ready(f, symbols, why);
}

void pack_matrix(const void *input, int32_t type, const resolved *z, pack_words w, float *packed) {
  int64_t rows = z->sizes[w.k], columns = z->sizes[w.n], down = z->sizes[w.stride_k], across = z->sizes[w.stride_n];
  const int64_t offset = z->sizes[w.offset];
  for (int64_t j = 0; j < columns; j += PANEL)
    for (int64_t k = 0; k < rows; k++)
      for (int64_t c = j; c < j + PANEL; c++) {
        const int64_t at = offset + k * down + c * across;
        if (c >= columns) *packed++ = 0;
        else *packed++ = type == FLOAT ? ((const float *)input)[at] : type == INT8 ? ((const int8_t *)input)[at] : ((const uint8_t *)input)[at];
      }
}
