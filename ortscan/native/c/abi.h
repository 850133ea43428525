// The part of onnxruntime's C interface that the operators need. Its table of functions only grows at the end, so each function keeps its
// index. Version 17 of the table is requested, the first with everything that is used here.
#pragma once
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && !defined(_WIN64)
#define CALL __stdcall
#else
#define CALL
#endif

enum { API_VERSION = 17, STATUS_FAIL = 1, STATUS_INVALID_ARGUMENT = 2, VARIADIC = 2, ELEMENT_UNDEFINED = 0, ATTRIBUTE_STRING = 5 };

typedef struct OrtStatus OrtStatus;
typedef struct OrtValue OrtValue;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtKernelInfo OrtKernelInfo;
typedef struct OrtShape OrtShape;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtDomain OrtDomain;
typedef struct OrtShapeInferContext OrtShapeInferContext;
typedef struct OrtAttribute OrtAttribute;
typedef struct { void *slot[415]; } OrtApi;
typedef struct {
  const OrtApi *(CALL *GetApi)(uint32_t);
  const char *(CALL *GetVersionString)(void);
} OrtApiBase;

typedef struct OrtCustomOp OrtCustomOp;
struct OrtCustomOp {
  uint32_t version;
  void *(CALL *CreateKernel)(const OrtCustomOp *, const OrtApi *, const OrtKernelInfo *);
  const char *(CALL *GetName)(const OrtCustomOp *);
  const char *(CALL *GetExecutionProviderType)(const OrtCustomOp *);
  int (CALL *GetInputType)(const OrtCustomOp *, size_t);
  size_t (CALL *GetInputTypeCount)(const OrtCustomOp *);
  int (CALL *GetOutputType)(const OrtCustomOp *, size_t);
  size_t (CALL *GetOutputTypeCount)(const OrtCustomOp *);
  void (CALL *KernelCompute)(void *, OrtKernelContext *);
  void (CALL *KernelDestroy)(void *);
  int (CALL *GetInputCharacteristic)(const OrtCustomOp *, size_t);
  int (CALL *GetOutputCharacteristic)(const OrtCustomOp *, size_t);
  int (CALL *GetInputMemoryType)(const OrtCustomOp *, size_t);
  int (CALL *GetVariadicInputMinArity)(const OrtCustomOp *);
  int (CALL *GetVariadicInputHomogeneity)(const OrtCustomOp *);
  int (CALL *GetVariadicOutputMinArity)(const OrtCustomOp *);
  int (CALL *GetVariadicOutputHomogeneity)(const OrtCustomOp *);
  OrtStatus *(CALL *CreateKernelV2)(const OrtCustomOp *, const OrtApi *, const OrtKernelInfo *, void **);
  OrtStatus *(CALL *KernelComputeV2)(void *, OrtKernelContext *);
  OrtStatus *(CALL *InferOutputShapeFn)(const OrtCustomOp *, OrtShapeInferContext *);
  int (CALL *GetStartVersion)(const OrtCustomOp *);
  int (CALL *GetEndVersion)(const OrtCustomOp *);
  size_t (CALL *GetMayInplace)(int **, int **);
  void (CALL *ReleaseMayInplace)(int *, int *);
  size_t (CALL *GetAliasMap)(int **, int **);
  void (CALL *ReleaseAliasMap)(int *, int *);
};

#define FROM_TABLE(place, result, ...) ((result(CALL *)(__VA_ARGS__))api->slot[place])
#define CreateStatus FROM_TABLE(0, OrtStatus *, int, const char *)
#define CreateCustomOpDomain FROM_TABLE(26, OrtStatus *, const char *, OrtDomain **)
#define CustomOpDomain_Add FROM_TABLE(27, OrtStatus *, OrtDomain *, const OrtCustomOp *)
#define AddCustomOpDomain FROM_TABLE(28, OrtStatus *, OrtSessionOptions *, OrtDomain *)
#define GetTensorMutableData FROM_TABLE(51, OrtStatus *, const OrtValue *, void **)
#define CreateTensorTypeAndShapeInfo FROM_TABLE(57, OrtStatus *, OrtShape **)
#define SetTensorElementType FROM_TABLE(58, OrtStatus *, OrtShape *, int)
#define SetDimensions FROM_TABLE(59, OrtStatus *, OrtShape *, const int64_t *, size_t)
#define GetTensorElementType FROM_TABLE(60, OrtStatus *, const OrtShape *, int *)
#define GetDimensionsCount FROM_TABLE(61, OrtStatus *, const OrtShape *, size_t *)
#define GetDimensions FROM_TABLE(62, OrtStatus *, const OrtShape *, int64_t *, size_t)
#define GetTensorTypeAndShape FROM_TABLE(65, OrtStatus *, const OrtValue *, OrtShape **)
#define KernelInfoGetAttribute_string FROM_TABLE(87, OrtStatus *, const OrtKernelInfo *, const char *, char *, size_t *)
#define KernelContext_GetInputCount FROM_TABLE(88, OrtStatus *, const OrtKernelContext *, size_t *)
#define KernelContext_GetInput FROM_TABLE(90, OrtStatus *, const OrtKernelContext *, size_t, const OrtValue **)
#define KernelContext_GetOutput FROM_TABLE(91, OrtStatus *, OrtKernelContext *, size_t, const int64_t *, size_t, OrtValue **)
#define ReleaseStatus FROM_TABLE(93, void, OrtStatus *)
#define ReleaseTensorTypeAndShapeInfo FROM_TABLE(99, void, OrtShape *)
#define ReleaseCustomOpDomain FROM_TABLE(101, void, OrtDomain *)
#define KernelInfo_GetInputCount FROM_TABLE(230, OrtStatus *, const OrtKernelInfo *, size_t *)
#define KernelInfo_GetOutputCount FROM_TABLE(231, OrtStatus *, const OrtKernelInfo *, size_t *)
#define GetTensorElementTypeAndShapeDataReference FROM_TABLE(414, OrtStatus *, const OrtValue *, int *, const int64_t **, size_t *)
#define KernelInfoGetConstantInput_tensor FROM_TABLE(249, OrtStatus *, const OrtKernelInfo *, size_t, int *, const OrtValue **)
#define ShapeInferContext_GetAttribute FROM_TABLE(269, OrtStatus *, const OrtShapeInferContext *, const char *, const OrtAttribute **)
#define ShapeInferContext_SetOutputTypeShape FROM_TABLE(270, OrtStatus *, const OrtShapeInferContext *, size_t, const OrtShape *)
#define SetSymbolicDimensions FROM_TABLE(271, OrtStatus *, OrtShape *, const char **, size_t)
#define KernelContext_ParallelFor FROM_TABLE(274, OrtStatus *, const OrtKernelContext *, void (*)(void *, size_t), size_t, size_t, void *)
#define ReadOpAttr FROM_TABLE(272, OrtStatus *, const OrtAttribute *, int, void *, size_t, size_t *)

#define TRY(call) do { OrtStatus *failed = (call); if (failed) return failed; } while (0)
