"""The experiments of the papers that lookalike stands on, run again with it.

`python -m papers` runs them and writes a page with the papers' figures beside ours, in whole or
section by section. Files are named after documents: `issl`, `draft`, `slides`, `psm`, `matchcode`;
`shared.py` has the data that they share, `scale.py` how much of it, `page.py` what a page is made
of. Not imported with the rest of the package.
"""
