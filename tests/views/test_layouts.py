"""Tables of other packages, whole and in narrow terminals."""

from dataclasses import replace

from tests.examples.comparison import COMPARISON
from tests.examples.printed import approve_view
from tests.examples.recordings import RECORDED
from tflab.compare import view as of_sizes
from tflab.convert import conversion
from tflab.convert import view as of_trace


def test_the_tables_of_comparisons_and_traces_give_way():
    one_size = replace(COMPARISON, tables={4: COMPARISON.tables[4]})
    approve_view("views-comparison.txt", of_sizes.blocks(one_size))
    approve_view("views-trace.txt", of_trace.blocks(conversion.convert(RECORDED)))
