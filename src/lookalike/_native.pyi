"""The C++ core (native/bindings). Its arguments are validated by the modules that call it."""

from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Cut: TypeAlias = int | list[int] | tuple[int, ...]

__version__: str
unicode_version: str

class TooManyResults(Exception): ...
class CorruptLists(Exception): ...
class CorruptTable(Exception): ...

class NotFinite(Exception):
    query: int

class BorderError(RuntimeError): ...
class Canceled(BaseException): ...

class Operation:
    def cancel(self, shielded_too: bool) -> None: ...
    def canceled(self, shielded: bool) -> bool: ...
    def done(self) -> float: ...
    def set_done(self, share: float) -> None: ...

def work_on(operation: Operation | None, shielded: bool, begin: float, width: float) -> None: ...
def stop_if_canceled() -> None: ...

class StepCosts:
    @property
    def touch(self) -> float: ...
    @property
    def list(self) -> float: ...
    @property
    def entry(self) -> float: ...
    @property
    def visit(self) -> float: ...
    def listed(self, bytes: int) -> float: ...
    def look_up(self) -> float: ...
    def compare(self, bytes: int) -> float: ...
    def bucket(self, bytes: int) -> float: ...
    def scan(self, bytes: float, queries: float) -> float: ...

USUAL_COSTS: StepCosts
BAND_LEADERS: int
BAND_STEP: int

def kernels() -> list[tuple[str, bool, bool]]: ...
def select_kernel(name: str) -> bool: ...
def paired_distances(
    left: NDArray[np.uint8], right: NDArray[np.uint8], out: NDArray[np.int32]
) -> None: ...
def read_all(data: NDArray[np.uint8], threads: int) -> int: ...
def read_at_random(words: NDArray[np.uint64], first: int, reads: int, ahead: int) -> int: ...
def hash_rows(rows: NDArray[np.uint8], hashes: NDArray[np.uint64]) -> None: ...
def xxh64(data: NDArray[np.uint8], seed: int = 0) -> int: ...

class Xxh64:
    def add(self, data: NDArray[np.uint8]) -> None: ...
    def value(self) -> int: ...

def scan_nearest(
    rows: NDArray[np.uint8],
    ids: NDArray[np.int64] | None,
    ascending: bool,
    queries: NDArray[np.uint8],
    k: int,
    threads: int,
    out_ids: NDArray[np.int64],
    out_distances: NDArray[np.int32],
    removed: NDArray[np.uint8] | None = None,
) -> None: ...
def scan_within(
    rows: NDArray[np.uint8],
    ids: NDArray[np.int64] | None,
    ascending: bool,
    queries: NDArray[np.uint8],
    radius: int,
    limit: int,
    threads: int,
    removed: NDArray[np.uint8] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]: ...
def scan_nearest_masked(
    rows: NDArray[np.uint8],
    ids: NDArray[np.int64] | None,
    ascending: bool,
    queries: NDArray[np.uint8],
    masks: NDArray[np.uint8],
    k: int,
    threads: int,
    out_ids: NDArray[np.int64],
    out_distances: NDArray[np.int32],
    out_unmasked: NDArray[np.int32],
    removed: NDArray[np.uint8] | None = None,
) -> None: ...
def scan_within_masked(
    rows: NDArray[np.uint8],
    ids: NDArray[np.int64] | None,
    ascending: bool,
    queries: NDArray[np.uint8],
    masks: NDArray[np.uint8],
    radius: int,
    limit: int,
    threads: int,
    removed: NDArray[np.uint8] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]: ...
def scan_pairs(
    rows: NDArray[np.uint8],
    ids: NDArray[np.int64] | None,
    ascending: bool,
    radius: int,
    limit: int,
    threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]: ...
def scan_all(
    left: NDArray[np.uint8], right: NDArray[np.uint8], threads: int, out: NDArray[np.int32]
) -> None: ...

class Documents:
    @staticmethod
    def from_list(texts: list[Any], first_position: int) -> Documents: ...
    @staticmethod
    def from_arrow(stream: Any) -> Documents: ...
    def __len__(self) -> int: ...
    def part(self, begin: int, end: int) -> Documents: ...
    def take(self, positions: NDArray[np.int64]) -> Documents: ...
    def to_list(self) -> list[str]: ...
    def count_short(self, characters: int) -> tuple[int, int]: ...
    def first_equal(self, threads: int, first: NDArray[np.int64]) -> None: ...

