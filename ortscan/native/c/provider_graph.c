#include "provider_graph.h"
#include <stdlib.h>
#include <string.h>

bool went_well(const OrtApi *api, OrtStatus *status) {
  if (status) ReleaseStatus(status);
  return !status;
}

void *list_of(const OrtApi *api, int what, const void *subject, size_t *count) {
  *count = 0;
  if (!went_well(api, FROM_TABLE(what, OrtStatus *, const void *, size_t *)(subject, count)) || *count > SIZE_MAX / sizeof(void *) - 1) return 0;
  const void **all = calloc(*count + 1, sizeof *all);
  if (!all || !*count || went_well(api, FROM_TABLE(what + 1, OrtStatus *, const void *, const void **, size_t)(subject, all, *count))) return all;
  free(all);
  return 0;
}

const OrtGraph *body_of(const OrtApi *api, const OrtNode *node) {
  size_t count = 0;
  const OrtGraph *body = 0;
  const char *attribute = 0;
  if (!went_well(api, Node_GetNumSubgraphs(node, &count)) || count != 1) return 0;
  return went_well(api, Node_GetSubgraphs(node, &body, 1, &attribute)) ? body : 0;
}

const char *name_of(const OrtApi *api, const OrtValueInfo *value) {
  const char *name = 0;
  return value && went_well(api, GetValueInfoName(value, &name)) && name ? name : "";
}

const OrtValue *constant_of(const OrtApi *api, const OrtValueInfo *value) {
  bool is_constant = false;
  const OrtValue *constant = 0;
  if (!value || !went_well(api, ValueInfo_IsConstantInitializer(value, &is_constant)) || !is_constant) return 0;
  return went_well(api, ValueInfo_GetInitializerValue(value, &constant)) ? constant : 0;
}

const OrtShape *shape_of(const OrtApi *api, const OrtValueInfo *value) {
  const OrtTypeInfo *type = 0;
  const OrtShape *shape = 0;
  if (!value || !went_well(api, GetValueInfoTypeInfo(value, &type)) || !type) return 0;
  return went_well(api, CastTypeInfoToTensorInfo(type, &shape)) ? shape : 0;
}

bool is_standard(const OrtApi *api, const OrtNode *node, const char *operator) {
  const char *domain = 0, *type = 0;
  if (!went_well(api, Node_GetDomain(node, &domain)) || !went_well(api, Node_GetOperatorType(node, &type)) || !domain || !type) return false;
  return (!*domain || !strcmp(domain, "ai.onnx")) && !strcmp(type, operator);
}
