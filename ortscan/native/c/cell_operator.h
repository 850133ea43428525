// The kernel of the operator ai.ortscan::Cell1, which runs recurrent nodes.
#pragma once
#include "abi.h"

OrtStatus *cell_kernel_create(const OrtApi *api, const OrtKernelInfo *info, void **kernel);
OrtStatus *CALL cell_kernel_compute(void *kernel, OrtKernelContext *context);
void CALL cell_kernel_destroy(void *kernel);
