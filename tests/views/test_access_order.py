"""The view of the order of reads and writes, from records made by hand."""

from tests.examples.printed import approve_view
from tests.records_by_hand import source
from tflab.records.graph import Access, BranchInput, Unordered
from tflab.views import frontend

READ = Access("mul/ReadVariableOp", "reads", source(12))
UPDATE = Access("train/update_weight", "writes", source(20))
BETA = Access("beta/Read", "reads", None)
SHOWN = ("shown:0", "loss:0", "a:0", "b:0")
ROWS = (
    Unordered("weight", READ, UPDATE, SHOWN[:1]),
    Unordered("weight", UPDATE, Access("assign", "writes", source(22)), ()),
    Unordered("beta", BETA, UPDATE, ()),
    Unordered("queue", Access("a", "takes", None), Access("b", "takes", None), SHOWN),
)
INPUTS = (BranchInput("z", "Mul", source(7), "then_branch of cond"),) * 5


def blocks(rows, inputs):
    facts = [*frontend.unordered(rows), *frontend.always_run(inputs)]
    return [f"{fact.label}: {fact.text}" for fact in facts]


def test_the_view_names_both_accesses_with_their_lines_and_what_is_computed_from_them():
    variants = {
        "nothing": blocks((), ()),
        "two writes": blocks(ROWS[1:2], INPUTS[:3]),
        "two takes": blocks(ROWS[3:], INPUTS[:4]),
    }
    approve_view("views-access-order.txt", blocks(ROWS, INPUTS), variants)
