#include "tree.h"

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include <structmember.h>

namespace namoo {

void Slot::bind(PyObject* cls, const char* name) {
  nb::object descriptor = owned(PyObject_GetAttrString(cls, name));
  if (!Py_IS_TYPE(descriptor.ptr(), &PyMemberDescr_Type)) {
    PyErr_Format(PyExc_TypeError, "%s is not a slot of %R", name, cls);
    throw Raised();
  }
  offset_ = reinterpret_cast<PyMemberDescrObject*>(descriptor.ptr())->d_member->offset;
}

namespace {

enum class Kind : uint8_t { kNone, kTuple, kList, kDict, kNamedTuple, kDataclass, kCustom, kOther };

}  // namespace

struct Node {
  Kind kind;
  nb::object cls;
  nb::object entry;        // the NodeType of the reference
  nb::object flatten;      // kCustom: the user's functions
  nb::object unflatten;
  nb::object data;         // kDataclass: names of the fields
  nb::object meta;
  nb::object names;        // both of them
  nb::object init;         // kDataclass: an __init__ that only assigns the fields, or none
  nb::object path_keys;    // kDataclass, kNamedTuple: a tuple, made on first use
  std::vector<nb::object> flat;  // structures of nodes with n leaves, if the metadata is constant
};

namespace {

// The objects that the reference provides; they live as long as the module.
struct Reference {
  PyObject* node_type = nullptr;
  PyObject* known = nullptr;
  PyObject* same_meta = nullptr;
  PyObject* verdict = nullptr;
  PyObject* too_deep = nullptr;
  PyObject* treedef = nullptr;
  PyObject* leaf = nullptr;
  PyObject* sequence_key = nullptr;
  PyObject* dict_key = nullptr;
  Slot structure, num_leaves, hash, sequence_value, dict_value;
} ref;

PyObject* empty_tuple = nullptr;
PyObject* mismatch = nullptr;
PyObject* name_exactly = nullptr;
PyObject* name_flatten = nullptr;
PyObject* name_unflatten = nullptr;
PyObject* name_flatten_with_keys = nullptr;
PyObject* name_init = nullptr;
PyObject* name_keys = nullptr;

struct Line {
  PyTypeObject* type = nullptr;
  Node* node = nullptr;
};

constexpr size_t kLines = 512;
constexpr size_t kRemembered = 8192;
constexpr size_t kFlat = 64;

Line lines[kLines];
std::unordered_map<PyTypeObject*, std::unique_ptr<Node>>& classes() {
  // Never destroyed: at exit, Python is gone.
  static auto* table = new std::unordered_map<PyTypeObject*, std::unique_ptr<Node>>();
  return *table;
}
size_t busy = 0;

Line& line_of(PyTypeObject* type) {
  uintptr_t address = reinterpret_cast<uintptr_t>(type);
  return lines[((address >> 4) ^ (address >> 13)) % kLines];
}

nb::object attribute(PyObject* object, const char* name) {
  return owned(PyObject_GetAttrString(object, name));
}

std::unique_ptr<Node> make_node(PyTypeObject* type, PyObject* entry) {
  auto node = std::make_unique<Node>();
  node->cls = nb::borrow(reinterpret_cast<PyObject*>(type));
  node->entry = nb::borrow(entry);
  nb::object functions = attribute(entry, "functions");
  nb::object fields = attribute(entry, "fields");
  if (type == Py_TYPE(Py_None)) {
    node->kind = Kind::kNone;
  } else if (type == &PyTuple_Type) {
    node->kind = Kind::kTuple;
  } else if (type == &PyList_Type) {
    node->kind = Kind::kList;
  } else if (type == &PyDict_Type) {
    node->kind = Kind::kDict;
  } else if (!fields.is_none()) {
    node->kind = Kind::kDataclass;
    node->data = nb::borrow(PyTuple_GetItem(fields.ptr(), 0));
    node->meta = nb::borrow(PyTuple_GetItem(fields.ptr(), 1));
    node->names = owned(PySequence_Concat(node->data.ptr(), node->meta.ptr()));
    node->init = attribute(entry, "init");
  } else if (!functions.is_none()) {
    node->kind = Kind::kCustom;
    node->flatten = nb::borrow(PyTuple_GetItem(functions.ptr(), 0));
    node->unflatten = nb::borrow(PyTuple_GetItem(functions.ptr(), 1));
  } else {
    nb::object kind = attribute(entry, "kind");
    bool plain = PyType_IsSubtype(type, &PyTuple_Type) &&
                 PyUnicode_CompareWithASCIIString(kind.ptr(), "namedtuple") == 0 &&
                 type->tp_as_sequence->sq_length == PyTuple_Type.tp_as_sequence->sq_length &&
                 type->tp_as_sequence->sq_item == PyTuple_Type.tp_as_sequence->sq_item;
    node->kind = plain ? Kind::kNamedTuple : Kind::kOther;
  }
  return node;
}

Node* slow_node_of(PyTypeObject* type) {
  auto found = classes().find(type);
  if (found == classes().end()) {
    nb::object entry =
        owned(call_one_arg(ref.node_type, reinterpret_cast<PyObject*>(type)));
    if (classes().size() > kRemembered && busy == 0) {
      for (Line& line : lines) line = Line();
      std::unordered_map<PyTypeObject*, std::unique_ptr<Node>> old;
      old.swap(classes());
      for (auto& item : old) Py_DECREF(item.first);
    }
    std::unique_ptr<Node> node = entry.is_none() ? nullptr : make_node(type, entry.ptr());
    // The call may have added the class already.
    auto inserted = classes().emplace(type, std::move(node));
    if (inserted.second) Py_INCREF(type);
    found = inserted.first;
  }
  line_of(type) = {type, found->second.get()};
  return found->second.get();
}

}  // namespace

Busy::Busy() { busy++; }
Busy::~Busy() { busy--; }

Node* node_of(PyTypeObject* type) {
  Line& line = line_of(type);
  return line.type == type ? line.node : slow_node_of(type);
}

namespace {

Node* known(PyObject* cls) {
  Node* node = node_of(reinterpret_cast<PyTypeObject*>(cls));
  if (!node) {
    owned(call_one_arg(ref.known, cls));  // raises
    PyErr_SetString(PyExc_RuntimeError, "a class of a structure is not a node");
    throw Raised();
  }
  return node;
}

class Depth {
 public:
  Depth() {
    if (Py_EnterRecursiveCall(" in a tree")) throw Raised();
  }
  ~Depth() { Py_LeaveRecursiveCall(); }
};

// Most dicts of a tree have the same keys as others: they are sorted once and recognised by
// identity.
struct Keys {
  nb::object sorted;
  nb::object flat;                     // the structure of a dict of leaves
  std::vector<PyObject*> given;        // in the dict's own order; `sorted` keeps them alive
  std::vector<uint8_t> order;          // of `sorted` in `given`
  nb::object path_keys;                // DictKeys, made on first use
};

constexpr size_t kKeyLines = 256;
constexpr Py_ssize_t kFewKeys = 64;
std::array<std::shared_ptr<Keys>, kKeyLines>& key_lines() {
  static auto* table = new std::array<std::shared_ptr<Keys>, kKeyLines>();
  return *table;
}

PyObject* structure_of_leaves(PyObject* cls, PyObject* meta, size_t count) {
  nb::object number = owned(PyLong_FromSize_t(count));
  return checked(PyTuple_Pack(3, cls, meta, number.ptr()));
}

nb::object sorted_keys(PyObject* dict) {
  nb::object keys = owned(PyDict_Keys(dict));
  checked(PyList_Sort(keys.ptr()));
  return owned(PyList_AsTuple(keys.ptr()));
}

// The keys of a dict with few string keys, and its values in the dict's order (borrowed).
std::shared_ptr<Keys> common_keys(PyObject* dict, PyObject** values) {
  Py_ssize_t count = PyDict_GET_SIZE(dict), position = 0, i = 0;
  if (count == 0 || count > kFewKeys) return nullptr;
  PyObject* given[kFewKeys];
  uintptr_t mixed = 0;
  while (i < count && PyDict_Next(dict, &position, &given[i], &values[i])) {
    if (!PyUnicode_CheckExact(given[i])) return nullptr;
    mixed = mixed * 31 + (reinterpret_cast<uintptr_t>(given[i]) >> 4);
    i++;
  }
  if (i != count) return nullptr;
  std::shared_ptr<Keys>& line = key_lines()[(mixed ^ (mixed >> 11)) % kKeyLines];
  if (line && line->given.size() == (size_t)count &&
      std::memcmp(line->given.data(), given, (size_t)count * sizeof(PyObject*)) == 0) {
    return line;
  }
  auto keys = std::make_shared<Keys>();
  keys->sorted = sorted_keys(dict);
  keys->flat = nb::steal(structure_of_leaves(reinterpret_cast<PyObject*>(&PyDict_Type),
                                             keys->sorted.ptr(), (size_t)count));
  keys->given.assign(given, given + count);
  for (i = 0; i < count; i++) {
    for (Py_ssize_t j = 0; j < count; j++) {
      if (given[j] == PyTuple_GET_ITEM(keys->sorted.ptr(), i)) {
        keys->order.push_back((uint8_t)j);
        break;
      }
    }
  }
  line = keys;
  return keys;
}

// The parts of a node. `flat` is its structure if all children are leaves, if available.
struct Parts {
  Items children;
  nb::object meta;
  nb::object flat;
  std::shared_ptr<Keys> keys;
};

void push_sequence(PyObject* sequence, Items& items) {
  if (PyTuple_Check(sequence)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence); i++) {
      items.push_new(PyTuple_GET_ITEM(sequence, i));
    }
  } else {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(sequence); i++) {
      items.push_new(PyList_GET_ITEM(sequence, i));
    }
  }
}

