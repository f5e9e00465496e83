"""Report: the whole lab as one page."""
