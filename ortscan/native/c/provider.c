// OrtscanExecutionProvider: claims loops of unmodified models for which a planner has plans.
#include "exported.h"
#include "provider_claim.h"
#include "provider_graph.h"
#include "provider_run.h"
#include "tensor.h"
#include "version.h"
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
// declared here because the header of Windows clashes with names used here
enum { PIN = 1, FROM_ADDRESS = 4 };
__declspec(dllimport) int __stdcall GetModuleHandleExA(unsigned long, const char *, void **);
#endif
#if defined(__APPLE__)
#include <dlfcn.h>
#endif

enum { HANDS_CAPTURES_OVER = 27, PROFILES = 25 }; // of onnxruntime 1

static const char NAME[] = "OrtscanExecutionProvider";

typedef struct {
  OrtEpFactory base;
  host host;
} factory;

// `claims`: the claimed nodes of the latest graph. onnxruntime compiles a graph before it asks about the next.
typedef struct {
  OrtEp base;
  host host;
  bool asks; // ask the planner even if the model stores an answer
  claim *claims;
  profile *profile;
} provider;

static void drop_claims(provider *p) {
  while (p->claims) {
    claim *next = p->claims->next;
    claim_release(p->claims);
    p->claims = next;
  }
}

static OrtStatus *CALL get_capability(OrtEp *ep, const OrtGraph *graph, OrtSupported *supported) {
  provider *p = (void *)ep;
  const OrtApi *api = p->host.api;
  const OrtEpApi *provider_api = GetEpApi();
  const OrtFusion fusion = {OBJECT_VERSION, false};
  OrtModelMetadata *metadata = 0;
  size_t count;
  const OrtNode **nodes = list_of(api, GRAPH_NODES, graph, &count);
  drop_claims(p);
  for (size_t i = 0; nodes && i < count; i++) {
    if (!is_standard(api, nodes[i], "Scan") && !is_standard(api, nodes[i], "Loop")) continue;
    if (!metadata && !p->asks) went_well(api, Graph_GetModelMetadata(graph, &metadata));
    claim *c = claim_node(&p->host, graph, nodes[i], metadata);
    if (c && went_well(api, AddNodesToFuse(supported, nodes + i, 1, &fusion))) c->next = p->claims, p->claims = c;
    else if (c) claim_release(c);
  }
  if (metadata) ReleaseModelMetadata(metadata);
  free(nodes);
  return 0;
}

// Return whether the claimed node computes all outputs of the fused node, and no other node computes any of them.
static bool stands_for(const OrtApi *api, const OrtNode *fused, const claim *c) {
  size_t count;
  const OrtValueInfo **outputs = list_of(api, NODE_OUTPUTS, fused, &count);
  bool any = false, all = outputs;
  for (size_t k = 0; k < count && all; k++) {
    const char *name = name_of(api, outputs[k]);
    bool found = !*name;
    for (int32_t i = 0; i < c->n_results && !found; i++) any |= found = !strcmp(c->results[i].name, name);
    all = found;
  }
  free(outputs);
  return any && all;
}

static OrtStatus *CALL compile(OrtEp *ep, const OrtGraph **graphs, const OrtNode **fused, size_t count, OrtComputeInfo **infos, OrtNode **saved) {
  const provider *p = (void *)ep;
  const OrtApi *api = p->host.api;
  (void)graphs, (void)saved;
  for (size_t i = 0; i < count; i++) {
    claim *c = p->claims;
    while (c && !stands_for(api, fused[i], c)) c = c->next;
    infos[i] = c ? compute_info_new(c, fused[i], p->profile) : 0;
    const char *name = 0;
    if (infos[i] && went_well(api, Node_GetName(fused[i], &name)) && name) log_line(&p->host, LOG_INFO, "%s runs as %s", c->title, name);
    if (infos[i]) continue;
    while (i) compute_info_free(infos[--i]), infos[i] = 0;
    return CreateStatus(STATUS_FAIL, "OrtscanExecutionProvider: a loop that was claimed is not the one to compile");
  }
  return 0;
}

static void CALL release_infos(OrtEp *ep, OrtComputeInfo **infos, size_t count) {
  (void)ep;
  for (size_t i = 0; i < count; i++) compute_info_free(infos[i]);
}

static OrtStatus *CALL create_profiler(OrtEp *ep, OrtProfiler **made) { return profiler_new(((provider *)(void *)ep)->profile, made); }