bool is_exact_sequence(PyObject* object) {
  return PyTuple_CheckExact(object) || PyList_CheckExact(object);
}

// Append the pair that a flatten function of the reference returned.
void push_pair(PyObject* pair, Parts& parts) {
  PyObject* children = PyTuple_GetItem(checked(pair), 0);
  if (!children) throw Raised();
  if (is_exact_sequence(children)) {
    push_sequence(children, parts.children);
  } else {
    nb::object tuple = owned(PySequence_Tuple(children));
    push_sequence(tuple.ptr(), parts.children);
  }
  parts.meta = nb::borrow(checked(PyTuple_GetItem(pair, 1)));
}

void by_reference(Node* node, PyObject* object, Parts& parts) {
  nb::object pair = owned(call_method_one_arg(node->entry.ptr(), name_flatten, object));
  push_pair(pair.ptr(), parts);
}

void push_dict(Node* node, PyObject* dict, Parts& parts) {
  PyObject* values[kFewKeys];
  parts.keys = common_keys(dict, values);
  if (parts.keys) {
    for (uint8_t i : parts.keys->order) parts.children.push_new(values[i]);
    parts.meta = parts.keys->sorted;
    parts.flat = parts.keys->flat;
    return;
  }
  try {
    parts.meta = sorted_keys(dict);
  } catch (Raised&) {
    PyErr_Clear();
    by_reference(node, dict, parts);  // raises an error that names the keys that cannot be sorted
    return;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts.meta.ptr()); i++) {
    PyObject* value = PyDict_GetItemWithError(dict, PyTuple_GET_ITEM(parts.meta.ptr(), i));
    if (!value) {
      if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, PyTuple_GET_ITEM(parts.meta.ptr(), i));
      throw Raised();
    }
    parts.children.push_new(value);
  }
}

