"""Exporters: results become text, files and pages. One file each; none of them runs a step."""
