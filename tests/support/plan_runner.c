// Runs a model in a session of the C interface, as a program in any language would: plan_runner MODEL INPUTS OUTPUTS RUNS [LIBRARY]
// INPUTS and OUTPUTS: tensors of floats, one after the other: for each the name's length and the name, the axes, the dims, the elements.
// Says the best time of a run in microseconds.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct { const void *(*GetApi)(uint32_t); const char *(*GetVersionString)(void); } OrtApiBase;
const OrtApiBase *OrtGetApiBase(void);

enum { MOST = 16, FLOAT = 1 };
static void *const *api;
#define FROM_TABLE(place, ...) ((void *(*)(__VA_ARGS__))api[place])

static void check(void *status) {
  if (!status) return;
  fprintf(stderr, "%s\n", ((const char *(*)(void *))api[2])(status));
  exit(1);
}

static uint64_t number(FILE *file) {
  uint64_t n = 0;
  if (fread(&n, sizeof n, 1, file) != 1) exit(2);
  return n;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void use(void *env, void *options, const char *library) {
  void **devices = 0;
  size_t count = 0;
  const void *chosen[2] = {0};
  check(FROM_TABLE(301, void *, const char *, const char *)(env, "ortscan", library));
  check(FROM_TABLE(303, void *, void ***, size_t *)(env, &devices, &count));
  for (size_t i = 0; i < count; i++) {
    const char *name = ((const char *(*)(const void *))api[312])(devices[i]);
    if (!strcmp(name, "OrtscanExecutionProvider")) chosen[0] = devices[i];
    if (!strcmp(name, "CPUExecutionProvider")) chosen[1] = devices[i];
  }
  if (!chosen[0]) exit(3);
  for (int i = 0; i < 2; i++)
    check(FROM_TABLE(304, void *, void *, const void *const *, size_t, const char *const *, const char *const *, size_t)(options, env, chosen + i, 1, 0, 0, 0));
}

int main(int count, char **given) {
  if (count < 5) return 4;
  api = OrtGetApiBase()->GetApi(23);
  void *env = 0, *options = 0, *session = 0, *memory = 0, *allocator = 0, *inputs[MOST] = {0}, *outputs[MOST] = {0};
  char *names[MOST] = {0}, *given_names[MOST] = {0};
  size_t n_inputs = 0, n_outputs = 0;
  check(FROM_TABLE(3, int, const char *, void **)(3, "test", &env));
  check(FROM_TABLE(10, void **)(&options));
  check(FROM_TABLE(24, void *, int)(options, 1));
  if (count > 5) use(env, options, given[5]);
  check(FROM_TABLE(7, void *, const char *, void *, void **)(env, given[1], options, &session));
  check(FROM_TABLE(69, int, int, void **)(1, 0, &memory));
  FILE *file = fopen(given[2], "rb");
  for (n_inputs = 0; n_inputs < MOST && fgetc(file) != EOF; n_inputs++) {
    fseek(file, -1, SEEK_CUR);
    const size_t length = number(file);
    names[n_inputs] = calloc(length + 1, 1);
    if (fread(names[n_inputs], 1, length, file) != length) return 2;
    int64_t dims[8];
    const size_t axes = number(file);
    size_t size = sizeof(float);
    for (size_t d = 0; d < axes; d++) size *= (size_t)(dims[d] = (int64_t)number(file));
    void *data = malloc(size + 1);
    if (fread(data, 1, size, file) != size) return 2;
    check(FROM_TABLE(49, void *, void *, size_t, const int64_t *, size_t, int, void **)(memory, data, size, dims, axes, FLOAT, inputs + n_inputs));
  }
  fclose(file);
  check(FROM_TABLE(78, void **)(&allocator));
  check(FROM_TABLE(31, void *, size_t *)(session, &n_outputs));
  for (size_t i = 0; i < n_outputs; i++) check(FROM_TABLE(37, void *, size_t, void *, char **)(session, i, allocator, given_names + i));
  double best = 1e30;
  for (int run = atoi(given[4]); run > 0; run--) {
    for (size_t i = 0; i < n_outputs; i++) {
      if (outputs[i]) ((void (*)(void *))api[96])(outputs[i]);
      outputs[i] = 0;
    }
    const double start = now();
    check(FROM_TABLE(9, void *, void *, char *const *, void *const *, size_t, char *const *, size_t, void **)(session, 0, names, inputs, n_inputs, given_names, n_outputs, outputs));
    if (now() - start < best) best = now() - start;
  }
  file = fopen(given[3], "wb");
  for (size_t i = 0; i < n_outputs; i++) {
    void *data = 0;
    size_t size = 0;
    check(FROM_TABLE(51, void *, void **)(outputs[i], &data));
    check(FROM_TABLE(318, void *, size_t *)(outputs[i], &size));
    fwrite(data, 1, size, file);
  }
  fclose(file);
  printf("%.1f\n", best);
  return 0;
}