void set_flat(Node* node, Parts& parts) {
  size_t count = parts.children.size();
  if (count >= kFlat) return;
  if (node->flat.size() <= count) node->flat.resize(count + 1);
  nb::object& flat = node->flat[count];
  if (!flat.is_valid()) {
    flat = nb::steal(structure_of_leaves(node->cls.ptr(), parts.meta.ptr(), count));
  }
  parts.flat = flat;
}

void take_apart(Node* node, PyObject* object, Parts& parts) {
  switch (node->kind) {
    case Kind::kNone:
      parts.meta = nb::none();
      set_flat(node, parts);
      return;
    case Kind::kTuple:
    case Kind::kList:
    case Kind::kNamedTuple:
      push_sequence(object, parts.children);
      parts.meta = nb::none();
      set_flat(node, parts);
      return;
    case Kind::kDict:
      push_dict(node, object, parts);
      return;
    case Kind::kDataclass: {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(node->data.ptr()); i++) {
        parts.children.push(checked(PyObject_GetAttr(object, PyTuple_GET_ITEM(node->data.ptr(), i))));
      }
      Py_ssize_t metas = PyTuple_GET_SIZE(node->meta.ptr());
      if (metas == 0) {
        parts.meta = nb::borrow(empty_tuple);
        set_flat(node, parts);
        return;
      }
      parts.meta = owned(PyTuple_New(metas));
      for (Py_ssize_t i = 0; i < metas; i++) {
        PyTuple_SET_ITEM(parts.meta.ptr(), i,
                         checked(PyObject_GetAttr(object, PyTuple_GET_ITEM(node->meta.ptr(), i))));
      }
      return;
    }
    case Kind::kCustom: {
      nb::object pair = owned(call_one_arg(node->flatten.ptr(), object));
      if (PyTuple_Check(pair.ptr()) && PyTuple_GET_SIZE(pair.ptr()) == 2 &&
          is_exact_sequence(PyTuple_GET_ITEM(pair.ptr(), 0))) {
        push_pair(pair.ptr(), parts);
        return;
      }
      by_reference(node, object, parts);  // accepts other iterables, and rejects anything else
      return;
    }
    case Kind::kOther:
      by_reference(node, object, parts);
      return;
  }
}

template <bool kStructure>
PyObject* flatten_node(Node* node, PyObject* object, Items& leaves) {
  Depth depth;
  Parts parts;
  take_apart(node, object, parts);
  Items& children = parts.children;
  size_t count = children.size(), i = 0;
  Node* child = nullptr;
  for (; i < count; i++) {
    child = node_of(Py_TYPE(children[i]));
    if (child) break;
    leaves.push(children.take(i));
  }
  if (i == count) {
    if (!kStructure) return nullptr;
    if (parts.flat.is_valid()) return parts.flat.release().ptr();
    return structure_of_leaves(node->cls.ptr(), parts.meta.ptr(), count);
  }
  nb::object structure;
  if (kStructure) {
    structure = owned(PyTuple_New((Py_ssize_t)count + 2));
    PyTuple_SET_ITEM(structure.ptr(), 0, node->cls.inc_ref().ptr());
    PyTuple_SET_ITEM(structure.ptr(), 1, parts.meta.inc_ref().ptr());
    for (size_t j = 0; j < i; j++) {
      PyTuple_SET_ITEM(structure.ptr(), (Py_ssize_t)j + 2, Py_NewRef(Py_None));
    }
  }
  for (; i < count; i++) {
    child = node_of(Py_TYPE(children[i]));
    PyObject* part;
    if (child) {
      part = flatten_node<kStructure>(child, children[i], leaves);
    } else {
      part = kStructure ? Py_NewRef(Py_None) : nullptr;
      leaves.push(children.take(i));
    }
    if (kStructure) PyTuple_SET_ITEM(structure.ptr(), (Py_ssize_t)i + 2, part);
  }
  return structure.release().ptr();
}

bool says_leaf(PyObject* answer) {
  nb::object kept = owned(answer);
  if (answer == Py_True) return true;
  if (answer == Py_False || answer == Py_None) return false;
  return owned(call_one_arg(ref.verdict, answer)).ptr() == Py_True;  // raises
}