def line_ends(text: NDArray[np.uint8]) -> NDArray[np.int64]: ...
def json_columns(
    text: NDArray[np.uint8], ends: NDArray[np.int64], keys: list[str], threads: int
) -> list[tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8] | None]] | None: ...
def longest_prefixed(data: NDArray[np.uint8]) -> int | None: ...
def decoded_json(data: NDArray[np.uint8]) -> tuple[int, int, int]: ...
def decoded_messagepack(data: NDArray[np.uint8], deepest: int) -> tuple[int, int, int] | None: ...

class TextFeatures:
    def __init__(
        self,
        characters: bool,
        ngrams: list[int],
        lowercase: bool,
        min_length: int,
        stopwords: list[str],
        stem: bool,
    ) -> None: ...
    def unknown_words(self, documents: Documents) -> list[str]: ...
    def add_stems(self, words: list[str], stems: list[str]) -> None: ...
    def forget_stems(self) -> None: ...
    @property
    def known_stems(self) -> int: ...
    def extract(self, documents: Documents) -> tuple[NDArray[np.int64], NDArray[np.uint64]]: ...

class Source:
    @staticmethod
    def of_texts(documents: Documents, features: TextFeatures) -> Source: ...
    @staticmethod
    def of_features(
        offsets: NDArray[np.int64], features: NDArray[np.uint64], weights: NDArray[np.float64]
    ) -> Source: ...
    @staticmethod
    def of_kinds(sources: list[Source], factors: list[float]) -> Source: ...
    def __len__(self) -> int: ...
    @property
    def first_below_zero(self) -> int: ...

class WeightKind(Enum):
    uniform = 0
    count = 1
    log_count = 2
    tfidf = 3
    log_likelihood = 4
    idf = 5

class RepeatedFeatures:
    def __init__(self, expected: int) -> None: ...
    def observe(self, source: Source, threads: int) -> None: ...

class Vocabulary:
    def __init__(self, most: int) -> None: ...
    def __len__(self) -> int: ...
    def observe(
        self, source: Source, threads: int, repeated: RepeatedFeatures | None = None
    ) -> None: ...
    def leave_out_above(self, documents: int) -> None: ...
    def add(
        self,
        features: NDArray[np.uint64],
        documents: NDArray[np.uint64],
        occurrences: NDArray[np.uint64],
    ) -> None: ...
    def add_totals(
        self,
        documents: int,
        occurrences: int,
        forgotten_documents: int,
        forgotten_occurrences: int,
    ) -> None: ...
    def arrays(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]: ...
    @property
    def totals(self) -> tuple[int, int, int, int]: ...

def count_features(source: Source, threads: int, counts: NDArray[np.int64]) -> None: ...
def count_distinct(source: Source, threads: int, counts: NDArray[np.int64]) -> None: ...
def total_weights(
    source: Source,
    kind: WeightKind,
    vocabulary: Vocabulary | None,
    threads: int,
    totals: NDArray[np.float64],
) -> None: ...
def places_of(
    hashes: NDArray[np.uint64], known: NDArray[np.uint64], places: NDArray[np.int64]
) -> None: ...
def multiply_rows(
    offsets: NDArray[np.int64],
    columns: NDArray[np.int64],
    values: NDArray[np.float32],
    matrix: NDArray[np.float32],
    threads: int,
    product: NDArray[np.float32],
) -> None: ...
def list_features(
    source: Source, kind: WeightKind, vocabulary: Vocabulary | None, threads: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float64]]: ...
def simhash(
    source: Source,
    kind: WeightKind,
    vocabulary: Vocabulary | None,
    seed: int,
    threads: int,
    signatures: NDArray[np.uint8],
    sums: NDArray[np.float32] | None,
) -> None: ...
def normal_simhash(
    source: Source,
    kind: WeightKind,
    vocabulary: Vocabulary | None,
    seed: int,
    normals: NDArray[np.int16],
    unit: float,
    threads: int,
    signatures: NDArray[np.uint8],
    sums: NDArray[np.float32] | None,
) -> None: ...
def topsig(
    source: Source,
    kind: WeightKind,
    vocabulary: Vocabulary | None,
    bytes: int,
    density: int,
    seed: int,
    terms_per_part: int,
    threads: int,
    masked: bool,
    sums: NDArray[np.float32] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint8]]: ...
