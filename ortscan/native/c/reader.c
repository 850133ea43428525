// Reads the words of a plan. Checks that depend on sizes are in extents.c.
#include "growth.h"
#include "operations.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
  const int32_t *at, *end;
  fault *why;
} reader;

// Return the next `count` entries of `width` words, or null if the plan is too short.
static const int32_t *section(reader *r, const char *name, int64_t count, int64_t width) {
  if (count * width > r->end - r->at) {
    refuse(r->why, "the plan ends within its %s", name);
    return 0;
  }
  const int32_t *first = r->at;
  r->at += count * width;
  return first;
}

static bool counts(plan *p, const int32_t *header, fault *why) {
  static const char *const names[] = {"symbols", "sizes", "inputs", "states", "outputs", "packs", "constants", "values", "instructions", "phases"};
  static const int32_t most[] = {MOST_SYMBOLS, MOST_OF_A_TABLE, MOST_PORTS, MOST_PORTS, MOST_PORTS, MOST_PORTS, MOST_ELEMENTS, MOST_OF_A_TABLE,
                                 MOST_OF_A_TABLE, MOST_OF_A_TABLE};
  int32_t *const counted[] = {&p->n_symbols, &p->n_sizes, &p->n_inputs, &p->n_states, &p->n_outputs, &p->n_packs, &p->n_constants, &p->n_values,
                              &p->n_instructions, &p->n_phases};
  for (int i = 0; i < 10; i++) {
    *counted[i] = header[2 + i];
    if (header[2 + i] < 0 || header[2 + i] > most[i]) return refuse(why, "the plan has %d %s", (int)header[2 + i], names[i]);
  }
  p->block = header[12];
  p->n_regions = header[13];
  if (p->block < 1 || p->block > MOST_STEPS_OF_A_BLOCK) return refuse(why, "a block of %d steps is out of range", (int)p->block);
  if (p->n_regions < 0 || p->n_regions > MOST_PORTS) return refuse(why, "the plan has %d regions", (int)p->n_regions);
  p->form = header[14];
  if (p->form < SCAN_FORM || p->form > LOOP_FORM) return refuse(why, "this library knows no loops of form %d", (int)p->form);
  if (header[15]) return refuse(why, "the last word of the plan's header is not 0");
  if (p->n_states + p->n_outputs > MOST_PORTS) return refuse(why, "the plan has more than %d outputs", MOST_PORTS);
  return true;
}

static bool is_size(const plan *p, int32_t word) { return word >= 0 && word < p->n_sizes; }

static bool ports(plan *p, reader *r, port *all, int32_t count, bool inputs) {
  const char *name = inputs ? "input" : "output";
  for (int32_t i = 0; i < count; i++) {
    const int32_t *w = section(r, name, 1, inputs ? 4 : 3);
    if (!w) return false;
    port *o = all + i;
    *o = inputs ? (port){w[0], w[1], w[2], w[3], 0} : (port){0, w[0], w[1], w[2], 0};
    if (element_of(o->type) == NO_ELEMENT && !(inputs && o->kind == CAPTURED_INPUT && is_narrow(o->type))) return refuse(r->why, "%s %d has element type %d, which this format does not have", name, (int)i, (int)o->type);
    if (o->rank < 0 || o->rank > MOST_RANK) return refuse(r->why, "%s %d has rank %d", name, (int)i, (int)o->rank);
    if (o->backwards < 0 || o->backwards > (!inputs || o->kind == SCANNED_INPUT)) return refuse(r->why, "%s %d cannot run backwards", name, (int)i);
    if (!(o->dims = section(r, name, o->rank, 1))) return false;
    for (int32_t d = 0; d < o->rank; d++)
      if (!is_size(p, o->dims[d])) return refuse(r->why, "axis %d of %s %d is not in the table of sizes", (int)d, name, (int)i);
  }
  return true;
}

