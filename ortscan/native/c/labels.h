// Numbers names in the order of their first use, so that written models do not depend on names.
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { NO_LABEL = -1 };

// The names are not copied.
typedef struct {
  const char **names; // by label
  int32_t *slots;     // a hash table of labels
  int32_t count, room;
} labels;

// Return the label of a name. A name without a label gets a new one. Return NO_LABEL if there is no memory.
int32_t label_for(labels *l, const char *name);

// Return the label of a name, or NO_LABEL.
int32_t label_of(const labels *l, const char *name);
void labels_free(labels *l);

// Return the label in a name such as v12 of a value in a loop's model, or NO_LABEL.
int32_t label_in(const char *name);
