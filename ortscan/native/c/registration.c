// Registers the operators ai.ortscan::Scan1, Loop1 and Cell1.
#include "cell_operator.h"
#include "exported.h"
#include "inference.h"
#include "operator.h"
#include "tensor.h"
#include <stdatomic.h>
#include <stdlib.h>

static const char *CALL provider(const OrtCustomOp *o) { return (void)o, "CPUExecutionProvider"; }
static int CALL any_type(const OrtCustomOp *o, size_t i) { return (void)o, (void)i, ELEMENT_UNDEFINED; }
static int CALL variadic(const OrtCustomOp *o, size_t i) { return (void)o, (void)i, VARIADIC; }
static int CALL default_memory(const OrtCustomOp *o, size_t i) { return (void)o, (void)i, 0; }
static size_t CALL one_port(const OrtCustomOp *o) { return (void)o, 1; }
static int CALL no(const OrtCustomOp *o) { return (void)o, 0; }
static int CALL one(const OrtCustomOp *o) { return (void)o, 1; }
static int CALL last_version(const OrtCustomOp *o) { return (void)o, INT32_MAX; }

// An operator as onnxruntime knows it. onnxruntime passes it back to each of its functions.
typedef struct { OrtCustomOp operator; const OrtApi *api; form form; } described;

// A domain for each onnxruntime in the process. It is never freed because sessions keep its address.
typedef struct { described operators[3]; const OrtApi *api; OrtDomain *domain; } registered;

static const char *CALL name(const OrtCustomOp *o) { return ((const described *)o)->form == LOOP_FORM ? "Loop1" : "Scan1"; }
static const char *CALL name_of_cell(const OrtCustomOp *o) { return (void)o, "Cell1"; }

static OrtStatus *CALL create(const OrtCustomOp *o, const OrtApi *api, const OrtKernelInfo *info, void **kernel) {
  return kernel_create(api, info, ((const described *)o)->form, kernel);
}

static OrtStatus *CALL infer(const OrtCustomOp *o, OrtShapeInferContext *context) {
  infer_outputs(((const described *)o)->api, context);
  return 0; // the result is ignored
}

static OrtStatus *CALL create_cell(const OrtCustomOp *o, const OrtApi *api, const OrtKernelInfo *info, void **kernel) {
  return (void)o, cell_kernel_create(api, info, kernel);
}

static OrtStatus *CALL infer_cell(const OrtCustomOp *o, OrtShapeInferContext *context) {
  infer_cell_outputs(((const described *)o)->api, context);
  return 0;
}

static const OrtCustomOp LIKE_ALL = {
  .version = API_VERSION, .GetName = name, .GetExecutionProviderType = provider, .KernelDestroy = kernel_destroy, .CreateKernelV2 = create, .KernelComputeV2 = kernel_compute,
  .GetInputType = any_type, .GetInputTypeCount = one_port, .GetInputCharacteristic = variadic, .GetInputMemoryType = default_memory,
  .GetVariadicInputMinArity = one, .GetVariadicInputHomogeneity = no,
  .GetOutputType = any_type, .GetOutputTypeCount = one_port, .GetOutputCharacteristic = variadic, .GetVariadicOutputMinArity = one,
  .GetVariadicOutputHomogeneity = no, .InferOutputShapeFn = infer, .GetStartVersion = one, .GetEndVersion = last_version};

static OrtStatus *domain_of(const OrtApi *api, OrtDomain **domain) {
  static _Atomic(registered *) known[8];
  registered *mine = calloc(1, sizeof *mine);
  if (!mine) return CreateStatus(STATUS_FAIL, "ai.ortscan: out of memory");
  mine->api = api;
  OrtStatus *failed = CreateCustomOpDomain("ai.ortscan", &mine->domain);
  const isa *set = choose_isa();
  const int count = set && set->has_fast_cells ? 3 : 2; // without Cell1, onnxruntime runs recurrent nodes
  for (int i = 0; i < count && !failed; i++) {
    OrtCustomOp *one = &mine->operators[i].operator;
    mine->operators[i] = (described){LIKE_ALL, api, i == 1 ? LOOP_FORM : SCAN_FORM};
    if (i == 2) one->GetName = name_of_cell, one->CreateKernelV2 = create_cell, one->KernelComputeV2 = cell_kernel_compute, one->KernelDestroy = cell_kernel_destroy, one->InferOutputShapeFn = infer_cell;
    failed = CustomOpDomain_Add(mine->domain, one);
  }
  for (int i = 0; i < 8 && !failed; i++) {
    registered *there = 0;
    if (atomic_compare_exchange_strong(&known[i], &there, mine)) there = mine;
    if (there->api != api) continue;
    *domain = there->domain;
    if (there == mine) return 0;
    break;
  }
  if (!failed && !*domain) return *domain = mine->domain, (OrtStatus *)0; // no slot left: the ninth onnxruntime
  if (mine->domain) ReleaseCustomOpDomain(mine->domain);
  free(mine);
  return failed;
}

EXPORTED OrtStatus *CALL RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base) {
  const OrtApi *api = base->GetApi(API_VERSION);
  OrtDomain *domain = 0;
  if (!api) return 0; // older than 1.17: there is no table to make an error with, so models run their Scan
  know_table(api, base->GetVersionString());
  OrtStatus *failed = domain_of(api, &domain);
  return failed ? failed : AddCustomOpDomain(options, domain);
}
