// Reads graphs through onnxruntime's interface for execution providers.
#pragma once
#include "provider_abi.h"

// Kinds of lists. The value is the index of the function that counts; the next function returns the list.
enum { GRAPH_OPERATOR_SETS = 336, GRAPH_INPUTS = 338, GRAPH_OUTPUTS = 340, GRAPH_INITIALIZERS = 342, GRAPH_NODES = 344 };
enum { NODE_INPUTS = 353, NODE_OUTPUTS = 355, NODE_CAPTURES = 357, NODE_ATTRIBUTES = 359 };

// Return whether a call succeeded, and free its error.
bool went_well(const OrtApi *api, OrtStatus *status);

// Return the list, which the caller frees, or null on an error. The entry of an omitted optional value is null.
void *list_of(const OrtApi *api, int what, const void *subject, size_t *count);

// Return the graph of a node that has exactly one, or null.
const OrtGraph *body_of(const OrtApi *api, const OrtNode *node);

// Return the name, or "" if there is none.
const char *name_of(const OrtApi *api, const OrtValueInfo *value);

// Return the constant value, or null.
const OrtValue *constant_of(const OrtApi *api, const OrtValueInfo *value);

// Return the type and shape of a tensor, or null. They live as long as the value.
const OrtShape *shape_of(const OrtApi *api, const OrtValueInfo *value);

bool is_standard(const OrtApi *api, const OrtNode *node, const char *operator);
