"""Shown: what shows itself in a notebook, which asks a value for `_repr_html_`."""


class Shown:
    """A result that a notebook shows as its story: sentences and tables."""

    def _repr_html_(self) -> str:
        from tflab.exporters import notebook  # only there: records know no exporter

        return notebook.render(self)