// The inputs of a Loop: condition and other states, limit, captured values. It runs forwards in single steps.
static bool is_loop(const plan *p, fault *why) {
  if (!p->n_states || p->inputs[0].type != BOOL) return refuse(why, "the plan's first state is no condition");
  if (p->n_inputs <= p->n_states || p->inputs[p->n_states].kind != LIMIT_INPUT || p->inputs[p->n_states].type != INT64)
    return refuse(why, "the plan has no limit after its states");
  for (int32_t i = 0; i < p->n_inputs; i++)
    if (i != p->n_states && p->inputs[i].kind != (i < p->n_states ? INITIAL_STATE : CAPTURED_INPUT)) return refuse(why, "input %d is out of order", (int)i);
  for (int32_t i = 0; i < p->n_outputs; i++)
    if (p->outputs[i].backwards) return refuse(why, "output %d cannot run backwards", (int)i);
  return p->block == 1 || refuse(why, "the steps of a loop with a condition are in blocks");
}

// The inputs of a Scan: states, at least one scanned input, captured values.
static bool order_of_inputs(const plan *p, fault *why) {
  if (p->form == LOOP_FORM) return is_loop(p, why);
  if (p->n_inputs <= p->n_states || p->inputs[p->n_states].kind != SCANNED_INPUT) return refuse(why, "the plan has no scanned input after its states");
  for (int32_t i = 0; i < p->n_inputs; i++) {
    int32_t kind = p->inputs[i].kind;
    if (kind < INITIAL_STATE || kind > CAPTURED_INPUT || (kind == INITIAL_STATE) != (i < p->n_states) || (i && kind < p->inputs[i - 1].kind))
      return refuse(why, "input %d is out of order", (int)i);
  }
  return true;
}

static bool symbols_and_sizes(const plan *p, fault *why) {
  for (int32_t i = 0; i < p->n_symbols; i++) {
    symbol_words s = p->symbols[i];
    if (s.input < 0 || s.input >= p->n_inputs) return refuse(why, "symbol %d is of no input", (int)i);
    const port *o = p->inputs + s.input;
    if (axis_of_symbol(s) >= o->rank + (o->kind == SCANNED_INPUT)) return refuse(why, "symbol %d is of no axis of its input", (int)i);
  }
  for (int32_t i = 0; i < p->n_sizes; i++)
    for (int32_t e = 1; e <= p->n_symbols; e++) {
      int32_t exponent = p->sizes[(int64_t)i * (1 + p->n_symbols) + e];
      if (exponent < 0 || exponent > MOST_EXPONENT) return refuse(why, "size %d has an exponent of %d", (int)i, (int)exponent);
    }
  return true;
}

static bool states_and_packs(const plan *p, fault *why) {
  for (int32_t i = 0; i < p->n_regions; i++)
    if (!is_size(p, p->regions[i])) return refuse(why, "the size of region %d is not in the table of sizes", (int)i);
  for (int32_t i = 0; i < p->n_states; i++) {
    state_words s = p->states[i];
    if (s.storage < IN_PLACE || s.storage >= GROWS_IN_TWO + MOST_RANK || grown_axis(p, i) >= p->inputs[i].rank) return refuse(why, "state %d has storage %d", (int)i, (int)s.storage);
    if (!is_size(p, s.offset)) return refuse(why, "the offset of state %d is not in the table of sizes", (int)i);
    const bool rows = s.storage == ROWS_OF_AN_OUTPUT;
    if (s.place < 0 || s.place > (rows ? p->n_outputs : p->n_regions) - regions_of_state(p, i)) return refuse(why, "state %d is in %s %d", (int)i, rows ? "output" : "region", (int)s.place);
    if (rows && p->inputs[i].type != p->outputs[s.place].type) return refuse(why, "state %d has another element type than output %d", (int)i, (int)s.place);
  }
  for (int32_t i = 0; i < p->n_packs; i++) {
    pack_words k = p->packs[i];
    if (k.input < 0 || k.input >= p->n_inputs || p->inputs[k.input].kind != CAPTURED_INPUT) return refuse(why, "pack %d is of no captured input", (int)i);
    if (p->inputs[k.input].type != FLOAT && !is_narrow(p->inputs[k.input].type)) return refuse(why, "pack %d is of an input with other elements than floats or bytes", (int)i);
    if (!is_size(p, k.offset) || !is_size(p, k.k) || !is_size(p, k.n) || !is_size(p, k.stride_k) || !is_size(p, k.stride_n))
      return refuse(why, "a size of pack %d is not in the table of sizes", (int)i);
  }
  return true;
}