def minhash(
    source: Source,
    factors: list[int],
    terms: list[int],
    threads: int,
    minima: NDArray[np.uint32],
) -> None: ...
def weighted_minhash(
    source: Source,
    kind: WeightKind,
    vocabulary: Vocabulary | None,
    seed: int,
    threads: int,
    values: NDArray[np.uint32],
) -> None: ...
def mersenne_minima(
    hashes: NDArray[np.uint64],
    factors: NDArray[np.uint64],
    terms: NDArray[np.uint64],
    minima: NDArray[np.uint64],
) -> None: ...
def packed_minhash(
    source: Source,
    factors: list[int],
    terms: list[int],
    b: int,
    threads: int,
    signatures: NDArray[np.uint8],
) -> None: ...
def pack_minima(
    minima: NDArray[np.uint32], b: int, mix: bool, threads: int, signatures: NDArray[np.uint8]
) -> None: ...

class GivenHashes:
    def __init__(self) -> None: ...
    def add_linear(self, factor: int, term: int, modulus: int) -> None: ...
    def add_table(self, features: NDArray[np.uint64], values: NDArray[np.uint32]) -> None: ...
    def minima(
        self, source: Source, threads: int, values: NDArray[np.uint32]
    ) -> tuple[int, int]: ...

def equal_values(
    left: NDArray[np.uint8],
    right: NDArray[np.uint8],
    permutations: int,
    b: int,
    equal: NDArray[np.int32],
) -> None: ...
def project(
    vectors: NDArray[np.float32],
    matrix: NDArray[np.float32],
    threads: int,
    signatures: NDArray[np.uint8],
) -> None: ...
def project_with_sums(
    vectors: NDArray[np.float32],
    matrix: NDArray[np.float32],
    threads: int,
    signatures: NDArray[np.uint8],
    sums: NDArray[np.float32],
) -> None: ...
def jaccard(
    left_source: Source,
    right_source: Source,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    threads: int,
    similarities: NDArray[np.float64],
) -> None: ...
def containment(
    left_source: Source,
    right_source: Source,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    threads: int,
    similarities: NDArray[np.float64],
) -> None: ...
def cosine(
    left_source: Source,
    right_source: Source,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    threads: int,
    similarities: NDArray[np.float64],
    kind: WeightKind,
    vocabulary: Vocabulary | None,
) -> None: ...
def weighted_jaccard(
    left_source: Source,
    right_source: Source,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    threads: int,
    similarities: NDArray[np.float64],
    kind: WeightKind,
    vocabulary: Vocabulary | None,
) -> None: ...
def weighted_containment(
    left_source: Source,
    right_source: Source,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    threads: int,
    similarities: NDArray[np.float64],
    kind: WeightKind,
    vocabulary: Vocabulary | None,
) -> None: ...

class Segment:
    def __init__(
        self,
        rows: NDArray[np.uint8],
        ids: NDArray[np.int64] | None,
        ascending: bool,
        removed: NDArray[np.uint8] | None,
        alive: int,
    ) -> None: ...
    def use_lists(
        self,
        slice_bits: Cut,
        offsets: NDArray[Any],
        postings: NDArray[Any],
        sketches: NDArray[np.uint16] | None,
        values: NDArray[np.uint32] | None,
        directory: int,
    ) -> None: ...

