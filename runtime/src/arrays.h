// NumPy arrays.
#pragma once

#include "common.h"

#define PY_ARRAY_UNIQUE_SYMBOL namoo_runtime_numpy
#ifndef NAMOO_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

namespace namoo {

// Load NumPy's C interface; trees do not need it.
void need_numpy();

}  // namespace namoo
