// Trees: how nodes are flattened and rebuilt. The Python reference is `namoo.tree`.
#pragma once

#include "common.h"

namespace namoo {

struct Node;

// The record of a class whose instances are nodes; null if they are leaves.
Node* node_of(PyTypeObject* type);

// While an instance lives, records are not freed, whatever Python code runs.
struct Busy {
  Busy();
  ~Busy();
};

// Append the leaves of a tree; return its structure, a new reference.
PyObject* flatten(PyObject* tree, Items& leaves);

// Append the subtrees at a structure's leaves; false if the nodes of the tree differ.
bool flatten_up_to(PyObject* structure, PyObject* tree, Items& subtrees);

// Build a tree from leaves, taken from the list starting at `next`.
PyObject* unflatten(PyObject* structure, Items& leaves, size_t& next);

size_t count_leaves(PyObject* structure);

}  // namespace namoo
