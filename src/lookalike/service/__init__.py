"""An HTTP service on live collections: `lookalike serve`.

`settings` has the options, `app` puts the service together, `running` starts it. A request passes
`protocol` (connections), `middleware` (host, key, numbers), `routing` (body, limits, errors) and a
handler in `routes/`. `service` does the work in threads (`batching` for queries), and in processes
(`jobs`, `overviews`). `page/` is what a browser gets.
"""
