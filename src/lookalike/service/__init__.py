"""An HTTP service on live collections: `lookalike serve`.

`settings` says what can be set, `app` puts the service together, `running` starts it. `routes/` has
one file per subject of the API, `guard/` decides who may come in, `work/` does what was asked for
without blocking those who ask, `page/` is what a browser gets.
"""
