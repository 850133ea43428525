// ai.ortscan::Scan1, the operator of onnxruntime that runs a loop plan.
#include "abi.h"
#include "base64.h"
#include "loop.h"
#include <stdlib.h>

enum { ROOM = 32 }; // tensors that need no memory of their own
#define TRY(call) do { OrtStatus *failed = (call); if (failed) return failed; } while (0)

typedef struct {
  const OrtApi *api;
  loop *loop;
} operator;

static OrtStatus *say(const OrtApi *api, const fault *why) {
  fault all;
  refuse(&all, "ai.ortscan::Scan1: %.220s", why->text);
  return CreateStatus(STATUS_INVALID_ARGUMENT, all.text);
}

static OrtStatus *say_text(const OrtApi *api, const char *text) {
  fault why;
  refuse(&why, "%s", text);
  return say(api, &why);
}

static OrtStatus *tensor_of(const OrtApi *api, const OrtValue *value, tensor *x) {
  OrtShape *shape;
  void *data = 0;
  TRY(GetTensorMutableData(value, &data));
  x->data = data;
  TRY(GetTensorTypeAndShape(value, &shape));
  OrtStatus *failed = GetTensorElementType(shape, &x->type);
  if (!failed) failed = GetDimensionsCount(shape, &x->axes);
  if (!failed && x->axes <= MOST_RANK + 1) failed = GetDimensions(shape, x->dims, x->axes);
  ReleaseTensorTypeAndShapeInfo(shape);
  return failed;
}

static void CALL destroy(void *kernel) {
  if (kernel) loop_free(((operator *)kernel)->loop);
  free(kernel);
}

static OrtStatus *constants_of(const OrtApi *api, const OrtKernelInfo *info, tensor *constants, size_t count) {
  for (size_t i = 0; i < count; i++) {
    int is_constant = 0;
    const OrtValue *value = 0;
    TRY(KernelInfoGetConstantInput_tensor(info, i, &is_constant, &value));
    if (is_constant && value) TRY(tensor_of(api, value, constants + i));
  }
  return 0;
}

static OrtStatus *plan_of(const OrtApi *api, const OrtKernelInfo *info, char **bytes, size_t *count) {
  *bytes = 0, *count = 0;
  OrtStatus *asked = KernelInfoGetAttribute_string(info, "plan", 0, count); // says the size, with a zero at the end
  if (asked && !*count) return asked;
  if (asked) ReleaseStatus(asked);
  if (!(*bytes = malloc(*count + 1))) return say_text(api, "out of memory");
  TRY(KernelInfoGetAttribute_string(info, "plan", *bytes, count));
  if (*count) --*count;
  return base64_decode(*bytes, *count, count) ? 0 : say_text(api, "the attribute plan is no base64");
}

static OrtStatus *make(const OrtApi *api, const OrtKernelInfo *info, operator *made, char **bytes, tensor **constants) {
  size_t count, inputs, outputs;
  fault why;
  TRY(plan_of(api, info, bytes, &count));
  TRY(KernelInfo_GetInputCount(info, &inputs));
  TRY(KernelInfo_GetOutputCount(info, &outputs));
  if (inputs > MOST_PORTS || !(*constants = calloc(inputs + 1, sizeof **constants))) return say_text(api, "too many inputs");
  TRY(constants_of(api, info, *constants, inputs));
  if (!(made->loop = loop_new(*bytes, count, *constants, (int32_t)inputs, &why))) return say(api, &why);
  const plan *p = made->loop->plan;
  if (inputs == (size_t)p->n_inputs && outputs == (size_t)(p->n_states + p->n_outputs)) return 0;
  refuse(&why, "the node has %zu inputs and %zu outputs, and its plan has %d and %d", inputs, outputs, (int)p->n_inputs, (int)(p->n_states + p->n_outputs));
  return say(api, &why);
}

static OrtStatus *CALL create(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info, void **kernel) {
  (void)op;
  *kernel = 0;
  operator *made = calloc(1, sizeof *made);
  if (!made) return say_text(api, "out of memory");
  made->api = api;
  char *bytes = 0;
  tensor *constants = 0;
  OrtStatus *failed = make(api, info, made, &bytes, &constants);
  free(bytes);
  free(constants);
  if (failed) destroy(made);
  else *kernel = made;
  return failed;
}

