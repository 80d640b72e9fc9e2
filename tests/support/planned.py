"""Costs of a machine that does not change, so that plans of it do not either."""

from __future__ import annotations

from lookalike.planning.machine import MachineCosts

__all__ = ["COSTS"]

COSTS = MachineCosts(
    access=((2.0**17, 2.0), (2.0**20, 2.5), (2.0**24, 6.0), (2.0**27, 12.0)),
    waiting=100.0,
    reading_byte=0.08,
    sorting=0.5,
    pair=0.02,
    pair_byte=0.011,
    scan_query=80.0,
    nearest=80.0,
    within_query=300.0,
    within_list=80.0,
    within_sketch=0.3,
    within_row=5.0,
    within_byte=0.3,
    top_query=5000.0,
    top_list=20.0,
    top_posting=1.5,
    top_candidate=35.0,
    top_row=5.0,
    slice_build=10.0,
    block_query=40.0,
    block_table=25.0,
    block_word=0.3,
    block_stream=45.0,
    block_stream_word=0.7,
    block_accesses=4.0,
    block_fetch=10.0,
    block_fetch_accesses=1.0,
    flip_query=70.0,
    flip_set=25.0,
    flip_heap=12.0,
    table_build=50.0,
)