// Whether any child of a node is a node.
bool any_structure(Items& structures) {
  for (size_t i = 0; i < structures.size(); i++) {
    if (structures[i] != Py_None) return true;
  }
  return false;
}

PyObject* structure_of(PyObject* cls, PyObject* meta, Items& structures) {
  size_t count = structures.size();
  if (!any_structure(structures)) return structure_of_leaves(cls, meta, count);
  PyObject* structure = checked(PyTuple_New((Py_ssize_t)count + 2));
  PyTuple_SET_ITEM(structure, 0, Py_NewRef(cls));
  PyTuple_SET_ITEM(structure, 1, Py_NewRef(meta));
  for (size_t i = 0; i < count; i++) {
    PyTuple_SET_ITEM(structure, (Py_ssize_t)i + 2, structures.take(i));
  }
  return structure;
}

PyObject* flatten_unless(PyObject* object, PyObject* is_leaf, Items& leaves) {
  Depth depth;
  bool leaf = says_leaf(call_one_arg(is_leaf, object));
  Node* node = leaf ? nullptr : node_of(Py_TYPE(object));
  if (!node) {
    leaves.push_new(object);
    return Py_NewRef(Py_None);
  }
  Parts parts;
  take_apart(node, object, parts);
  Items structures;
  for (size_t i = 0; i < parts.children.size(); i++) {
    structures.push(flatten_unless(parts.children[i], is_leaf, leaves));
  }
  return structure_of(node->cls.ptr(), parts.meta.ptr(), structures);
}

PyObject* key_object(PyObject* cls, const Slot& slot, PyObject* value) {
  nb::object kept = nb::steal(value);
  PyObject* key = blank(cls);
  slot.init(key, kept.release().ptr());
  return key;
}

// Keys are immutable, so the first ones are cached.
PyObject* sequence_key(size_t i) {
  static PyObject* first[256] = {};
  if (i >= 256) {
    return key_object(ref.sequence_key, ref.sequence_value, checked(PyLong_FromSize_t(i)));
  }
  if (!first[i]) {
    first[i] = key_object(ref.sequence_key, ref.sequence_value, checked(PyLong_FromSize_t(i)));
  }
  return Py_NewRef(first[i]);
}

void push_dict_keys(Parts& parts, Items& keys) {
  PyObject* sorted = parts.meta.ptr();
  if (parts.keys && parts.keys->path_keys.is_valid()) {
    push_sequence(parts.keys->path_keys.ptr(), keys);
    return;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sorted); i++) {
    keys.push(key_object(ref.dict_key, ref.dict_value, Py_NewRef(PyTuple_GET_ITEM(sorted, i))));
  }
  if (parts.keys) {
    nb::object kept = owned(PyTuple_New((Py_ssize_t)keys.size()));
    for (size_t i = 0; i < keys.size(); i++) {
      PyTuple_SET_ITEM(kept.ptr(), (Py_ssize_t)i, Py_NewRef(keys[i]));
    }
    parts.keys->path_keys = kept;
  }
}

void take_apart_with_keys(Node* node, PyObject* object, Parts& parts, Items& keys) {
  switch (node->kind) {
    case Kind::kNone:
    case Kind::kTuple:
    case Kind::kList:
      take_apart(node, object, parts);
      for (size_t i = 0; i < parts.children.size(); i++) keys.push(sequence_key(i));
      return;
    case Kind::kDict:
      take_apart(node, object, parts);
      push_dict_keys(parts, keys);
      return;
    case Kind::kDataclass:
    case Kind::kNamedTuple:
      take_apart(node, object, parts);
      if (!node->path_keys.is_valid()) {
        nb::object count = owned(PyLong_FromSize_t(parts.children.size()));
        PyObject* arguments[3] = {node->entry.ptr(), parts.meta.ptr(), count.ptr()};
        nb::object named = owned(vectorcall_method(name_keys, arguments, 3, nullptr));
        node->path_keys = owned(PySequence_Tuple(named.ptr()));
      }
      if ((size_t)PyTuple_GET_SIZE(node->path_keys.ptr()) != parts.children.size()) {
        PyErr_Format(PyExc_ValueError, "%R has %zu children, but %zd fields", node->cls.ptr(),
                     parts.children.size(), PyTuple_GET_SIZE(node->path_keys.ptr()));
        throw Raised();
      }
      push_sequence(node->path_keys.ptr(), keys);
      return;
    default: {
      nb::object pair =
          owned(call_method_one_arg(node->entry.ptr(), name_flatten_with_keys, object));
      nb::object named = owned(PySequence_Tuple(checked(PyTuple_GetItem(pair.ptr(), 0))));
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(named.ptr()); i++) {
        PyObject* item = PyTuple_GET_ITEM(named.ptr(), i);
        keys.push_new(checked(PyTuple_GetItem(item, 0)));
        parts.children.push_new(checked(PyTuple_GetItem(item, 1)));
      }
      parts.meta = nb::borrow(checked(PyTuple_GetItem(pair.ptr(), 1)));
    }
  }
}

PyObject* longer_path(PyObject* path, PyObject* key) {
  Py_ssize_t length = PyTuple_GET_SIZE(path);
  PyObject* longer = checked(PyTuple_New(length + 1));
  for (Py_ssize_t i = 0; i < length; i++) {
    PyTuple_SET_ITEM(longer, i, Py_NewRef(PyTuple_GET_ITEM(path, i)));
  }
  PyTuple_SET_ITEM(longer, length, Py_NewRef(key));
  return longer;
}

