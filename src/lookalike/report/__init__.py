"""Self-contained HTML pages: templates, one page frame, charts."""
