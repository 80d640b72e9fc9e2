"""The experiments of the papers that lookalike stands on, run again with it.

`python -m papers` runs them and writes a page with the papers' figures beside
ours. One file for each document; `world.py` has the data they share, `page.py` what a page is made
of. Not imported with the rest of the package.
"""