def has_sketches(bits: int) -> bool: ...
def slice_widths(bits: int, slice_bits: Cut) -> list[int]: ...
def lists_near(width: int, expand: int) -> float: ...
def expected_work(
    bits: int,
    slice_bits: int,
    rows: int,
    radius: int,
    queries: int,
    lengths: NDArray[np.float64] | None = None,
    near: NDArray[np.float64] | None = None,
) -> tuple[float, float, float] | None: ...
def slice_levels(
    rows: NDArray[np.uint8],
    queries: NDArray[np.uint8],
    slice_bits: Cut,
    radius: int,
    levels: NDArray[np.int64],
    near: NDArray[np.int64],
) -> None: ...
def slice_scores(
    rows: NDArray[np.uint8],
    queries: NDArray[np.uint8],
    slice_bits: Cut,
    scores: NDArray[np.int32],
) -> None: ...
def optimistic_distances(bits: int, slice_bits: Cut, expand: int) -> NDArray[np.int32]: ...
def slice_proofs(
    bits: int,
    slice_bits: Cut,
    expand: int,
    admit: int,
    rest: NDArray[np.int32],
    kth: NDArray[np.int32],
    proven: NDArray[np.uint8],
) -> None: ...
def build_lists(
    rows: NDArray[np.uint8],
    slice_bits: Cut,
    threads: int,
    offsets: NDArray[Any],
    postings: NDArray[Any],
    sketches: NDArray[np.uint16] | None,
    values: NDArray[np.uint32] | None,
    directory: int,
) -> None: ...
def count_lists(
    rows: NDArray[np.uint8], slice_bits: Cut, threads: int, offsets: NDArray[Any], directory: int
) -> None: ...
def fill_lists(
    rows: NDArray[np.uint8],
    slice_bits: Cut,
    threads: int,
    offsets: NDArray[Any],
    first: int,
    end: int,
    postings: NDArray[Any],
    sketches: NDArray[np.uint16] | None,
    values: NDArray[np.uint32] | None,
    directory: int,
) -> None: ...
def merge_lists(
    segments: list[Segment],
    slice_bits: Cut,
    threads: int,
    offsets: NDArray[Any],
    postings: NDArray[Any],
    sketches: NDArray[np.uint16] | None,
) -> None: ...

class Cull(Enum):
    pessimistic = 0
    optimistic = 1
    both = 2

class NearestSettings:
    def __init__(
        self,
        *,
        k: int,
        expand: int,
        admit: int,
        rerank: int,
        exact: bool,
        or_scan: bool,
        explain: bool,
        by_score: bool = False,
        cull: Cull = ...,
    ) -> None: ...

class NearestAnswer:
    def __init__(
        self,
        *,
        ids: NDArray[np.int64],
        distances: NDArray[np.int32],
        scores: NDArray[np.int32],
        rest: NDArray[np.int32],
        proven: NDArray[np.uint8],
        work: NDArray[np.int64],
    ) -> None: ...

def slice_nearest(
    segments: list[Segment],
    slice_bits: Cut,
    queries: NDArray[np.uint8],
    settings: NearestSettings,
    threads: int,
    answer: NearestAnswer,
) -> None: ...
def slice_within(
    segments: list[Segment],
    slice_bits: Cut,
    queries: NDArray[np.uint8],
    radius: int,
    limit: int,
    threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]: ...
def slice_nearest_masked(
    segments: list[Segment],
    slice_bits: Cut,
    queries: NDArray[np.uint8],
    masks: NDArray[np.uint8],
    k: int,
    threads: int,
    out_ids: NDArray[np.int64],
    out_distances: NDArray[np.int32],
    out_unmasked: NDArray[np.int32],
) -> NDArray[np.int64]: ...
def slice_within_masked(
    segments: list[Segment],
    slice_bits: Cut,
    queries: NDArray[np.uint8],
    masks: NDArray[np.uint8],
    radius: int,
    limit: int,
    threads: int,
) -> tuple[
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int64],
]: ...
def block_pairs(
    rows: NDArray[np.uint8],
    skipped: NDArray[np.uint8] | None,
    radius: int,
    limit: int,
    threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]] | None: ...
def drawn_pairs(
    rows: NDArray[np.uint8],
    skipped: NDArray[np.uint8] | None,
    draws: NDArray[np.int32],
    key_bits: int,
    near_bits: int,
    radius: int,
    most: float,
    limit: int,
    threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]] | None: ...