static bool values(const plan *p, fault *why) {
  for (int32_t i = 0; i < p->n_values; i++) {
    value_words v = p->values[i];
    if (v.kind < SCANNED || v.kind > (p->form == LOOP_FORM ? STEP_NUMBER : PACK)) return refuse(why, "value %d is of kind %d", (int)i, (int)v.kind);
    bool input = v.kind == SCANNED || v.kind == CAPTURED;
    const int32_t indices[] = {p->n_inputs, p->n_inputs, 1, p->n_regions, p->n_regions, p->n_outputs, p->n_states, p->n_states, p->n_packs, 1};
    if (v.index < 0 || v.index >= indices[v.kind] || (input && p->inputs[v.index].kind != (v.kind == SCANNED ? SCANNED_INPUT : CAPTURED_INPUT)))
      return refuse(why, "value %d has index %d, which is no such thing", (int)i, (int)v.index);
    if (element_of(v.type) == NO_ELEMENT) return refuse(why, "value %d has element type %d, which this format does not have", (int)i, (int)v.type);
    const bool of_input = input || v.kind == OLD || v.kind == NEW; // the states are the first inputs
    const int32_t kept = of_input ? p->inputs[v.index].type : v.kind == STACKED ? p->outputs[v.index].type : v.kind == PACK ? FLOAT : v.kind == STEP_NUMBER ? INT64 : v.type;
    if (v.type != kept) return refuse(why, "value %d has element type %d, and it is kept as %d", (int)i, (int)v.type, (int)kept);
    if (!is_size(p, v.count) || !is_size(p, v.offset)) return refuse(why, "a size of value %d is not in the table of sizes", (int)i);
  }
  return true;
}

static bool operand(const plan *p, int32_t i, int32_t k, fault *why) {
  const instruction_words *w = p->instructions + i;
  const operand_words *o = w->operand + k;
  operation op = operation_of(w->op);
  if (o->value == NO_VALUE) return k >= op.least || refuse(why, "instruction %d has no operand %d", (int)i, (int)k);
  if (k >= w->operands || o->value < 0 || o->value >= p->n_values) return refuse(why, "operand %d of instruction %d is no value", (int)k, (int)i);
  bool sizes = is_size(p, o->offset);
  for (int d = 0; d < AXES; d++) sizes = sizes && is_size(p, o->strides[d]);
  if (!sizes) return refuse(why, "a size of operand %d of instruction %d is not in the table of sizes", (int)k, (int)i);
  int32_t kind = p->values[o->value].kind;
  if (k == 0 && kind != TEMPORARY && kind != ROWS && kind != STACKED && kind != NEW) return refuse(why, "instruction %d writes into what is given", (int)i);
  if ((kind == PACK) != (w->op == GEMM && k == 2)) return refuse(why, "operand %d of instruction %d %s a packed matrix", (int)k, (int)i, kind == PACK ? "cannot be" : "must be");
  return true;
}

// All operands of an instruction have the same type, except for casts and integer indices, and a kernel must exist for it.
static bool types(const plan *p, int32_t i, fault *why) {
  const instruction_words *w = p->instructions + i;
  const family kind = (family)operation_of(w->op).family;
  const int32_t type = p->values[w->operand[kind == SEARCH ? 1 : 0].value].type;
  if (kind == SEARCH && p->values[w->operand[0].value].type != INT64) return refuse(why, "instruction %d gives no indices", (int)i);
  for (int32_t k = kind == SEARCH ? 2 : 1; k < w->operands; k++)
    if (w->operand[k].value != NO_VALUE && w->op != CAST && p->values[w->operand[k].value].type != (kind == INDEXED && k == 2 ? INT64 : type))
      return refuse(why, "operand %d of instruction %d has another element type than its result", (int)k, (int)i);
  return operation_of(w->op).elements >> element_of(type) & 1 || refuse(why, "instruction %d is operation %d, which this library does not have for element type %d", (int)i, (int)w->op, (int)type);
}

