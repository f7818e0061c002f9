"""HTML, and every format that is read by way of HTML (EPUB, e-mail parts, Markdown)."""
