"""A walk by hand of one layer with its gradient, and a name that attacks a page."""

from tflab.records.graph import Node
from tflab.records.placed import Fate, Pass, Takeover
from tflab.records.stages import Backward, Frontend, Gradient, Placement

X = Node("x", "Placeholder")
KERNEL = Node("layer/kernel", "VarHandleOp")
READ = Node("layer/MatMul/ReadVariableOp", "ReadVariableOp", ("layer/kernel",))
MATMUL = Node("layer/MatMul", "MatMul", ("x", "layer/MatMul/ReadVariableOp"))
RELU = Node("layer/Relu", "Relu", ("layer/MatMul",))
LOSS = Node("loss", "Mean", ("layer/Relu",))
FORWARD = (X, KERNEL, READ, MATMUL, RELU, LOSS)

SEED = Node("gradients/ones", "Fill")
RELU_GRAD = Node("gradients/layer/Relu_grad", "ReluGrad", ("gradients/ones", "layer/Relu"))
WEIGHTS = Node("gradients/layer/MatMul_grad", "MatMul", ("x", "gradients/layer/Relu_grad"))
UPDATE = Node("train/update", "Apply", ("layer/kernel", "gradients/layer/MatMul_grad"))
TRAIN = Node("train", "NoOp", (), ("train/update",))
WHOLE = (*FORWARD, SEED, RELU_GRAD, WEIGHTS, UPDATE, TRAIN)

ARG = Node("_arg_x", "_Arg")
FUSED = Node("layer/Relu", "_FusedMatMul", ("_arg_x", "layer/MatMul/ReadVariableOp"))

FRONTEND = Frontend(program=None, nodes=FORWARD)
BACKWARD = Backward(
    program=None,
    nodes=WHOLE,
    added_nodes=tuple(node.name for node in WHOLE[len(FORWARD) :]),
    gradients=(
        Gradient("layer/Relu", "Relu", "_ReluGrad", ("gradients/layer/Relu_grad",)),
        Gradient("layer/MatMul", "MatMul", "_MatMulGrad", ("gradients/layer/MatMul_grad",)),
    ),
    update_nodes=("train/update", "train"),
    shared_nodes=("gradients/ones",),
    variable_count=1,
)
PLACEMENT = Placement(
    program=None,
    nodes=(ARG, KERNEL, READ, FUSED),
    user_nodes=WHOLE,
    passes=(
        Pass("layout", 0, 11, 11),
        Pass(
            "remapper",
            0,
            11,
            10,
            removed=("layer/MatMul",),
            taken=(Takeover("layer/MatMul", "fused", "layer/Relu"),),
            definitions=(FUSED,),
        ),
        Pass(
            "feeds_and_fetches",
            None,
            10,
            10,
            added=("_arg_x",),
            removed=("x",),
            taken=(Takeover("x", "removed", "_arg_x"),),
            definitions=(ARG,),
        ),
    ),
    ledger=(Fate("layer/MatMul", "fused", "remapper", "layer/Relu"),),
)
STAGES = (FRONTEND, BACKWARD, PLACEMENT)

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&{{ 7*7 }}\u2028\\'\""
