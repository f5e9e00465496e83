"""Blocks of every kind, with every kind of column: for the tests of their formats."""

from tflab.records.blocks import Column, Table, listing, sentences

NODE = Column("node", lambda row: row[0], elastic=True, name=True)
CALLS = Column("calls", lambda row: f"{row[1]:,}", right=True)
TOTAL = Column("total", lambda row: row[2], right=True, spare=1)
TYPES = Column("types", lambda row: row[3], elastic=True, spare=2)
OPS = Table(
    "Ops_1",
    (NODE, CALLS, TOTAL, TYPES),
    (
        ("conv1/Conv2D/Relu", 64, "6.40 ms", "_FusedConv2D"),
        ("pool_1", 1_280, "9.60 us", "MaxPool, 2 Const & <more>"),
        ("[red]one[/red] :smile:", 3, "7 ns", ""),
    ),
    more=1234,
    option="--top shows more",
    tone=lambda row: {3: "less", 64: "dearest"}.get(row[1], ""),
)
PASSES = listing(
    "The_passes",
    (
        ("re_mapper", ("2 of <3> nodes", "fused: conv_1", "taken: bias")),
        ("layout", ("moved: pool_1, because its neighbours are in another layout",)),
    ),
)
BLOCKS = (
    "Two *ops* of [bold]12[/bold] ran.",
    PASSES,
    sentences("Findings", ("By the dumps_.", "- word " * 20)),
    OPS,
    Table("Graph", (NODE, CALLS), (("●", 1), ("│ ●", 20)), drawing=True, more=5),
    Table(
        "",
        (Column("", lambda row: row[0]), Column("", lambda row: row[1])),
        (("step", "2.40 ms"), ("chain rule", "one factor " * 9)),
    ),
    Table("Nothing", (NODE, CALLS), ()),
)
