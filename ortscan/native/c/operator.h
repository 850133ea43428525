// The kernels of the operators ai.ortscan::Scan1 and Loop1, and code that other operators share.
#pragma once
#include "abi.h"
#include "exported.h"
#include "loop.h"

OrtStatus *kernel_create(const OrtApi *api, const OrtKernelInfo *info, form form, void **kernel);
OrtStatus *CALL kernel_compute(void *kernel, OrtKernelContext *context);
void CALL kernel_destroy(void *kernel);

// Shared by operators: an error, the constant inputs, and the malloced bytes of the attribute `plan`.
OrtStatus *say(const OrtApi *api, const fault *why);
OrtStatus *say_text(const OrtApi *api, const char *text);
OrtStatus *constants_of(const OrtApi *api, const OrtKernelInfo *info, tensor *constants, size_t count);
OrtStatus *plan_of(const OrtApi *api, const OrtKernelInfo *info, char **bytes, size_t *count);

// Register both operators on session options.
EXPORTED OrtStatus *CALL RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base);
