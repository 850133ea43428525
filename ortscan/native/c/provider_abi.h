// The part of onnxruntime's C interface that the execution provider needs. The provider passes objects to onnxruntime as tables of addresses.
// The first word of a table is the version of the interface, which determines how long the table is.
#pragma once
#include "abi.h"
#include <stdbool.h>

enum { TABLE_VERSION = 24, OBJECT_VERSION = 23, PROFILER_VERSION = 25, PROVIDER_SLOTS = 64, CPU_DEVICE = 0, ARENA_ALLOCATOR = 1, DEFAULT_MEMORY = 0, STRING_ELEMENT = 8 };
enum { NO_ATTRIBUTE, INT_ATTRIBUTE, INTS_ATTRIBUTE, FLOAT_ATTRIBUTE, FLOATS_ATTRIBUTE, STRING_ATTRIBUTE, STRINGS_ATTRIBUTE, GRAPH_ATTRIBUTE, TENSOR_ATTRIBUTE };

typedef struct OrtGraph OrtGraph;
typedef struct OrtNode OrtNode;
typedef struct OrtValueInfo OrtValueInfo;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtDevice OrtDevice;
typedef struct OrtEpDevice OrtEpDevice;
typedef struct OrtSupported OrtSupported;
typedef struct OrtEnv OrtEnv;
typedef struct OrtSession OrtSession;
typedef struct OrtAllocator OrtAllocator;
typedef struct OrtModelMetadata OrtModelMetadata;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtLogger OrtLogger;
typedef struct OrtEvent OrtEvent;
typedef struct OrtEvents OrtEvents;
typedef struct { void *slot[80]; } OrtEpApi;
typedef struct { uint32_t version; bool drop_constants; } OrtFusion;

// The functions that run one fused node.
typedef struct OrtComputeInfo OrtComputeInfo;
struct OrtComputeInfo {
  uint32_t version;
  OrtStatus *(CALL *CreateState)(OrtComputeInfo *, void *context, void **state);
  OrtStatus *(CALL *Compute)(OrtComputeInfo *, void *state, OrtKernelContext *);
  void(CALL *ReleaseState)(OrtComputeInfo *, void *state);
};

// An object that onnxruntime calls when a profile begins and ends, and that adds events to the profile.
typedef struct OrtProfiler OrtProfiler;
struct OrtProfiler {
  uint32_t version;
  void(CALL *Release)(OrtProfiler *);
  OrtStatus *(CALL *StartProfiling)(OrtProfiler *, int64_t nanoseconds_since_start);
  void *StartEvent, *StopEvent;
  OrtStatus *(CALL *EndProfiling)(OrtProfiler *, OrtEvents *);
};

typedef struct OrtEp OrtEp;
struct OrtEp {
  uint32_t version;
  const char *(CALL *GetName)(const OrtEp *);
  OrtStatus *(CALL *GetCapability)(OrtEp *, const OrtGraph *, OrtSupported *);
  OrtStatus *(CALL *Compile)(OrtEp *, const OrtGraph **, const OrtNode **fused, size_t count, OrtComputeInfo **, OrtNode **);
  void(CALL *ReleaseNodeComputeInfos)(OrtEp *, OrtComputeInfo **, size_t count);
  void *not_given[11]; // from GetPreferredDataLayout to Sync
  OrtStatus *(CALL *CreateProfiler)(OrtEp *, OrtProfiler **); // as of version 25
  void *rest[PROVIDER_SLOTS];
};

typedef struct OrtEpFactory OrtEpFactory;
struct OrtEpFactory {
  uint32_t version;
  const char *(CALL *GetName)(const OrtEpFactory *);
  const char *(CALL *GetVendor)(const OrtEpFactory *);
  OrtStatus *(CALL *GetSupportedDevices)(OrtEpFactory *, const OrtDevice *const *, size_t count, OrtEpDevice **, size_t most, size_t *given);
  OrtStatus *(CALL *CreateEp)(OrtEpFactory *, const OrtDevice *const *, const void *const *, size_t, const OrtSessionOptions *, const OrtLogger *, OrtEp **);
  void(CALL *ReleaseEp)(OrtEpFactory *, OrtEp *);
  uint32_t(CALL *GetVendorId)(const OrtEpFactory *);
  const char *(CALL *GetVersion)(const OrtEpFactory *);
  void *ValidateCompiledModelCompatibilityInfo, *CreateAllocator, *ReleaseAllocator;
  OrtStatus *(CALL *CreateDataTransfer)(OrtEpFactory *, void **);
  bool(CALL *IsStreamAware)(const OrtEpFactory *);
  void *rest[PROVIDER_SLOTS];
};

