"""Folders of files that are no texts: which of them show, or sound, the same?

`medium` says what a kind of file has to bring, `kinds` lists them, `find` looks for files,
`job` takes the steps, `result` has what was found, and `report/` shows it on a page.
"""
