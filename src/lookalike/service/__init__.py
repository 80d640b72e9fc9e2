"""An HTTP service for live collections: `lookalike serve`.

`settings` has the options, `app` builds the application, and `running` starts it. A request passes
`protocol` (connections), `middleware` (host, key, number of requests), `routing` (body, limits,
errors) and a handler in `routes/`. `service` runs work in threads (`batching` for queries) and in
processes (`jobs`, `overviews`). `page/` is the web page.
"""
