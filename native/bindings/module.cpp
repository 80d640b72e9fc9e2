// The border between Python and the core. What users give is validated by the Python side, whose
// errors speak their language. Here every array's type, shape and range is checked once more: what
// does not fit is a mistake of ours, says so as BorderError, and reaches no raw pointer.

#include "bindings/module.hpp"

#include "bindings/arrays.hpp"

NB_MODULE(_native, module) {
    // Signers that live in somebody's module are there until the interpreter ends; that is no leak.
    nanobind::set_leak_warnings(false);
    module.attr("__version__") = LOOKALIKE_VERSION;
    nanobind::exception<lookalike::bindings::BorderError>(module, "BorderError",
                                                          PyExc_RuntimeError);
    lookalike::bindings::bind_bits(module);
    lookalike::bindings::bind_text(module);
    lookalike::bindings::bind_sign(module);
    lookalike::bindings::bind_scan(module);
    lookalike::bindings::bind_slices(module);
    lookalike::bindings::bind_tables(module);
    lookalike::bindings::bind_pairs(module);
}
