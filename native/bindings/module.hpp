// One function per folder of the core.
#pragma once

#include <nanobind/nanobind.h>

namespace lookalike::bindings {

void bind_bits(nanobind::module_& module);
void bind_text(nanobind::module_& module);
void bind_sign(nanobind::module_& module);
void bind_scan(nanobind::module_& module);
void bind_slices(nanobind::module_& module);
void bind_tables(nanobind::module_& module);
void bind_prefixes(nanobind::module_& module);
void bind_pairs(nanobind::module_& module);
void bind_set_join(nanobind::module_& module);
void bind_bands(nanobind::module_& module);
void bind_samples(nanobind::module_& module);
void bind_given_hashes(nanobind::module_& module);
void bind_clusters(nanobind::module_& module);
void bind_parts(nanobind::module_& module);
void bind_passages(nanobind::module_& module);
void bind_repeats(nanobind::module_& module);
void bind_vectors(nanobind::module_& module);
void bind_images(nanobind::module_& module);
void bind_words(nanobind::module_& module);

}  // namespace lookalike::bindings