static const char *CALL ep_name(const OrtEp *e) { return (void)e, NAME; }
static const char *CALL factory_name(const OrtEpFactory *f) { return (void)f, NAME; }
static const char *CALL vendor(const OrtEpFactory *f) { return (void)f, "ortscan"; }
static const char *CALL version(const OrtEpFactory *f) { return (void)f, "1.0.0"; }
static uint32_t CALL vendor_id(const OrtEpFactory *f) { return (void)f, 0xFFFE; }
static bool CALL is_stream_aware(const OrtEpFactory *f) { return (void)f, false; }
static OrtStatus *CALL no_transfer(OrtEpFactory *f, void **transfer) { return (void)f, *transfer = 0, (OrtStatus *)0; }

static OrtStatus *CALL devices_of(OrtEpFactory *base, const OrtDevice *const *devices, size_t count, OrtEpDevice **ours, size_t most, size_t *given) {
  const OrtApi *api = ((factory *)(void *)base)->host.api;
  const OrtEpApi *provider_api = GetEpApi();
  *given = 0;
  for (size_t i = 0; i < count && *given < most && !*given; i++) {
    if (HardwareDevice_Type(devices[i]) != CPU_DEVICE) continue;
    OrtStatus *failed = CreateEpDevice(base, devices[i], 0, 0, ours);
    if (failed) return failed;
    ++*given;
  }
  return 0;
}

static OrtStatus *CALL create_ep(OrtEpFactory *base, const OrtDevice *const *devices, const void *const *about, size_t count, const OrtSessionOptions *options, const OrtLogger *log, OrtEp **ep) {
  const OrtApi *api = ((factory *)(void *)base)->host.api;
  int asks = 0;
  (void)devices, (void)about, (void)count;
  provider *made = calloc(1, sizeof *made);
  if (!made) return CreateStatus(STATUS_FAIL, "OrtscanExecutionProvider: out of memory");
  made->base.version = OBJECT_VERSION;
  made->base.GetName = ep_name, made->base.GetCapability = get_capability, made->base.Compile = compile, made->base.ReleaseNodeComputeInfos = release_infos;
  made->host = ((factory *)(void *)base)->host, made->host.logger = log;
  if (!(made->profile = profile_new(&made->host))) return free(made), CreateStatus(STATUS_FAIL, "OrtscanExecutionProvider: out of memory");
  if (is_as_of(made->host.base->GetVersionString(), PROFILES)) made->base.version = PROFILER_VERSION, made->base.CreateProfiler = create_profiler;
  made->asks = went_well(api, HasSessionConfigEntry(options, "ep.ortscanexecutionprovider.ask", &asks)) && asks;
  *ep = &made->base;
  return 0;
}

static void CALL release_ep(OrtEpFactory *base, OrtEp *ep) {
  (void)base;
  if (ep) drop_claims((void *)ep), profile_release(((provider *)(void *)ep)->profile);
  free(ep);
}

// Keep the library in memory, because sessions call it after it was unregistered. On other systems a linker flag does this.
static void stay(void) {
#if defined(_WIN32)
  void *mine;
  GetModuleHandleExA(PIN | FROM_ADDRESS, NAME, &mine);
#elif defined(__APPLE__)
  Dl_info mine;
  if (dladdr((void *)NAME, &mine)) dlopen(mine.dli_fname, RTLD_NOW | RTLD_NODELETE);
#endif
}

EXPORTED OrtStatus *CALL CreateEpFactories(const char *registered, const OrtApiBase *base, const void *log, OrtEpFactory **factories, size_t most, size_t *given) {
  const OrtApi *api = is_as_of(base->GetVersionString(), TABLE_VERSION) ? base->GetApi(TABLE_VERSION) : 0; // older versions would write to stderr
  (void)registered, (void)log;
  *given = 0;
  if (!api || !most) return 0; // no devices; models run as without the library
  factory *made = calloc(1, sizeof *made);
  if (!made) return CreateStatus(STATUS_FAIL, "OrtscanExecutionProvider: out of memory");
  stay();
  know_table(api, base->GetVersionString());
  made->host = (host){api, base, 0, is_as_of(base->GetVersionString(), HANDS_CAPTURES_OVER)};
  made->base = (OrtEpFactory){
    .version = OBJECT_VERSION, .GetName = factory_name, .GetVendor = vendor, .GetSupportedDevices = devices_of, .CreateEp = create_ep, .ReleaseEp = release_ep,
    .GetVendorId = vendor_id, .GetVersion = version, .CreateDataTransfer = no_transfer, .IsStreamAware = is_stream_aware};
  factories[0] = &made->base;
  *given = 1;
  return 0;
}

// Factories are never freed, because live sessions still release their providers to them.
EXPORTED OrtStatus *CALL ReleaseEpFactory(OrtEpFactory *f) { return (void)f, (OrtStatus *)0; }
