// Graphs as onnxruntime shows them to execution providers.
#pragma once
#include "provider_abi.h"

// What there are lists of; the value is the place of the function that counts, and the next one is that of the function that lists.
enum { GRAPH_OPERATOR_SETS = 336, GRAPH_INPUTS = 338, GRAPH_OUTPUTS = 340, GRAPH_INITIALIZERS = 342, GRAPH_NODES = 344 };
enum { NODE_INPUTS = 353, NODE_OUTPUTS = 355, NODE_CAPTURES = 357, NODE_ATTRIBUTES = 359 };

// Whether a call went well; what went wrong is let go of.
bool went_well(const OrtApi *api, OrtStatus *status);

// Return the list, to be freed; null where it cannot be had. An entry is null where an optional value is left out.
void *list_of(const OrtApi *api, int what, const void *subject, size_t *count);

// Return the only graph that a node holds, or null.
const OrtGraph *body_of(const OrtApi *api, const OrtNode *node);

// Return the name, "" where there is none.
const char *name_of(const OrtApi *api, const OrtValueInfo *value);

// Return what the value always is, or null.
const OrtValue *constant_of(const OrtApi *api, const OrtValueInfo *value);

// Return type and shape of a value that is a tensor, else null. They live as long as the value.
const OrtShape *shape_of(const OrtApi *api, const OrtValueInfo *value);

bool is_standard(const OrtApi *api, const OrtNode *node, const char *operator);