static bool instructions(const plan *p, fault *why) {
  for (int32_t i = 0; i < p->n_instructions; i++) {
    const instruction_words *w = p->instructions + i;
    operation op = operation_of(w->op);
    if (op.family == UNKNOWN) return refuse(why, "instruction %d is operation %d, which this library does not have", (int)i, (int)w->op);
    if (w->flags) return refuse(why, "instruction %d has flags, which format 1 has none of", (int)i);
    if (w->operands < op.least || w->operands > op.most) return refuse(why, "instruction %d has %d operands", (int)i, (int)w->operands);
    bool sizes = is_size(p, w->m) && is_size(p, w->n) && is_size(p, w->k);
    for (int d = 0; d < AXES; d++) sizes = sizes && is_size(p, w->dims[d]);
    if (!sizes) return refuse(why, "a size of instruction %d is not in the table of sizes", (int)i);
    for (int32_t k = 0; k < OPERANDS; k++)
      if (!operand(p, i, k, why)) return false;
    if (!types(p, i, why)) return false;
  }
  // sorted and disjoint: an instruction's addresses move whenever it runs, so it belongs to one phase only
  int64_t next = 0;
  for (int32_t i = 0; i < p->n_phases; i++) {
    phase_words f = p->phases[i];
    if (f.stepwise < 0 || f.stepwise > 1 || f.first < next || f.count < 0 || (int64_t)f.first + f.count > p->n_instructions)
      return refuse(why, "phase %d is out of range or overlaps the one before", (int)i);
    next = (int64_t)f.first + f.count;
  }
  return true;
}

static bool read(plan *p, int64_t n, fault *why) {
  const int32_t *w = p->words;
  if (n < HEADER || w[0] != MAGIC) return refuse(why, "this is no plan of format 1");
  if (w[1] != n) return refuse(why, "the plan has %lld words and says %d", (long long)n, (int)w[1]);
  if (!counts(p, w, why)) return false;
  reader r = {w + HEADER, w + n, why};
  if (!(p->symbols = (const symbol_words *)section(&r, "symbols", p->n_symbols, 2))) return false;
  if (!(p->sizes = section(&r, "sizes", p->n_sizes, 1 + p->n_symbols))) return false;
  p->inputs = calloc((size_t)p->n_inputs + 1, sizeof *p->inputs);
  p->outputs = calloc((size_t)p->n_outputs + 1, sizeof *p->outputs);
  if (!p->inputs || !p->outputs) return refuse(why, "out of memory");
  if (!ports(p, &r, p->inputs, p->n_inputs, true) || !ports(p, &r, p->outputs, p->n_outputs, false)) return false;
  if (!(p->regions = section(&r, "regions", p->n_regions, 1))) return false;
  if (!(p->states = (const state_words *)section(&r, "states", p->n_states, 3))) return false;
  if (!(p->packs = (const pack_words *)section(&r, "packs", p->n_packs, 6))) return false;
  const int32_t *constants = section(&r, "constants", p->n_constants, 1);
  if (!constants) return false;
  if (!(p->constants = malloc(WORD * ((size_t)p->n_constants + 1)))) return refuse(why, "out of memory");
  memcpy(p->constants, constants, WORD * (size_t)p->n_constants);
  if (!(p->values = (const value_words *)section(&r, "values", p->n_values, 5))) return false;
  if (!(p->instructions = (const instruction_words *)section(&r, "instructions", p->n_instructions, sizeof(instruction_words) / 4))) return false;
  if (!(p->phases = (const phase_words *)section(&r, "phases", p->n_phases, 3))) return false;
  if (r.at != r.end) return refuse(why, "the plan goes on after its phases");
  return order_of_inputs(p, why) && symbols_and_sizes(p, why) && states_and_packs(p, why) && values(p, why) && instructions(p, why) && growth_is_valid(p, why);
}

plan *plan_read(const void *bytes, size_t count, fault *why) {
  if (count % 4 || count / 4 > MOST_ELEMENTS) {
    refuse(why, "the plan has %zu bytes, which are no words", count);
    return 0;
  }
  plan *p = calloc(1, sizeof *p);
  if (p) p->words = malloc(count + 4);
  if (!p || !p->words) {
    plan_free(p);
    refuse(why, "out of memory");
    return 0;
  }
  if (count) memcpy(p->words, bytes, count);
  if (read(p, (int64_t)(count / 4), why)) return p;
  plan_free(p);
  return 0;
}

void plan_free(plan *p) {
  if (!p) return;
  free(p->words);
  free(p->inputs);
  free(p->outputs);
  free(p->constants);
  free(p);
}
