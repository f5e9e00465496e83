"""Tables of other packages, whole and in narrow terminals."""

from dataclasses import replace

from tests.examples.comparison import COMPARISON
from tests.examples.lab import HISTORY
from tests.examples.printed import approve_view
from tflab.compare import view as of_sizes
from tflab.train import view as of_training


def test_the_tables_of_a_comparison_and_of_a_training_give_way():
    one_size = replace(COMPARISON, tables={4: COMPARISON.tables[4]})
    approve_view("views-comparison.txt", of_sizes.blocks(one_size))
    approve_view("views-training.txt", of_training.blocks(HISTORY))
