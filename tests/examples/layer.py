"""A walk by hand of one layer with its gradient, and a name that attacks a page."""

from tests.graph_notation import graph, one_pass
from tests.records_by_hand import a_backward, a_frontend, a_placement
from tflab.records.placed import Fate
from tflab.records.stages import Gradient

FORWARD = graph(
    """x=Placeholder; layer/kernel=VarHandleOp;
    layer/MatMul/ReadVariableOp=ReadVariableOp(layer/kernel);
    layer/MatMul=MatMul(x,layer/MatMul/ReadVariableOp); layer/Relu=Relu(layer/MatMul);
    loss=Mean(layer/Relu)"""
)
ADDED = graph(
    """gradients/ones=Fill; gradients/layer/Relu_grad=ReluGrad(gradients/ones,layer/Relu);
    gradients/layer/MatMul_grad=MatMul(x,gradients/layer/Relu_grad);
    train/update=Apply(layer/kernel,gradients/layer/MatMul_grad); train=NoOp(^train/update)"""
)
WHOLE = (*FORWARD, *ADDED)
ARG, FUSED = graph("_arg_x=_Arg; layer/Relu=_FusedMatMul(_arg_x,layer/MatMul/ReadVariableOp)")

FRONTEND = a_frontend(nodes=FORWARD)
BACKWARD = a_backward(
    nodes=WHOLE,
    added_nodes=tuple(node.name for node in ADDED),
    gradients=(
        Gradient("layer/Relu", "Relu", "_ReluGrad", ("gradients/layer/Relu_grad",), None),
        Gradient("layer/MatMul", "MatMul", "_MatMulGrad", ("gradients/layer/MatMul_grad",), None),
    ),
    update_nodes=("train/update", "train"),
    variable_count=1,
)
PLACEMENT = a_placement(
    nodes=(ARG, *FORWARD[1:3], FUSED),
    user_nodes=WHOLE,
    passes=(
        one_pass("layout: ", 11, 11, 0),
        one_pass("remapper: -layer/MatMul, layer/MatMul fused layer/Relu", 11, 10, 0, (FUSED,)),
        one_pass("feeds_and_fetches: +_arg_x, -x, x removed _arg_x", 10, 10, None, (ARG,)),
    ),
    ledger=(Fate("layer/MatMul", "fused", "remapper", "layer/Relu"),),
)
STAGES = (FRONTEND, BACKWARD, PLACEMENT)

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&{{ 7*7 }}\u2028\\'\""
