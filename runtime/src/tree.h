// Trees: how nodes are taken apart and put together. The Python reference is `namoo._tree`.
#pragma once

#include "common.h"

namespace namoo {

struct Node;

// The record of a class whose instances are nodes; null where they are leaves.
Node* node_of(PyTypeObject* type);

// While one lives, the records stay where they are, whatever Python code is called.
struct Busy {
  Busy();
  ~Busy();
};

// Adds the leaves of a tree; returns its structure, a new reference.
PyObject* flatten(PyObject* tree, Items& leaves);

// Adds the subtrees in the places of a structure's leaves; false if the tree has other nodes.
bool flatten_up_to(PyObject* structure, PyObject* tree, Items& subtrees);

// Builds a tree from leaves, which it takes out of the list from `next` on.
PyObject* unflatten(PyObject* structure, Items& leaves, size_t& next);

size_t count_leaves(PyObject* structure);

}  // namespace namoo
