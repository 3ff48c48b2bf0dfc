#define NAMOO_IMPORTS_NUMPY
#include "arrays.h"

namespace namoo {

void need_numpy() {
  static bool done = false;
  if (done) return;
  checked(_import_array());
  done = true;
}

}  // namespace namoo

NB_MODULE(_runtime, m) {
  m.doc() = "What Python is too slow for: trees, the path of a call, buffers, random bits.";
  m.attr("INTERFACE") = 4;  // what `namoo._base.runtime` expects
  try {
    namoo::add_tree(m);
    namoo::add_pool(m);
    namoo::add_entry(m);
    namoo::add_call(m);
    namoo::add_random(m);
    namoo::add_reduce(m);
    namoo::add_product(m);
    namoo::add_operators(m);
    namoo::add_workers(m);
    namoo::add_equations(m);
    namoo::add_repeated(m);
  } catch (namoo::Raised&) {
    throw nb::python_error();
  }
}
