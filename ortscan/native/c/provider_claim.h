// Claims loops: asks who may know for what can stand for them.
#pragma once
#include "provider_claimed.h"

// Who knows how to plan: given a model of one loop, and its title, calls ortscan_answer once where something can stand for it.
// Called in any thread.
typedef void (*planner)(const void *model, size_t count, const char *title, void *question);

// Return the claim on a node, or null where nothing is known to stand for it, or that does not fit the node.
claim *claim_node(const host *h, const OrtGraph *graph, const OrtNode *node, const OrtModelMetadata *stored);
