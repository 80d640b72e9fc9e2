// The border between Python and the core. Arguments are already validated by the Python side,
// whose errors speak the user's language; the checks here only keep mistakes of ours from
// reaching raw pointers.

#include "bindings/module.hpp"

NB_MODULE(_native, module) {
    // Signers that live in somebody's module are there until the interpreter ends; that is no leak.
    nanobind::set_leak_warnings(false);
    module.attr("__version__") = LOOKALIKE_VERSION;
    lookalike::bindings::bind_bits(module);
    lookalike::bindings::bind_text(module);
    lookalike::bindings::bind_sign(module);
    lookalike::bindings::bind_search(module);
    lookalike::bindings::bind_slices(module);
    lookalike::bindings::bind_tables(module);
    lookalike::bindings::bind_pairing(module);
}
