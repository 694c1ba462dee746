"""Rules for parameter groups: what they match, and what is said where they do not fit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import nn

import zoo
from zoo.groups import GroupRule, named_parameters, parameter_groups


class Tiny(nn.Module):
    """An embedding tied to the head, a norm, a linear layer, one frozen parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.tok_embed = nn.Embedding(5, 4)
        self.norm = nn.LayerNorm(4)
        self.hidden = nn.Linear(4, 4)
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.tok_embed.weight
        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)


def rule(match: dict[str, Any], **options: Any) -> GroupRule:
    return GroupRule.model_validate({"match": match, **options})


def names(groups: list[dict[str, Any]]) -> list[list[str]]:
    return [[name for name, _ in group["params"]] for group in groups]


def test_each_trainable_parameter_once_under_its_first_name() -> None:
    assert [name for name, _ in named_parameters(Tiny())] == [
        "tok_embed.weight",
        "norm.weight",
        "norm.bias",
        "hidden.weight",
        "hidden.bias",
    ]


def test_wrappers_leave_no_trace_in_names() -> None:
    plain = [name for name, _ in named_parameters(Tiny())]
    assert [name for name, _ in named_parameters(nn.DataParallel(Tiny()))] == plain
    assert [name for name, _ in named_parameters(torch.compile(Tiny()))] == plain


def test_rules_make_groups_in_their_own_order_after_the_rest() -> None:
    groups = parameter_groups(Tiny(), [rule({"ndim": "<2"}, weight_decay=0.0), rule({"name": "*embed*"}, lr=3e-4)])
    assert names(groups) == [["hidden.weight"], ["norm.weight", "norm.bias", "hidden.bias"], ["tok_embed.weight"]]
    assert [{k: v for k, v in group.items() if k != "params"} for group in groups] == [
        {},
        {"weight_decay": 0.0},
        {"lr": 3e-4},
    ]


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ({"ndim": 1}, ["norm.weight", "norm.bias", "hidden.bias"]),
        ({"ndim": ">= 2"}, ["tok_embed.weight", "hidden.weight"]),
        ({"ndim": "!=1"}, ["tok_embed.weight", "hidden.weight"]),
        ({"name": "head.*"}, ["tok_embed.weight"]),  # by the other name of the tied weight
        ({"name": ["norm.*", "hidden.b*"]}, ["norm.weight", "norm.bias", "hidden.bias"]),
        ({"module": "LayerNorm"}, ["norm.weight", "norm.bias"]),
        ({"module": ["Emb*", "LayerNorm"], "ndim": ">1"}, ["tok_embed.weight"]),
    ],
)
def test_what_a_match_matches(match: dict[str, Any], expected: list[str]) -> None:
    assert names(parameter_groups(Tiny(), [rule(match)]))[-1] == expected


def test_a_rule_that_matches_nothing_is_said_unless_it_may() -> None:
    with pytest.raises(zoo.ParameterGroupError, match=r"rule 1 \(name \*\.emb\*\) matches no parameter"):
        parameter_groups(Tiny(), [rule({"ndim": 1}), rule({"name": "*.emb*"})])
    assert len(parameter_groups(Tiny(), [rule({"name": "*.emb*"}, optional=True)])) == 1


def test_a_parameter_matched_twice_is_said_with_both_rules() -> None:
    with pytest.raises(zoo.ParameterGroupError) as caught:
        parameter_groups(Tiny(), [rule({"ndim": 2}, lr=1), rule({"name": "tok_*"}, lr=2)])
    assert str(caught.value) == (
        "parameter tok_embed.weight = head.weight is matched by rule 0 (ndim ==2) and rule 1 (name tok_*): narrow one of them"
    )


def test_a_long_list_of_problems_is_cut() -> None:
    params = [(f"p{i}", torch.ones(1)) for i in range(20)]
    with pytest.raises(zoo.ParameterGroupError, match="and 15 more"):
        parameter_groups(params, [rule({"ndim": 1}), rule({"name": "p*"})])


def test_tensors_without_names_can_be_matched_by_dimension_only() -> None:
    params = [torch.ones(2, 2), torch.ones(2)]
    (rest, small) = parameter_groups(iter(params), [rule({"ndim": 1}, lr=1.0)])
    assert rest["params"][0] is params[0]
    assert small["params"][0] is params[1]
    with pytest.raises(zoo.ParameterGroupError, match=r"model\.named_parameters\(\)"):
        parameter_groups(params, [rule({"name": "*"})])
    with pytest.raises(zoo.ParameterGroupError, match="needs to know the model"):
        parameter_groups([("a", params[0])], [rule({"module": "Linear"})])


@pytest.mark.parametrize("params", [torch.ones(3), {torch.ones(3)}])
def test_what_is_no_ordered_iterable_is_a_type_error_as_in_torch(params: Any) -> None:
    with pytest.raises(TypeError, match="params must be"):
        parameter_groups(params, [rule({"ndim": 1})])


def test_groups_made_by_hand_and_rules_exclude_each_other() -> None:
    with pytest.raises(zoo.ParameterGroupError, match="groups that are made already"):
        parameter_groups([{"params": [torch.ones(1)]}], [rule({"ndim": 1})])


@pytest.mark.parametrize("match", [{}, {"ndim": "2<"}, {"ndim": "< two"}, {"ndim": True}, {"dims": 1}, {"name": 3}])
def test_a_match_that_says_nothing_or_nonsense_is_refused(match: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        rule(match)
