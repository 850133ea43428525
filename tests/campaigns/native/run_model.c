// Runs a model with the library of loop plans and no other language: run_model ONNXRUNTIME LIBRARY MODEL RUNS [THREADS]
//
// ONNXRUNTIME is its shared object, LIBRARY what `ortscan native --library-path` prints ("" to run without), MODEL a file whose inputs
// are floats of known sizes. Each element i of input k is (7 * i + 3 * k) % 16 / 16 - 0.5. Prints each output's elements in a line, or
// ends with 1 and what went wrong. THREADS of them run one session at once, RUNS times each, and must all get the same.
//
// In C++, with onnxruntime's header, main() begins
//     Ort::SessionOptions options;
//     options.RegisterCustomOpsLibrary(library);
//     Ort::Session session(env, model, options);
// Here no header of onnxruntime is needed: functions have fixed places in its table, see abi.h.
#include "abi.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct OrtEnv OrtEnv;
typedef struct OrtSession OrtSession;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtAllocator OrtAllocator;
typedef struct OrtTypeInfo OrtTypeInfo;
#define GetErrorMessage FROM_TABLE(2, const char *, const OrtStatus *)
#define CreateEnv FROM_TABLE(3, OrtStatus *, int, const char *, OrtEnv **)
#define CreateSession FROM_TABLE(7, OrtStatus *, const OrtEnv *, const char *, const OrtSessionOptions *, OrtSession **)
#define Run FROM_TABLE(9, OrtStatus *, OrtSession *, const void *, const char *const *, const OrtValue *const *, size_t, const char *const *, size_t, OrtValue **)
#define CreateSessionOptions FROM_TABLE(10, OrtStatus *, OrtSessionOptions **)
#define SetIntraOpNumThreads FROM_TABLE(24, OrtStatus *, OrtSessionOptions *, int)
#define SessionGetInputCount FROM_TABLE(30, OrtStatus *, const OrtSession *, size_t *)
#define SessionGetOutputCount FROM_TABLE(31, OrtStatus *, const OrtSession *, size_t *)
#define SessionGetInputTypeInfo FROM_TABLE(33, OrtStatus *, const OrtSession *, size_t, OrtTypeInfo **)
#define SessionGetInputName FROM_TABLE(36, OrtStatus *, const OrtSession *, size_t, OrtAllocator *, char **)
#define SessionGetOutputName FROM_TABLE(37, OrtStatus *, const OrtSession *, size_t, OrtAllocator *, char **)
#define CreateTensorWithData FROM_TABLE(49, OrtStatus *, const OrtMemoryInfo *, void *, size_t, const int64_t *, size_t, int, OrtValue **)
#define CastTypeInfoToTensorInfo FROM_TABLE(55, OrtStatus *, const OrtTypeInfo *, const OrtShape **)
#define GetTensorShapeElementCount FROM_TABLE(64, OrtStatus *, const OrtShape *, size_t *)
#define CreateCpuMemoryInfo FROM_TABLE(69, OrtStatus *, int, int, OrtMemoryInfo **)
#define GetAllocatorWithDefaultOptions FROM_TABLE(78, OrtStatus *, OrtAllocator **)
#define ReleaseEnv FROM_TABLE(92, void, OrtEnv *)
#define ReleaseMemoryInfo FROM_TABLE(94, void, OrtMemoryInfo *)
#define ReleaseSession FROM_TABLE(95, void, OrtSession *)
#define ReleaseValue FROM_TABLE(96, void, OrtValue *)
#define ReleaseTypeInfo FROM_TABLE(98, void, OrtTypeInfo *)
#define ReleaseSessionOptions FROM_TABLE(100, void, OrtSessionOptions *)

enum { MOST = 16, MOST_THREADS = 64, FLOAT = 1 };
static const OrtApi *api;
static OrtSession *session;
static size_t n_inputs, n_outputs;
static char *inputs[MOST], *outputs[MOST];
static OrtValue *given[MOST];
static int runs;

static void *end(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}
static void check(const char *what, OrtStatus *failed) {
  if (failed) end(what, GetErrorMessage(failed));
}
static void *symbol(const char *file, const char *name) {
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL), *found = library ? dlsym(library, name) : 0;
  return found ? found : end(file, dlerror());
}

static size_t elements(const OrtValue *value, float **data) {
  OrtShape *shape = 0;
  size_t count = 0;
  check("an output's shape", GetTensorTypeAndShape(value, &shape));
  check("an output's size", GetTensorShapeElementCount(shape, &count));
  check("an output's data", GetTensorMutableData(value, (void **)data));
  ReleaseTensorTypeAndShapeInfo(shape);
  return count;
}

static bool same(const OrtValue *a, const OrtValue *b) {
  float *x, *y;
  const size_t count = elements(a, &x);
  return elements(b, &y) == count && !memcmp(x, y, count * sizeof *x);
}