static OrtStatus *run(const operator *o, OrtKernelContext *context, tensor *inputs, float **data) {
  static float nothing; // where an empty tensor has no address
  const OrtApi *api = o->api;
  const plan *p = o->loop->plan;
  const int32_t n_outputs = p->n_states + p->n_outputs;
  float **outputs = data + p->n_inputs;
  fault why;
  int64_t steps = 0, dims[MOST_RANK + 1];
  for (int32_t i = 0; i < p->n_inputs; i++) {
    const OrtValue *value = 0;
    TRY(KernelContext_GetInput(context, (size_t)i, &value));
    if (!value) return say_text(api, "an input is missing");
    TRY(tensor_of(api, value, inputs + i));
    data[i] = inputs[i].data ? inputs[i].data : &nothing;
  }
  frame *f = loop_begin(o->loop, inputs, &steps, &why);
  if (!f) return say(api, &why);
  OrtStatus *failed = 0;
  for (int32_t i = 0; i < n_outputs && !failed; i++) {
    OrtValue *value = 0;
    void *address = 0;
    const size_t axes = dims_of_output(f, i, steps, dims);
    failed = KernelContext_GetOutput(context, (size_t)i, dims, axes, &value);
    if (!failed && !value) failed = say_text(api, "an output is missing");
    if (!failed) failed = GetTensorMutableData(value, &address);
    outputs[i] = address ? address : &nothing;
  }
  if (!failed) frame_run(f, &(run_data){data, outputs, steps});
  loop_end(o->loop, f);
  return failed;
}

static OrtStatus *CALL compute(void *kernel, OrtKernelContext *context) {
  const operator *o = kernel;
  const OrtApi *api = o->api;
  const plan *p = o->loop->plan;
  const size_t n_inputs = (size_t)p->n_inputs, n_data = n_inputs + (size_t)(p->n_states + p->n_outputs);
  if (n_data <= ROOM) {
    tensor inputs[ROOM];
    float *data[ROOM];
    return run(o, context, inputs, data);
  }
  tensor *inputs = malloc(sizeof *inputs * n_inputs);
  float **data = malloc(sizeof *data * n_data);
  OrtStatus *failed = inputs && data ? run(o, context, inputs, data) : say_text(api, "out of memory");
  free(inputs);
  free(data);
  return failed;
}

static const char *CALL name(const OrtCustomOp *o) { return (void)o, "Scan1"; }
static const char *CALL provider(const OrtCustomOp *o) { return (void)o, "CPUExecutionProvider"; }
static int CALL any_type(const OrtCustomOp *o, size_t i) { return (void)o, (void)i, ELEMENT_UNDEFINED; }
static int CALL float_type(const OrtCustomOp *o, size_t i) { return (void)o, (void)i, ELEMENT_FLOAT; }
static int CALL variadic(const OrtCustomOp *o, size_t i) { return (void)o, (void)i, VARIADIC; }
static int CALL default_memory(const OrtCustomOp *o, size_t i) { return (void)o, (void)i, 0; }
static size_t CALL one_port(const OrtCustomOp *o) { return (void)o, 1; }
static int CALL no(const OrtCustomOp *o) { return (void)o, 0; }
static int CALL one(const OrtCustomOp *o) { return (void)o, 1; }
static int CALL last_version(const OrtCustomOp *o) { return (void)o, INT32_MAX; }

// Outputs are all of one type, which format 1 fixes; others need an InferOutputShapeFn to say theirs.
static const OrtCustomOp SCAN = {
  .version = API_VERSION, .GetName = name, .GetExecutionProviderType = provider, .KernelDestroy = destroy, .CreateKernelV2 = create, .KernelComputeV2 = compute,
  .GetInputType = any_type, .GetInputTypeCount = one_port, .GetInputCharacteristic = variadic, .GetInputMemoryType = default_memory,
  .GetVariadicInputMinArity = one, .GetVariadicInputHomogeneity = no,
  .GetOutputType = float_type, .GetOutputTypeCount = one_port, .GetOutputCharacteristic = variadic, .GetVariadicOutputMinArity = one,
  .GetVariadicOutputHomogeneity = one, .GetStartVersion = one, .GetEndVersion = last_version};

// The domain lives as long as the process, for sessions keep its address; one for each onnxruntime of the process.
typedef struct { const OrtApi *api; OrtDomain *domain; } registered;

static OrtStatus *domain_of(const OrtApi *api, OrtDomain **domain) {
  static _Atomic(registered *) known[8];
  registered *mine = calloc(1, sizeof *mine);
  if (!mine) return say_text(api, "out of memory");
  mine->api = api;
  OrtStatus *failed = CreateCustomOpDomain("ai.ortscan", &mine->domain);
  if (!failed) failed = CustomOpDomain_Add(mine->domain, &SCAN);
  for (int i = 0; i < 8 && !failed; i++) {
    registered *there = 0;
    if (atomic_compare_exchange_strong(&known[i], &there, mine)) there = mine;
    if (there->api != api) continue;
    *domain = there->domain;
    if (there == mine) return 0;
    break;
  }
  if (!failed && !*domain) return *domain = mine->domain, (OrtStatus *)0; // the ninth onnxruntime
  if (mine->domain) ReleaseCustomOpDomain(mine->domain);
  free(mine);
  return failed;
}

#if defined(_WIN32)
__declspec(dllexport)
#else
__attribute__((visibility("default")))
#endif
OrtStatus *CALL RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base) {
  const OrtApi *api = base->GetApi(API_VERSION);
  OrtDomain *domain = 0;
  if (!api) return 0; // older than 1.17: there is no table to make an error with, and models run their Scan
  TRY(domain_of(api, &domain));
  return AddCustomOpDomain(options, domain);
}