PyObject* flatten_with_path(PyObject* object, PyObject* path, PyObject* is_leaf, bool takes_path,
                            Items& leaves) {
  Depth depth;
  Node* node = node_of(Py_TYPE(object));
  if (is_leaf != Py_None) {
    PyObject* arguments[2] = {path, object};
    PyObject* answer = takes_path ? vectorcall(is_leaf, arguments, 2, nullptr)
                                  : call_one_arg(is_leaf, object);
    if (says_leaf(answer)) node = nullptr;
  }
  if (!node) {
    leaves.push(checked(PyTuple_Pack(2, path, object)));
    return Py_NewRef(Py_None);
  }
  Parts parts;
  Items keys, structures;
  take_apart_with_keys(node, object, parts, keys);
  for (size_t i = 0; i < parts.children.size(); i++) {
    nb::object longer = nb::steal(longer_path(path, keys[i]));
    structures.push(
        flatten_with_path(parts.children[i], longer.ptr(), is_leaf, takes_path, leaves));
  }
  return structure_of(node->cls.ptr(), parts.meta.ptr(), structures);
}

bool same_meta(PyObject* cls, PyObject* meta, PyObject* found) {
  if (meta == found) return true;
  PyObject* answer = PyObject_RichCompare(meta, found, Py_EQ);
  int equal = answer ? PyObject_IsTrue(answer) : -1;
  Py_XDECREF(answer);
  if (equal >= 0) return equal;
  PyErr_Clear();
  PyObject* arguments[3] = {cls, meta, found};
  // The reference raises an error for what cannot be compared.
  return owned(vectorcall(ref.same_meta, arguments, 3, nullptr)).ptr() == Py_True;
}

// Append the values of a dict in the order of a structure's keys; false if the keys differ.
bool push_values(PyObject* dict, PyObject* keys, Items& children) {
  Py_ssize_t count = PyTuple_GET_SIZE(keys);
  if (PyDict_GET_SIZE(dict) != count) return false;
  PyObject* values[kFewKeys];
  std::shared_ptr<Keys> common = common_keys(dict, values);
  if (common && common->sorted.ptr() == keys) {
    for (uint8_t i : common->order) children.push_new(values[i]);
    return true;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject* value = PyDict_GetItemWithError(dict, PyTuple_GET_ITEM(keys, i));
    if (!value) {
      if (PyErr_Occurred()) throw Raised();
      return false;
    }
    children.push_new(value);
  }
  return true;
}

}  // namespace

bool flatten_up_to(PyObject* structure, PyObject* tree, Items& subtrees) {
  if (structure == Py_None) {
    subtrees.push_new(tree);
    return true;
  }
  PyObject* cls = PyTuple_GET_ITEM(structure, 0);
  PyObject* meta = PyTuple_GET_ITEM(structure, 1);
  if (reinterpret_cast<PyObject*>(Py_TYPE(tree)) != cls) return false;
  Depth depth;
  Parts parts;
  if (Py_TYPE(tree) == &PyDict_Type) {
    if (!push_values(tree, meta, parts.children)) return false;
  } else {
    take_apart(known(cls), tree, parts);
    if (!same_meta(cls, meta, parts.meta.ptr())) return false;
  }
  size_t count = parts.children.size();
  PyObject* third = PyTuple_GET_ITEM(structure, 2);
  if (PyLong_CheckExact(third)) {
    if (PyLong_AsSize_t(third) != count) return false;
    for (size_t i = 0; i < count; i++) subtrees.push(parts.children.take(i));
    return true;
  }
  if ((size_t)PyTuple_GET_SIZE(structure) != count + 2) return false;
  for (size_t i = 0; i < count; i++) {
    PyObject* part = PyTuple_GET_ITEM(structure, (Py_ssize_t)i + 2);
    if (part == Py_None) {
      subtrees.push(parts.children.take(i));
    } else if (!flatten_up_to(part, parts.children[i], subtrees)) {
      return false;
    }
  }
  return true;
}

size_t count_leaves(PyObject* structure) {
  if (structure == Py_None) return 1;
  PyObject* third = PyTuple_GET_ITEM(structure, 2);
  if (PyLong_CheckExact(third)) return PyLong_AsSize_t(third);
  Depth depth;
  size_t count = 0;
  for (Py_ssize_t i = 2; i < PyTuple_GET_SIZE(structure); i++) {
    count += count_leaves(PyTuple_GET_ITEM(structure, i));
  }
  return count;
}

