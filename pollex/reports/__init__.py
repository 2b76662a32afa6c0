"""Pages from results: Jinja2 templates, SVG drawings, no computing and no files."""
