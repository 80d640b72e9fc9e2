"""Costs of a machine that does not change, so that plans of it do not either."""

from __future__ import annotations

from lookalike.advice.machine import MachineCosts

__all__ = ["COSTS"]

COSTS = MachineCosts(
    access=((2.0**17, 2.0), (2.0**20, 2.5), (2.0**24, 6.0), (2.0**27, 12.0)),
    waiting=((2.0**17, 5.0), (2.0**20, 10.0), (2.0**24, 60.0), (2.0**27, 100.0)),
    reading_byte=0.08,
    query=80.0,
    scanned_byte=0.0125,
    nearest=80.0,
    match=20.0,
    row=5.0,
    row_byte=0.3,
    within_list=80.0,
    within_sketch=0.3,
    top_query=1000.0,
    top_list=20.0,
    top_posting=1.5,
    top_candidate=25.0,
    slice_build=10.0,
    table_query=20.0,
    bucket=25.0,
    bucket_word=0.5,
    table_build=50.0,
    table_byte=2.0,
    table_sort=10.0,
    center=6.0,
    group=90.0,
    grouped_row=800.0,
    grouped_center=1.5,
    flip=2.0,
    disk_byte=0.5,
)