namespace {

// An instance of a dataclass whose __init__ only assigns its arguments.
PyObject* assemble(Node* node, PyObject* const* values) {
  PyTypeObject* type = reinterpret_cast<PyTypeObject*>(node->cls.ptr());
  nb::object instance = nb::steal(checked(type->tp_alloc(type, 0)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(node->names.ptr()); i++) {
    checked(PyObject_GenericSetAttr(instance.ptr(), PyTuple_GET_ITEM(node->names.ptr(), i),
                                    values[i]));
  }
  return instance.release().ptr();
}

PyObject* make_dataclass(Node* node, PyObject* meta, Items& children) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(meta); i++) {
    children.push_new(PyTuple_GET_ITEM(meta, i));
  }
  if ((Py_ssize_t)children.size() != PyTuple_GET_SIZE(node->names.ptr())) {
    PyErr_Format(PyExc_ValueError, "%R takes %zd fields, not %zu", node->cls.ptr(),
                 PyTuple_GET_SIZE(node->names.ptr()), children.size());
    throw Raised();
  }
  if (!node->init.is_none()) {
    // The user may have replaced it since the class was registered.
    nb::object init = owned(PyObject_GetAttr(node->cls.ptr(), name_init));
    if (init.is(node->init)) return assemble(node, children.data());
  }
  return checked(vectorcall(node->cls.ptr(), children.data(), 0, node->names.ptr()));
}

PyObject* put_together(Node* node, PyObject* meta, Items& children) {
  switch (node->kind) {
    case Kind::kNone:
      return Py_NewRef(Py_None);
    case Kind::kTuple:
      return children.to_tuple();
    case Kind::kList:
      return children.to_list();
    case Kind::kDict: {
      nb::object dict = owned(PyDict_New());
      for (size_t i = 0; i < children.size(); i++) {
        checked(PyDict_SetItem(dict.ptr(), PyTuple_GET_ITEM(meta, (Py_ssize_t)i), children[i]));
      }
      return dict.release().ptr();
    }
    case Kind::kNamedTuple:
      return checked(vectorcall(node->cls.ptr(), children.data(), children.size(), nullptr));
    case Kind::kDataclass:
      return make_dataclass(node, meta, children);
    case Kind::kCustom: {
      nb::object tuple = nb::steal(children.to_tuple());
      PyObject* arguments[2] = {meta, tuple.ptr()};
      return checked(vectorcall(node->unflatten.ptr(), arguments, 2, nullptr));
    }
    default: {
      nb::object list = nb::steal(children.to_list());
      PyObject* arguments[3] = {node->entry.ptr(), meta, list.ptr()};
      return checked(vectorcall_method(name_unflatten, arguments, 3, nullptr));
    }
  }
}

}  // namespace

PyObject* unflatten(PyObject* structure, Items& leaves, size_t& next) {
  if (structure == Py_None) return leaves.take(next++);
  Depth depth;
  PyObject* third = PyTuple_GET_ITEM(structure, 2);
  Node* node = known(PyTuple_GET_ITEM(structure, 0));
  Items children;
  if (PyLong_CheckExact(third)) {
    size_t count = PyLong_AsSize_t(third);
    for (size_t i = 0; i < count; i++) children.push(leaves.take(next++));
  } else {
    for (Py_ssize_t i = 2; i < PyTuple_GET_SIZE(structure); i++) {
      PyObject* part = PyTuple_GET_ITEM(structure, i);
      children.push(part == Py_None ? leaves.take(next++) : unflatten(part, leaves, next));
    }
  }
  return put_together(node, PyTuple_GET_ITEM(structure, 1), children);
}

PyObject* flatten(PyObject* tree, Items& leaves) {
  Node* node = node_of(Py_TYPE(tree));
  if (node) return flatten_node<true>(node, tree, leaves);
  leaves.push_new(tree);
  return Py_NewRef(Py_None);
}

namespace {

PyObject* make_treedef(nb::object structure, size_t count) {
  nb::object number = owned(PyLong_FromSize_t(count));
  PyObject* treedef = blank(ref.treedef);
  ref.structure.init(treedef, structure.release().ptr());
  ref.num_leaves.init(treedef, number.release().ptr());
  ref.hash.init(treedef, Py_NewRef(Py_None));
  return treedef;
}

PyObject* pair(nb::object first, nb::object second) {
  PyObject* tuple = checked(PyTuple_New(2));
  PyTuple_SET_ITEM(tuple, 0, first.release().ptr());
  PyTuple_SET_ITEM(tuple, 1, second.release().ptr());
  return tuple;
}

// The reference explains a recursion that went too deep.
template <typename F>
PyObject* guarded_depth(F&& f) noexcept {
  PyObject* result = guarded(f);
  if (!result && PyErr_ExceptionMatches(PyExc_RecursionError)) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject* none = call_one_arg(ref.too_deep, value);  // raises
    Py_XDECREF(none);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
  }
  return result;
}

// The arguments (tree, is_leaf=None), by position or by name, as the reference takes them.
struct Arguments {
  PyObject* given[3] = {nullptr, nullptr, nullptr};

  Arguments(const char* function, const char* const* names, size_t required, size_t most,
            PyObject* const* args, Py_ssize_t count, PyObject* kwnames) {
    if ((size_t)count > most) {
      PyErr_Format(PyExc_TypeError, "%s() takes at most %zu arguments (%zd given)", function, most,
                   count);
      throw Raised();
    }
    for (Py_ssize_t i = 0; i < count; i++) given[i] = args[i];
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
      PyObject* name = PyTuple_GET_ITEM(kwnames, k);
      size_t i = 0;
      while (i < most && PyUnicode_CompareWithASCIIString(name, names[i]) != 0) i++;
      if (i == most || given[i]) {
        PyErr_Format(PyExc_TypeError, "%s() got an unexpected argument '%U'", function, name);
        throw Raised();
      }
      given[i] = args[count + k];
    }
    for (size_t i = 0; i < required; i++) {
      if (!given[i]) {
        PyErr_Format(PyExc_TypeError, "%s() missing the argument '%s'", function, names[i]);
        throw Raised();
      }
    }
    for (size_t i = required; i < most; i++) {
      if (!given[i]) given[i] = Py_None;
    }
  }
};

