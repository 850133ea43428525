// Numbers for names, in the order in which these are met, so that what is written does not depend on what things are called.
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

// Return the label of a name, a new one where it has none; NO_LABEL where memory is out.
int32_t label_for(labels *l, const char *name);

// Return the label that a name has, or NO_LABEL.
int32_t label_of(const labels *l, const char *name);
void labels_free(labels *l);

// Return the label in the name of a value of a loop's model, v and the label; NO_LABEL where it is none.
int32_t label_in(const char *name);
