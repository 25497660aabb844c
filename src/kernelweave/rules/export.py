"""Export of a rule model as a Python function, and the checks common to all exports."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelweave._types import Floats
from kernelweave.errors import InputError, InputTypeError

from .columns import Label, plain_value, shown
from .proposition import Proposition
from .rule import Rule, essential
from .scores import blocks, check_outputs

_RESERVED = {*dir(builtins), "row", "number", "label", "score", "scores", "part", "best"}


@dataclass(frozen=True)
class Model:
    """A checked rule model, ready for export."""

    rules: tuple[Rule, ...]  # in the order of their sum
    intercept: tuple[float, ...]  # one for each output
    classes: tuple[Label, ...]  # none: regression; two for one output, else one for each output
    names: dict[str, str]  # name of each feature in the export


def check_model(
    rules: Sequence[Rule],
    intercept: float | Sequence[float] | Floats,
    classes: Sequence[Any] | None,
    rename: Mapping[str, str] | None,
) -> Model:
    """Check the arguments of an export."""
    rules = tuple(rules)
    for i, rule in enumerate(rules):
        if not isinstance(rule, Rule):
            raise InputTypeError(f"rules must hold rules, but item {i} is {rule!r}.")
    start = check_outputs(rules, intercept)
    found = () if classes is None else tuple(_class(label) for label in classes)
    needed = 2 if len(start) == 1 else len(start)
    if classes is not None and len(found) != needed:
        raise InputError(
            f"classes must be None for regression, or name {needed} classes where intercept has "
            f"{len(start)} output(s), got {len(found)}."
        )
    features = dict.fromkeys(c.feature for rule in rules for c in rule.conditions)
    names = {feature: feature for feature in features}
    for feature, name in (rename or {}).items():
        if feature not in names:
            raise InputError(
                f"rename: no rule has the feature {feature!r}; the features are {shown(names)}."
            )
        if not isinstance(name, str):
            raise InputTypeError(f"rename: {feature!r} must become text, got {name!r}.")
        names[feature] = plain_value(name)
    return Model(rules, start, found, names)


def _class(label: Any) -> Label:
    plain: Label = plain_value(label)
    if not isinstance(plain, str | bool | int | float):
        raise InputTypeError(
            f"classes must be text, numbers or truth values, got {label!r}; encode them first."
        )
    return plain


def to_python(
    rules: Sequence[Rule],
    intercept: float | Sequence[float] | Floats,
    *,
    classes: Sequence[Any] | None = None,
    name: str = "predict",
    rename: Mapping[str, str] | None = None,
) -> str:
    """Write a model of rules as a Python function that imports nothing.

    The function takes a mapping from column to value and returns the class and the score (several
    classes: all scores), for regression the score alone. It adds in the order of `score_rules`.
    None and NaN satisfy no condition.

    Parameters
    ----------
    rules : sequence of Rule
        Each with as many weights as there are outputs.
    intercept : float or sequence of float
        One for each output.
    classes : sequence, default=None
        None for regression. One output: two classes, the second where the score is positive.
        Several outputs: one class for each, and the first with the largest score is predicted.
    name : str, default="predict"
        Name of the function.
    rename : mapping of str to str, default=None
        Other names for features, such as ``{"column 3": "age"}``.

    Returns
    -------
    code : str
        Text of the function.

    Examples
    --------
    >>> from kernelweave.rules import Proposition, Rule, to_python
    >>> young = Rule((Proposition("age", 0, "<=", 30),), 1.0, 0.5)
    >>> scope = {}
    >>> exec(to_python([young], -0.25, classes=["no", "yes"]), scope)
    >>> scope["predict"]({"age": 20}), scope["predict"]({"age": None})
    (('yes', 0.75), ('no', -0.25))
    """
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise InputError(f"name must be a name that Python allows for a function, got {name!r}.")
    model = check_model(rules, intercept, classes, rename)
    conditions = [c for rule in model.rules for c in essential(rule.conditions)]
    variables = _variables(conditions)
    lines = [f"def {name}(row):", *_HELP]
    lines.append("")
    for (feature, reader), variable in variables.items():
        lines.append(f"    {variable} = {reader}(row[{model.names[feature]!r}])")
    outputs = range(len(model.intercept))
    lines += [f"    score{t} = {model.intercept[t]!r}" for t in outputs]
    for block in blocks(model.rules):
        lines += [f"    part{t} = 0.0" for t in outputs]
        for rule in block:
            sums = [f"part{t} += {w!r}" for t, w in enumerate(rule.weights) if w]
            tests = [_test(c, variables) for c in essential(rule.conditions)]
            lines.append(f"    if {' and '.join(tests) or 'True'}:")
            lines += [f"        {line}" for line in sums or ["pass"]]
        lines += [f"    score{t} += part{t}" for t in outputs]
    return "\n".join([*lines, *_answer(model)]) + "\n"


_HELP = '''\
    """Predict one row, a mapping from column to value; None and NaN satisfy no condition."""

    def label(value):
        missing = value is None or type(value).__name__ in ("NAType", "NaTType") or value != value
        return None if missing else value

    def number(value):
        value = label(value)
        return float("nan") if value is None else float(value)
'''.splitlines()


def _variables(conditions: Sequence[Proposition]) -> dict[tuple[str, str], str]:
    """Return a variable for each column and reader, named like the column if possible."""
    found: dict[tuple[str, str], str] = {}
    for condition in conditions:
        key = (condition.feature, _reader(condition))
        if key in found:
            continue
        name = condition.feature
        plain = name.isidentifier() and name.isascii() and not keyword.iskeyword(name)
        # score0, part1 and x2 are made here; a column must not take such a name.
        made = name.rstrip("0123456789") in ("score", "part", "x")
        if not plain or made or name in _RESERVED or name in found.values():
            name = f"x{len(found)}"
        found[key] = name
    return found


def _reader(condition: Proposition) -> str:
    """Return the function of the exported code that reads the value."""
    return "number" if condition.is_numeric else "label"


def _test(condition: Proposition, variables: Mapping[tuple[str, str], str]) -> str:
    variable = variables[condition.feature, _reader(condition)]
    if condition.levels:
        return f"{variable} in {condition.allowed!r}"
    test = f"{variable} {condition.operator} {condition.value!r}"
    return f"{variable} is not None and {test}" if condition.operator == "!=" else test


def _answer(model: Model) -> list[str]:
    scores = [f"score{t}" for t in range(len(model.intercept))]
    if len(scores) == 1 and not model.classes:
        return ["    return score0"]
    if len(scores) == 1:
        first, second = model.classes
        return [f"    return {second!r} if score0 > 0 else {first!r}, score0"]
    lines = [f"    scores = ({', '.join(scores)})"]
    if not model.classes:
        return [*lines, "    return scores"]
    return [
        *lines,
        "    best = scores.index(max(scores))",
        f"    return {model.classes!r}[best], scores",
    ]