constexpr const char* kTreeNames[] = {"tree", "is_leaf", "is_leaf_takes_path"};

PyObject* py_flatten(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* kwnames) {
  return guarded_depth([&]() -> PyObject* {
    Arguments a("flatten", kTreeNames, 1, 2, args, count, kwnames);
    PyObject* tree = a.given[0];
    Busy busy;
    Items leaves;
    nb::object structure;
    if (a.given[1] != Py_None) {
      structure = nb::steal(flatten_unless(tree, a.given[1], leaves));
    } else {
      Node* node = node_of(Py_TYPE(tree));
      if (!node) {
        leaves.push_new(tree);
        return pair(nb::steal(leaves.to_list()), nb::borrow(ref.leaf));
      }
      structure = nb::steal(flatten_node<true>(node, tree, leaves));
    }
    size_t size = leaves.size();
    nb::object treedef = nb::steal(make_treedef(std::move(structure), size));
    return pair(nb::steal(leaves.to_list()), std::move(treedef));
  });
}

PyObject* py_leaves(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* kwnames) {
  return guarded_depth([&]() -> PyObject* {
    Arguments a("leaves", kTreeNames, 1, 2, args, count, kwnames);
    PyObject* tree = a.given[0];
    Busy busy;
    Items leaves;
    if (a.given[1] != Py_None) {
      nb::steal(flatten_unless(tree, a.given[1], leaves));
    } else if (Node* node = node_of(Py_TYPE(tree))) {
      flatten_node<false>(node, tree, leaves);
    } else {
      leaves.push_new(tree);
    }
    return leaves.to_list();
  });
}

PyObject* py_flatten_with_path(PyObject*, PyObject* const* args, Py_ssize_t count,
                               PyObject* kwnames) {
  return guarded_depth([&]() -> PyObject* {
    Arguments a("flatten_with_path", kTreeNames, 1, 3, args, count, kwnames);
    int takes_path = PyObject_IsTrue(a.given[2]);
    checked(takes_path);
    Busy busy;
    Items leaves;
    nb::object structure = nb::steal(
        flatten_with_path(a.given[0], empty_tuple, a.given[1], takes_path && a.given[2] != Py_None, leaves));
    size_t size = leaves.size();
    nb::object treedef = nb::steal(make_treedef(std::move(structure), size));
    return pair(nb::steal(leaves.to_list()), std::move(treedef));
  });
}

void check_treedef(PyObject* treedef) {
  if (!PyObject_TypeCheck(treedef, reinterpret_cast<PyTypeObject*>(ref.treedef))) {
    PyErr_Format(PyExc_TypeError, "a PyTreeDef was expected, not %R", treedef);
    throw Raised();
  }
}

PyObject* py_unflatten(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 2) {
      PyErr_SetString(PyExc_TypeError, "unflatten() takes a treedef and leaves");
      throw Raised();
    }
    PyObject* treedef = args[0];
    check_treedef(treedef);
    nb::object given = nb::borrow(args[1]);
    PyObject* number = ref.num_leaves.get(treedef);
    Py_ssize_t size = number && PyLong_CheckExact(number) ? PyLong_AsSsize_t(number) : -1;
    bool fits = is_exact_sequence(given.ptr()) && Py_SIZE(given.ptr()) == size;
    if (!fits) {
      PyObject* arguments[2] = {treedef, args[1]};
      given = owned(vectorcall_method(name_exactly, arguments, 2, nullptr));
    }
    Busy busy;
    Items leaves;
    push_sequence(given.ptr(), leaves);
    size_t next = 0;
    nb::object structure = nb::borrow(ref.structure.get(treedef));
    return unflatten(structure.ptr(), leaves, next);
  });
}

PyObject* py_subtrees_of(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 2) {
      PyErr_SetString(PyExc_TypeError, "subtrees_of() takes a treedef and a tree");
      throw Raised();
    }
    check_treedef(args[0]);
    Busy busy;
    Items subtrees;
    nb::object structure = nb::borrow(ref.structure.get(args[0]));
    if (!flatten_up_to(structure.ptr(), args[1], subtrees)) return Py_NewRef(Py_None);
    return subtrees.to_list();
  });
}