def equal_rows(rows: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
def band_keys(
    rows: NDArray[np.uint8], band_bytes: int, first: int, keys: NDArray[np.uint32]
) -> None: ...
def band_groups(
    keys: NDArray[np.uint32], band: int
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]: ...
def group_pairs(
    keys: NDArray[np.uint32],
    large_keys: NDArray[np.uint32],
    large_offsets: NDArray[np.int64],
    band: int,
    rows: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    most: int,
    first_new: int,
    threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
def deal_bands(
    keys: NDArray[np.uint32],
    positions: NDArray[np.int64],
    buckets: int,
    entries: NDArray[np.uint64],
    begins: NDArray[np.int64],
) -> None: ...
def equal_values_at(
    rows: NDArray[np.uint8],
    value_bytes: int,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    threads: int,
    equal: NDArray[np.int32],
) -> None: ...
def components(
    left: NDArray[np.int64], right: NDArray[np.int64], labels: NDArray[np.int64]
) -> None: ...
def stars(
    order: NDArray[np.int64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    labels: NDArray[np.int64],
) -> None: ...

class Measure(Enum):
    jaccard = 0
    containment = 1
    cosine = 2

class FeatureSets:
    def __init__(self, kind: WeightKind, expected: int, most: int, common: int = ...) -> None: ...
    def observe(self, source: Source, threads: int) -> None: ...
    def add(self, source: Source, threads: int) -> None: ...

class SetJoin:
    def __init__(
        self,
        sets: FeatureSets,
        measure: Measure,
        threshold: float,
        old: NDArray[np.uint8],
        most_postings: int,
        threads: int,
    ) -> None: ...
    def next(
        self, most: int, threads: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]: ...
    @property
    def finished(self) -> bool: ...
    @property
    def share(self) -> float: ...
    @property
    def candidates(self) -> int: ...
    @property
    def compared(self) -> int: ...

class Samples:
    def __init__(
        self,
        size: int,
        largest_group: int,
        leaders: int,
        kind: WeightKind = ...,
        vocabulary: Vocabulary | None = None,
    ) -> None: ...
    def observe(self, source: Source, threads: int) -> None: ...
    def look_up(self, source: Source, threads: int) -> None: ...
    def pairs(
        self,
        begin: int,
        end: int,
        needed: NDArray[np.float64],
        first_new: int,
        threads: int,
        least_share: float = 0.0,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    @property
    def in_large_groups(self) -> int: ...

class Table:
    def __init__(
        self,
        sorted: NDArray[np.uint8],
        runs: list[tuple[int, int]],
        rows: NDArray[np.uint32] | None,
        offsets: NDArray[np.uint32],
        compressed: bool,
    ) -> None: ...

def build_table(
    rows: NDArray[np.uint8],
    runs: list[tuple[int, int]],
    threads: int,
    sorted: NDArray[np.uint8] | None,
    places: NDArray[np.uint32],
    offsets: NDArray[np.uint32],
) -> None: ...
def find_offsets(
    sorted: NDArray[np.uint8],
    runs: list[tuple[int, int]],
    threads: int,
    offsets: NDArray[np.uint32],
) -> bool: ...
def order_by_prefix(
    queries: NDArray[np.uint8],
    ordered: NDArray[np.uint8],
    rows: NDArray[np.uint32],
    places: NDArray[np.uint32],
) -> None: ...
def bucket_rows(tables: list[Table], queries: NDArray[np.uint8]) -> NDArray[np.int64]: ...
def block_within(
    tables: list[Table],
    ids: NDArray[np.int64] | None,
    queries: NDArray[np.uint8],
    radius: int,
    first: bool,
    limit: int,
    threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]: ...
def prefix_keys(
    rows: NDArray[np.uint8], bits: NDArray[np.uint32], threads: int, keys: NDArray[np.uint64]
) -> None: ...
def prefix_nearest(
    orders: list[Table],
    rows: NDArray[np.uint8],
    ids: NDArray[np.int64] | None,
    removed: NDArray[np.uint8] | None,
    queries: NDArray[np.uint8],
    keys: NDArray[np.uint64],
    examine: int,
    threads: int,
    near: NDArray[np.int64],
    distances: NDArray[np.int32],
    work: NDArray[np.int64],
) -> None: ...
def prefix_within(
    orders: list[Table],
    rows: NDArray[np.uint8],
    ids: NDArray[np.int64] | None,
    removed: NDArray[np.uint8] | None,
    queries: NDArray[np.uint8],
    keys: NDArray[np.uint64],
    examine: int,
    threads: int,
    radius: int,
    limit: int,
    work: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]: ...

class FlipWeights:
    def __init__(self, values: NDArray[Any] | None, start: int) -> None: ...

class FlipCosts:
    def __init__(self, scale: float, costs: NDArray[np.uint16]) -> None: ...

class FlipSettings:
    def __init__(self, *, radius: int, flips: int, first: bool, differences: bool) -> None: ...

def flip_within(
    table: Table,
    ids: NDArray[np.int64] | None,
    queries: NDArray[np.uint8],
    weights: FlipWeights,
    costs: FlipCosts,
    settings: FlipSettings,
    limit: int,
    threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]: ...
def flip_choices(
    weights: FlipWeights,
    places: NDArray[np.uint32] | None,
    costs: FlipCosts,
    bits: int,
    most: int,
    threads: int,
    sets: NDArray[np.uint32],
) -> None: ...
def flip_attempts(
    differences: NDArray[np.uint64],
    weights: FlipWeights,
    costs: FlipCosts,
    bits: int,
    most: int,
    threads: int,
    attempts: NDArray[np.int64],
) -> None: ...

class BandTable:
    def __init__(
        self, values: int, bands: int, band_values: int, empty_counts: bool, seed: int
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def removed(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    def insert(self, rows: NDArray[np.uint32]) -> int: ...
    def remove(self, rows: NDArray[np.int64]) -> None: ...
    def copy(self, rows: NDArray[np.int64], values: NDArray[np.uint32]) -> None: ...
    def query(
        self, queries: NDArray[np.uint32], bands: int, least: int, limit: int, threads: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]: ...

# Clusters

def majority_centers(
    rows: NDArray[np.uint8], labels: NDArray[np.int64], threads: int, centers: NDArray[np.uint8]
) -> None: ...
def nearest_among(
    rows: NDArray[np.uint8],
    centers: NDArray[np.uint8],
    candidates: NDArray[np.int64],
    threads: int,
    labels: NDArray[np.int64],
    distances: NDArray[np.int32],
) -> None: ...

class Groups:
    def __init__(
        self,
        rows: NDArray[np.uint8],
        ids: NDArray[np.int64],
        offsets: NDArray[np.int64],
        centers: NDArray[np.uint8],
        from_center: NDArray[np.int32],
        nearest: NDArray[np.int32],
        farthest: NDArray[np.int32],
    ) -> None: ...
    def nearest(
        self,
        removed: NDArray[np.uint8] | None,
        queries: NDArray[np.uint8],
        probe: int,
        threads: int,
        ids: NDArray[np.int64],
        distances: NDArray[np.int32],
        proven: NDArray[np.uint8],
        work: NDArray[np.int64],
    ) -> None: ...
    def within(
        self,
        removed: NDArray[np.uint8] | None,
        queries: NDArray[np.uint8],
        radius: int,
        limit: int,
        threads: int,
        work: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]: ...

# Parts

def part_votes(
    query_parts: NDArray[np.int64],
    items: NDArray[np.int64],
    differences: NDArray[np.int64],
    parts: NDArray[np.int64],
    distances: NDArray[np.int32],
    count: int,
    weights: NDArray[np.int64],
    tolerance: int,
    least: int,
    k: int,
    vote: int = ...,
) -> tuple[
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int32],
]: ...

# Passages

_Columns = tuple[
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
]

def word_places(
    documents: Documents, number: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...

class NumberedTexts:
    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    @property
    def words(self) -> int: ...
    def word_counts(self) -> NDArray[np.int64]: ...
    def add(self, documents: Documents) -> None: ...
    def overlaps(
        self, piece: int, gap: int, min_words: int, common: int, within: bool, threads: int
    ) -> tuple[_Columns, int, int]: ...

class PassageQuery:
    def __init__(
        self, documents: Documents, piece: int, gap: int, min_words: int, common: int
    ) -> None: ...
    def find(self, documents: Documents, threads: int) -> tuple[_Columns, int, int]: ...

# Repeats

def without_ranges(
    documents: Documents,
    offsets: NDArray[np.int64],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]: ...
def characters_at(
    documents: Documents, numbers: NDArray[np.int64], bytes: NDArray[np.int64]
) -> NDArray[np.int64]: ...
def mark_repeated(
    hashes: NDArray[np.uint64], part: int, part_bits: int, flags: NDArray[np.uint8], threads: int
) -> None: ...
def mark_texts(
    anchors: NDArray[np.uint64],
    counts: NDArray[np.int64],
    wanted: NDArray[np.uint64],
    flags: NDArray[np.uint8],
) -> None: ...
def units(documents: Documents, unit: int) -> NDArray[np.int64]: ...

_Hashed = tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]

class RepeatTexts:
    def __init__(self, documents: Documents, order: NDArray[np.int64]) -> None: ...
    @property
    def total(self) -> int: ...
    def set_removed(
        self, offsets: NDArray[np.int64], begins: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> None: ...
    def anchors(
        self, begin: int, end: int, words: int, threads: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]: ...
    def flagged_windows(
        self,
        begin: int,
        end: int,
        words: int,
        flags: NDArray[np.uint8],
        counts: NDArray[np.int64],
        part_bits: int,
        hash_bits: int,
        threads: int,
    ) -> _Hashed: ...
    def joining_windows(
        self, begin: int, end: int, words: int, hash_bits: int, threads: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]: ...
    def wanted_windows(
        self,
        begin: int,
        end: int,
        words: int,
        wanted: NDArray[np.uint64],
        flags: NDArray[np.uint8],
        part_bits: int,
        hash_bits: int,
        threads: int,
    ) -> _Hashed: ...
    def units(
        self,
        begin: int,
        end: int,
        unit: int,
        words: int,
        part_bits: int,
        hash_bits: int,
        threads: int,
    ) -> _Hashed: ...
    def copies(
        self,
        hashes: NDArray[np.uint64],
        positions: NDArray[np.int64],
        words: int,
        unit: int,
        most_texts: int,
        every: bool,
        compared: bool,
        least: int,
        most_places: int,
        threads: int,
    ) -> tuple[
        tuple[NDArray[np.int64], NDArray[np.int64]],
        tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    ]: ...
    def text_of(
        self, positions: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    def removals(
        self,
        places: NDArray[np.int64],
        firsts: NDArray[np.int64],
        words: int,
        unit: int,
        least: int,
        gap: int,
        boundary: int,
        threads: int,
    ) -> tuple[tuple[NDArray[np.int64], ...], int]: ...
    def far_removals(
        self,
        places: NDArray[np.int64],
        documents: NDArray[np.int64],
        firsts: NDArray[np.int64],
        own: NDArray[np.int64],
        words: int,
        unit: int,
        boundary: int,
        threads: int,
    ) -> tuple[NDArray[np.int64], ...]: ...
    def fingerprints(
        self,
        positions: NDArray[np.int64],
        words: int,
        unit: int,
        first: int,
        second: int,
        threads: int,
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]: ...

class BenchmarkItems:
    def __init__(
        self, documents: Documents, rule: int, words: int, fewest: int, share: float, gap: int
    ) -> None: ...
    @property
    def skipped(self) -> int: ...
    def find(self, documents: Documents, threads: int) -> tuple[NDArray[Any], ...]: ...

# Vectors

class Vectors:
    def __init__(
        self,
        first: NDArray[np.float32] | NDArray[np.uint16],
        added: NDArray[np.float32] | NDArray[np.uint16],
        ids: NDArray[np.int64] | None,
    ) -> None: ...
    def best_candidates(
        self,
        queries: NDArray[np.float32],
        candidates: NDArray[np.int64],
        threads: int,
        ids: NDArray[np.int64],
        cosines: NDArray[np.float64],
    ) -> None: ...
    def best_of_all(
        self,
        skip: NDArray[np.uint8] | None,
        queries: NDArray[np.float32],
        threads: int,
        ids: NDArray[np.int64],
        cosines: NDArray[np.float64],
    ) -> None: ...
    def at_least(
        self,
        skip: NDArray[np.uint8] | None,
        queries: NDArray[np.float32],
        least: float,
        limit: int,
        threads: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]: ...
    def cosines(
        self,
        queries: NDArray[np.float32],
        numbers: NDArray[np.int64],
        places: NDArray[np.int64],
        threads: int,
        cosines: NDArray[np.float64],
    ) -> None: ...
    def sketch(
        self, first: int, threads: int, codes: NDArray[np.uint8], scales: NDArray[np.float32]
    ) -> float: ...

class Sketches:
    def __init__(
        self,
        blocks: NDArray[np.uint8],
        scales: NDArray[np.float32],
        places: NDArray[np.uint32],
        offsets: NDArray[np.int64],
        centers: NDArray[np.uint8],
        center_scales: NDArray[np.float32],
        error: float,
    ) -> None: ...
    def best(
        self,
        vectors: Vectors,
        skip: NDArray[np.uint8] | None,
        queries: NDArray[np.float32],
        candidates: int,
        probe: int,
        threads: int,
        ids: NDArray[np.int64],
        cosines: NDArray[np.float64],
        done: NDArray[np.int64],
    ) -> None: ...
    def best_of_all(
        self,
        vectors: Vectors,
        skip: NDArray[np.uint8] | None,
        queries: NDArray[np.float32],
        threads: int,
        ids: NDArray[np.int64],
        cosines: NDArray[np.float64],
        done: NDArray[np.int64],
    ) -> None: ...
    def candidates(
        self,
        vectors: Vectors,
        skip: NDArray[np.uint8] | None,
        queries: NDArray[np.float32],
        probe: int,
        threads: int,
        places: NDArray[np.int64],
    ) -> None: ...

def signed_sums(
    weights: NDArray[np.float32],
    signatures: NDArray[np.uint8],
    numbers: NDArray[np.int64],
    threads: int,
    sums: NDArray[np.float64],
) -> None: ...
def nearest_sketches(
    blocks: NDArray[np.uint8],
    scales: NDArray[np.float32],
    codes: NDArray[np.uint8],
    count: int,
    threads: int,
    nearest: NDArray[np.int64],
    products: NDArray[np.float32],
) -> None: ...

class ImageBits:
    @staticmethod
    def of_waves(
        waves: NDArray[np.float64], down: NDArray[np.int64], across: NDArray[np.int64], least: int
    ) -> ImageBits: ...
    @staticmethod
    def of_steps(rows: int, columns: int, least: int) -> ImageBits: ...
    def sign(
        self,
        gray: NDArray[np.uint8],
        rows: tuple[int, int, bool],
        columns: tuple[int, int, bool],
        signature: NDArray[np.uint8],
    ) -> int: ...

class Pdq:
    @staticmethod
    def of(rows: int, columns: int) -> Pdq: ...
    def feed(self, pixels: NDArray[np.uint8]) -> None: ...
    def finish(self, signatures: NDArray[np.uint8]) -> int: ...

def image_thumbnail(
    gray: NDArray[np.uint8],
    rows: tuple[int, int, bool],
    columns: tuple[int, int, bool],
    thumbnail: NDArray[np.uint8],
) -> None: ...
def image_points(
    gray: NDArray[np.uint8],
    rows: tuple[int, int, bool],
    columns: tuple[int, int, bool],
    parts_down: int,
    parts_across: int,
    most: int,
) -> tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]: ...
def compare_images(
    first: NDArray[np.uint8],
    second: NDArray[np.uint8],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    refine: bool,
    threads: int,
    placements: NDArray[np.float64],
    agreements: NDArray[np.float64],
) -> None: ...

most_query_words: int
piece_share: tuple[int, int]

class WordSegment:
    def __init__(
        self,
        numbers: NDArray[np.int64],
        lengths: NDArray[np.uint32],
        words: NDArray[np.uint64],
        offsets: NDArray[np.int64],
        documents: NDArray[np.uint32],
        counts: NDArray[np.uint8],
        piece_offsets: NDArray[np.int64],
        pieces: NDArray[np.uint8],
    ) -> None: ...

WordArrays: TypeAlias = tuple[
    NDArray[np.int64],
    NDArray[np.uint32],
    NDArray[np.uint64],
    NDArray[np.int64],
    NDArray[np.uint32],
    NDArray[np.uint8],
    NDArray[np.int64],
    NDArray[np.uint8],
]

def word_bags(
    documents: Documents, kind: str, threads: int
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]: ...
def query_words(
    query: Documents, kind: str
) -> tuple[list[str], NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint16]]: ...
def hash_bags(
    numbers: NDArray[np.int64],
    ids: Documents,
    offsets: NDArray[np.int64],
    bags: NDArray[np.uint8],
    hashes: NDArray[np.uint64],
) -> None: ...
def build_words(
    numbers: NDArray[np.int64], offsets: NDArray[np.int64], bags: NDArray[np.uint8]
) -> WordArrays: ...
def merge_words(parts: list[tuple[WordSegment, NDArray[np.uint32]]]) -> WordArrays: ...
def search_words(
    parts: list[tuple[WordSegment, NDArray[np.uint32]]],
    words: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    pieces: NDArray[np.uint16],
    k: int,
) -> tuple[
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.uint64],
    NDArray[np.int64],
    NDArray[np.int64],
]: ...
