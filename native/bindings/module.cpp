// The border between Python and the core. What users give is validated by the Python side, whose
// errors speak their language. Here every array's type, shape and range is checked once more: what
// does not fit is a mistake of ours, says so as BorderError, and reaches no raw pointer.

#include "bindings/module.hpp"

#include "bindings/arrays.hpp"

// Defines PyInit__core; Python calls PyInit__native, below.
NB_MODULE(_core, module) {
    // Signers in a module of the caller live until the interpreter ends; that is not a leak.
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
    lookalike::bindings::bind_prefixes(module);
    lookalike::bindings::bind_pairs(module);
    lookalike::bindings::bind_set_join(module);
    lookalike::bindings::bind_bands(module);
    lookalike::bindings::bind_samples(module);
    lookalike::bindings::bind_given_hashes(module);
    lookalike::bindings::bind_clusters(module);
    lookalike::bindings::bind_parts(module);
    lookalike::bindings::bind_passages(module);
    lookalike::bindings::bind_repeats(module);
    lookalike::bindings::bind_vectors(module);
    lookalike::bindings::bind_images(module);
    lookalike::bindings::bind_words(module);
}

extern "C" NB_EXPORT PyObject* PyInit__native();

// Types live in one interpreter, which nanobind remembers for the whole process: initializing it in
// a second one, even in vain, would take them from the first. So that is refused before it begins.
extern "C" PyObject* PyInit__native() {
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        PyErr_SetString(PyExc_ImportError,
                        "lookalike cannot be imported in a subinterpreter, only in the main "
                        "interpreter of a process; use it there, or in a process of its own");
        return nullptr;
    }
    return PyInit__core();
}