static OrtValue *input(size_t k, const OrtMemoryInfo *memory) {
  OrtTypeInfo *type = 0;
  const OrtShape *shape = 0;
  size_t axes = 0, count = 0;
  int64_t dims[MOST];
  check("an input's type", SessionGetInputTypeInfo(session, k, &type));
  check("an input's type", CastTypeInfoToTensorInfo(type, &shape));
  check("an input's axes", GetDimensionsCount(shape, &axes));
  if (axes > MOST) end(inputs[k], "too many axes");
  check("an input's sizes", GetDimensions(shape, dims, axes));
  check("an input's size", GetTensorShapeElementCount(shape, &count));
  float *data = malloc(count * sizeof *data + 1);
  for (size_t i = 0; data && i < count; i++) data[i] = (float)((7 * i + 3 * k) % 16) / 16 - 0.5f;
  OrtValue *made = 0;
  check("an input", CreateTensorWithData(memory, data, count * sizeof *data, dims, axes, FLOAT, &made));
  ReleaseTypeInfo(type);
  return made;
}

static void *run(void *results) {
  OrtValue **first = results;
  for (int r = 0; r < runs; r++) {
    OrtValue *made[MOST] = {0};
    check("the run", Run(session, 0, (const char *const *)inputs, (const OrtValue *const *)given, n_inputs, (const char *const *)outputs, n_outputs, made));
    for (size_t i = 0; i < n_outputs; i++) {
      if (!r) {
        first[i] = made[i];
        continue;
      }
      if (!same(first[i], made[i])) end(outputs[i], "another run gives other numbers");
      ReleaseValue(made[i]);
    }
  }
  return 0;
}

int main(int count, char **given_words) {
  if (count < 5) end(given_words[0], "ONNXRUNTIME LIBRARY MODEL RUNS [THREADS]");
  const OrtApiBase *(*base)(void) = (const OrtApiBase *(*)(void))symbol(given_words[1], "OrtGetApiBase");
  if (!(api = base()->GetApi(API_VERSION))) end(given_words[1], "older than 1.17");
  OrtEnv *env = 0;
  OrtSessionOptions *options = 0;
  OrtMemoryInfo *memory = 0;
  OrtAllocator *allocator = 0;
  check("an environment", CreateEnv(3, "run_model", &env));
  check("options", CreateSessionOptions(&options));
  check("one thread", SetIntraOpNumThreads(options, 1));
  if (*given_words[2]) {
    OrtStatus *(*registering)(OrtSessionOptions *, const OrtApiBase *) = (OrtStatus * (*)(OrtSessionOptions *, const OrtApiBase *)) symbol(given_words[2], "RegisterCustomOps");
    check("the library", registering(options, base()));
  }
  check("the session", CreateSession(env, given_words[3], options, &session));
  check("its inputs", SessionGetInputCount(session, &n_inputs));
  check("its outputs", SessionGetOutputCount(session, &n_outputs));
  if (n_inputs > MOST || n_outputs > MOST) end(given_words[3], "too many inputs or outputs");
  check("an allocator", GetAllocatorWithDefaultOptions(&allocator));
  check("memory", CreateCpuMemoryInfo(0, 0, &memory));
  for (size_t i = 0; i < n_outputs; i++) check("a name", SessionGetOutputName(session, i, allocator, outputs + i));
  for (size_t i = 0; i < n_inputs; i++) {
    check("a name", SessionGetInputName(session, i, allocator, inputs + i));
    given[i] = input(i, memory);
  }
  runs = atoi(given_words[4]);
  const int threads = count > 5 ? atoi(given_words[5]) : 1;
  if (threads < 1 || threads > MOST_THREADS || runs < 1) end(given_words[0], "no such number of threads or runs");
  static OrtValue *results[MOST_THREADS][MOST];
  pthread_t thread[MOST_THREADS];
  for (int t = 0; t < threads; t++)
    if (pthread_create(thread + t, 0, run, results[t])) end("a thread", "cannot be had");
  for (int t = 0; t < threads; t++) pthread_join(thread[t], 0);
  for (size_t i = 0; i < n_outputs; i++) {
    float *data;
    const size_t n = elements(results[0][i], &data);
    for (int t = 1; t < threads; t++)
      if (!same(results[0][i], results[t][i])) end(outputs[i], "another thread gets other numbers");
    for (size_t k = 0; k < n; k++) printf(k ? " %.9g" : "%.9g", (double)data[k]);
    printf("\n");
    for (int t = 0; t < threads; t++) ReleaseValue(results[t][i]);
  }
  for (size_t i = 0; i < n_inputs; i++) ReleaseValue(given[i]);
  ReleaseSession(session);
  ReleaseSessionOptions(options);
  ReleaseMemoryInfo(memory);
  ReleaseEnv(env);
  return 0;
}