// map(f, tree, rest, is_leaf): the mapped tree, or MISMATCH if the nodes of a tree in `rest`
// differ.
PyObject* py_map(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 4 || !PyTuple_Check(args[2])) {
      PyErr_SetString(PyExc_TypeError, "map() takes a function, a tree, a tuple and is_leaf");
      throw Raised();
    }
    PyObject *f = args[0], *tree = args[1], *rest = args[2], *is_leaf = args[3];
    Busy busy;
    Items leaves;
    PyObject* found = guarded_depth([&]() -> PyObject* {
      return is_leaf == Py_None ? flatten(tree, leaves) : flatten_unless(tree, is_leaf, leaves);
    });
    nb::object structure = owned(found);
    size_t size = leaves.size();
    if (PyTuple_GET_SIZE(rest) == 0) {
      for (size_t i = 0; i < size; i++) {
        nb::object leaf = nb::steal(leaves.take(i));
        leaves.data()[i] = checked(call_one_arg(f, leaf.ptr()));
      }
    } else {
      size_t others = (size_t)PyTuple_GET_SIZE(rest);
      std::vector<Items> columns(others);
      for (size_t k = 0; k < others; k++) {
        if (!flatten_up_to(structure.ptr(), PyTuple_GET_ITEM(rest, (Py_ssize_t)k), columns[k])) {
          return Py_NewRef(mismatch);
        }
      }
      std::vector<PyObject*> row(others + 2);
      for (size_t i = 0; i < size; i++) {
        nb::object leaf = nb::steal(leaves.take(i));
        row[1] = leaf.ptr();
        for (size_t k = 0; k < others; k++) row[k + 2] = columns[k][i];
        leaves.data()[i] = checked(vectorcall(
            f, row.data() + 1, (others + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
      }
    }
    size_t next = 0;
    return unflatten(structure.ptr(), leaves, next);
  });
}

// bind_tree(reference): take the classes and functions of the reference by name.
PyObject* py_bind(PyObject*, PyObject* reference) {
  return guarded([&]() -> PyObject* {
    auto take = [&](const char* name) {
      return checked(PyObject_GetAttrString(reference, name));
    };
    ref.node_type = take("node_type");
    ref.known = take("known");
    ref.same_meta = take("same_meta");
    ref.verdict = take("verdict");
    ref.too_deep = take("too_deep");
    ref.treedef = take("treedef");
    ref.leaf = take("leaf");
    ref.sequence_key = take("sequence_key");
    ref.dict_key = take("dict_key");
    ref.structure.bind(ref.treedef, "_structure");
    ref.num_leaves.bind(ref.treedef, "_num_leaves");
    ref.hash.bind(ref.treedef, "_hash");
    ref.sequence_value.bind(ref.sequence_key, "_value");
    ref.dict_value.bind(ref.dict_key, "_value");
    return Py_NewRef(Py_None);
  });
}

// forget_class(cls): a class that was seen as a leaf, or as a named tuple, is now registered.
PyObject* py_forget(PyObject*, PyObject* cls) {
  PyTypeObject* type = reinterpret_cast<PyTypeObject*>(cls);
  auto found = classes().find(type);
  if (found != classes().end()) {
    // Other code may still use the record.
    static auto* retired = new std::vector<std::unique_ptr<Node>>();
    if (found->second) retired->push_back(std::move(found->second));
    classes().erase(found);
    Line& line = line_of(type);
    if (line.type == type) line = Line();
    Py_DECREF(type);
  }
  Py_RETURN_NONE;
}

// A built-in function in a class does not become a method; this makes it one.
PyObject* py_as_method(PyObject*, PyObject* function) { return PyInstanceMethod_New(function); }

template <typename F>
PyCFunction method(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef methods[] = {
    {"flatten", method(py_flatten), METH_FASTCALL | METH_KEYWORDS,
     "flatten(tree, is_leaf=None)\n--\n\nTakes a tree apart into its leaves and its structure."},
    {"leaves", method(py_leaves), METH_FASTCALL | METH_KEYWORDS,
     "leaves(tree, is_leaf=None)\n--\n\nLists the leaves of a tree."},
    {"flatten_with_path", method(py_flatten_with_path), METH_FASTCALL | METH_KEYWORDS,
     "flatten_with_path(tree, is_leaf=None, is_leaf_takes_path=False)\n--\n\n"
     "Takes a tree apart with the path of each leaf."},
    {"unflatten", method(py_unflatten), METH_FASTCALL,
     "unflatten(treedef, leaves, /)\n--\n\nBuilds the tree of a structure."},
    {"subtrees_of", method(py_subtrees_of), METH_FASTCALL,
     "subtrees_of(treedef, tree, /)\n--\n\nThe subtrees at a structure's leaves, or None."},
    {"map", method(py_map), METH_FASTCALL,
     "map(f, tree, rest, is_leaf, /)\n--\n\nThe mapped tree, or MISMATCH."},
    {"bind_tree", py_bind, METH_O, "bind_tree(reference, /)\n--\n\nLearns the reference's names."},
    {"forget_class", py_forget, METH_O,
     "forget_class(cls, /)\n--\n\nA class met before was registered."},
    {"as_method", py_as_method, METH_O,
     "as_method(function, /)\n--\n\nA builtin function that binds as methods do."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_tree(nb::module_& m) {
  empty_tuple = checked(PyTuple_New(0));
  mismatch = checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type)));
  name_exactly = checked(PyUnicode_InternFromString("_exactly"));
  name_flatten = checked(PyUnicode_InternFromString("flatten"));
  name_unflatten = checked(PyUnicode_InternFromString("unflatten"));
  name_flatten_with_keys = checked(PyUnicode_InternFromString("flatten_with_keys"));
  name_keys = checked(PyUnicode_InternFromString("keys"));
  name_init = checked(PyUnicode_InternFromString("__init__"));
  checked(PyModule_AddFunctions(m.ptr(), methods));
  checked(PyModule_AddObjectRef(m.ptr(), "MISMATCH", mismatch));
}

}  // namespace namoo
