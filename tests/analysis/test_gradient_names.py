"""Gradient names: scopes of every kind, worked out by hand."""

from tflab.analysis.gradient_search import owners

FORWARD = ["loss/Mean", "y", "net/MatMul", "my_grad/x"]


def test_the_scope_of_gradients_may_stand_in_any_other_and_have_a_number():
    names = {
        "gradients/loss/Mean_grad/Tile": "loss/Mean",
        "gradients_1/y_grad/ReluGrad": "y",
        "train/gradients_12/net/MatMul_grad/tuple/control_dependency": "net/MatMul",
        "loss/gradients/loss/Mean_grad/Shape": "loss/Mean",
        "gradients/y_grad_1/ReluGrad": "y",
        "gradients/my_grad/x_grad/Mul": "my_grad/x",
        "gradient_tape/net/MatMul/MatMul_1": "net/MatMul",
    }
    assert owners([*FORWARD, *names]) == names


def test_a_graph_that_was_imported_under_a_name_has_it_in_front_of_all():
    names = ["imported/y", "imported/gradients/y_grad/ReluGrad"]
    assert owners(names) == {"imported/gradients/y_grad/ReluGrad": "imported/y"}


def test_a_gradient_of_a_gradient_belongs_to_that_gradient():
    names = [*FORWARD, "gradients/y_grad/Mul", "gradients_1/gradients/y_grad/Mul_grad/Neg"]
    assert owners(names) == {
        "gradients/y_grad/Mul": "y",
        "gradients_1/gradients/y_grad/Mul_grad/Neg": "gradients/y_grad/Mul",
    }


def test_a_scope_of_another_name_is_believed_only_of_what_is_a_gradient():
    names = [*FORWARD, "tower/y_grad/ReluGrad", "tower/gone_grad/Mul"]
    assert owners(names) == {}
    assert owners(names, gradient_names=names[-2:]) == {"tower/y_grad/ReluGrad": "y"}