#define CreateEnv FROM_TABLE(3, OrtStatus *, int, const char *, OrtEnv **)
#define CreateSessionFromArray FROM_TABLE(8, OrtStatus *, const OrtEnv *, const void *, size_t, const OrtSessionOptions *, OrtSession **)
#define Run FROM_TABLE(9, OrtStatus *, OrtSession *, const void *, const char *const *, const OrtValue *const *, size_t, const char *const *, size_t, OrtValue **)
#define CreateSessionOptions FROM_TABLE(10, OrtStatus *, OrtSessionOptions **)
#define SetSessionLogSeverityLevel FROM_TABLE(22, OrtStatus *, OrtSessionOptions *, int)
#define SetIntraOpNumThreads FROM_TABLE(24, OrtStatus *, OrtSessionOptions *, int)
#define SetInterOpNumThreads FROM_TABLE(25, OrtStatus *, OrtSessionOptions *, int)
#define SessionGetInputCount FROM_TABLE(30, OrtStatus *, const OrtSession *, size_t *)
#define SessionGetOutputCount FROM_TABLE(31, OrtStatus *, const OrtSession *, size_t *)
#define SessionGetInputName FROM_TABLE(36, OrtStatus *, const OrtSession *, size_t, OrtAllocator *, char **)
#define SessionGetOutputName FROM_TABLE(37, OrtStatus *, const OrtSession *, size_t, OrtAllocator *, char **)
#define CreateTensorWithDataAsOrtValue FROM_TABLE(49, OrtStatus *, const OrtMemoryInfo *, void *, size_t, const int64_t *, size_t, int, OrtValue **)
#define GetErrorMessage FROM_TABLE(2, const char *, const OrtStatus *)
#define CastTypeInfoToTensorInfo FROM_TABLE(55, OrtStatus *, const OrtTypeInfo *, const OrtShape **)
#define GetSymbolicDimensions FROM_TABLE(63, OrtStatus *, const OrtShape *, const char **, size_t)
#define CreateCpuMemoryInfo FROM_TABLE(69, OrtStatus *, int, int, OrtMemoryInfo **)
#define AllocatorFree FROM_TABLE(76, OrtStatus *, OrtAllocator *, void *)
#define GetAllocatorWithDefaultOptions FROM_TABLE(78, OrtStatus *, OrtAllocator **)
#define KernelContext_GetOutputCount FROM_TABLE(89, OrtStatus *, const OrtKernelContext *, size_t *)
#define ReleaseEnv FROM_TABLE(92, void, OrtEnv *)
#define ReleaseMemoryInfo FROM_TABLE(94, void, OrtMemoryInfo *)
#define ReleaseSession FROM_TABLE(95, void, OrtSession *)
#define ReleaseValue FROM_TABLE(96, void, OrtValue *)
#define ReleaseSessionOptions FROM_TABLE(100, void, OrtSessionOptions *)
#define ModelMetadataLookupCustomMetadataMap FROM_TABLE(116, OrtStatus *, const OrtModelMetadata *, OrtAllocator *, const char *, char **)
#define ReleaseModelMetadata FROM_TABLE(118, void, OrtModelMetadata *)
#define HasSessionConfigEntry FROM_TABLE(237, OrtStatus *, const OrtSessionOptions *, const char *, int *)
#define Logger_LogMessage FROM_TABLE(247, OrtStatus *, const OrtLogger *, int, const char *, const void *, int, const char *)
#define GetValueInfoName FROM_TABLE(289, OrtStatus *, const OrtValueInfo *, const char **)
#define GetValueInfoTypeInfo FROM_TABLE(290, OrtStatus *, const OrtValueInfo *, const OrtTypeInfo **)
#define HardwareDevice_Type FROM_TABLE(307, int, const OrtDevice *)
#define GetEpApi FROM_TABLE(317, const OrtEpApi *, void)
#define GetTensorSizeInBytes FROM_TABLE(318, OrtStatus *, const OrtValue *, size_t *)
#define ValueInfo_GetValueNumConsumers FROM_TABLE(324, OrtStatus *, const OrtValueInfo *, size_t *)
#define ValueInfo_IsGraphOutput FROM_TABLE(330, OrtStatus *, const OrtValueInfo *, bool *)
#define ValueInfo_GetInitializerValue FROM_TABLE(326, OrtStatus *, const OrtValueInfo *, const OrtValue **)
#define ValueInfo_IsConstantInitializer FROM_TABLE(331, OrtStatus *, const OrtValueInfo *, bool *)
#define Graph_GetOnnxIRVersion FROM_TABLE(335, OrtStatus *, const OrtGraph *, int64_t *)
#define Graph_GetNumOperatorSets FROM_TABLE(336, OrtStatus *, const OrtGraph *, size_t *)
#define Graph_GetOperatorSets FROM_TABLE(337, OrtStatus *, const OrtGraph *, const char **, int64_t *, size_t)
#define Graph_GetNumInputs FROM_TABLE(338, OrtStatus *, const OrtGraph *, size_t *)
#define Graph_GetInputs FROM_TABLE(339, OrtStatus *, const OrtGraph *, const OrtValueInfo **, size_t)
#define Graph_GetNumOutputs FROM_TABLE(340, OrtStatus *, const OrtGraph *, size_t *)
#define Graph_GetOutputs FROM_TABLE(341, OrtStatus *, const OrtGraph *, const OrtValueInfo **, size_t)
#define Graph_GetNumInitializers FROM_TABLE(342, OrtStatus *, const OrtGraph *, size_t *)
#define Graph_GetInitializers FROM_TABLE(343, OrtStatus *, const OrtGraph *, const OrtValueInfo **, size_t)
#define Graph_GetNumNodes FROM_TABLE(344, OrtStatus *, const OrtGraph *, size_t *)
#define Graph_GetNodes FROM_TABLE(345, OrtStatus *, const OrtGraph *, const OrtNode **, size_t)
#define Node_GetName FROM_TABLE(349, OrtStatus *, const OrtNode *, const char **)
#define Node_GetOperatorType FROM_TABLE(350, OrtStatus *, const OrtNode *, const char **)
#define Node_GetDomain FROM_TABLE(351, OrtStatus *, const OrtNode *, const char **)
#define Node_GetNumInputs FROM_TABLE(353, OrtStatus *, const OrtNode *, size_t *)
#define Node_GetInputs FROM_TABLE(354, OrtStatus *, const OrtNode *, const OrtValueInfo **, size_t)
#define Node_GetNumOutputs FROM_TABLE(355, OrtStatus *, const OrtNode *, size_t *)
#define Node_GetOutputs FROM_TABLE(356, OrtStatus *, const OrtNode *, const OrtValueInfo **, size_t)
#define Node_GetNumImplicitInputs FROM_TABLE(357, OrtStatus *, const OrtNode *, size_t *)
#define Node_GetImplicitInputs FROM_TABLE(358, OrtStatus *, const OrtNode *, const OrtValueInfo **, size_t)
#define Node_GetNumAttributes FROM_TABLE(359, OrtStatus *, const OrtNode *, size_t *)
#define Node_GetAttributes FROM_TABLE(360, OrtStatus *, const OrtNode *, const OrtAttribute **, size_t)
#define OpAttr_GetTensorAttributeAsOrtValue FROM_TABLE(362, OrtStatus *, const OrtAttribute *, OrtValue **)
#define OpAttr_GetType FROM_TABLE(363, OrtStatus *, const OrtAttribute *, int *)
#define OpAttr_GetName FROM_TABLE(364, OrtStatus *, const OrtAttribute *, const char **)
#define Node_GetNumSubgraphs FROM_TABLE(365, OrtStatus *, const OrtNode *, size_t *)
#define Node_GetSubgraphs FROM_TABLE(366, OrtStatus *, const OrtNode *, const OrtGraph **, size_t, const char **)
#define Graph_GetModelMetadata FROM_TABLE(387, OrtStatus *, const OrtGraph *, OrtModelMetadata **)
#define TensorTypeAndShape_HasShape FROM_TABLE(390, bool, const OrtShape *)

#define FROM_PROVIDER_TABLE(place, result, ...) ((result(CALL *)(__VA_ARGS__))provider_api->slot[place])
#define CreateEpDevice FROM_PROVIDER_TABLE(0, OrtStatus *, OrtEpFactory *, const OrtDevice *, const void *, const void *, OrtEpDevice **)
#define AddNodesToFuse FROM_PROVIDER_TABLE(2, OrtStatus *, OrtSupported *, const OrtNode *const *, size_t, const OrtFusion *)
#define CreateProfilingEvent FROM_PROVIDER_TABLE(65, OrtStatus *, int, int32_t, int32_t, const char *, int64_t, int64_t, const char *const *, const char *const *, size_t, OrtEvent **)
#define ReleaseProfilingEvent FROM_PROVIDER_TABLE(66, void, OrtEvent *)
#define ProfilingEventsContainer_AddEvents FROM_PROVIDER_TABLE(72, OrtStatus *, OrtEvents *, const OrtEvent *const *, size_t)
