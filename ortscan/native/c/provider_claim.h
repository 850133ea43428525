// Claims loops: asks the planner for plans or models that replace them.
#pragma once
#include "provider_claimed.h"

// A planner gets a model of a loop and its title. It calls ortscan_answer once if it has a replacement. It may be called in any thread.
typedef void (*planner)(const void *model, size_t count, const char *title, void *question);

// Return the claim on a node, or null if there is no answer that fits it.
claim *claim_node(const host *h, const OrtGraph *graph, const OrtNode *node, const OrtModelMetadata *stored);
