"""Export of a rule model as a Python function, and the checks common to all exports."""

from __future__ import annotations

import builtins
import datetime
import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelweave._types import Floats
from kernelweave.errors import InputError, InputTypeError

from .columns import Label, plain_value, shown
from .dates import last_time
from .linear import LinearTerm, Term, is_linear
from .link import Link, Syntax
from .proposition import Proposition
from .rule import Rule, essential
from .scores import blocks, check_outputs

_RESERVED = {*dir(builtins), "row", "number", "label", "score", "scores", "part", "best"}
_RESERVED |= {"datetime", "exp", "date", "answers"}


@dataclass(frozen=True)
class Read:
    """As what a condition reads its column."""

    kind: str  # "number", "code" (a number that is a category), "text", "truth" or "time"
    form: str | None = None  # of dates that are written as text, as in ``datetime.strptime``

    def cut(self, condition: Proposition) -> datetime.datetime:
        """Return the threshold of a column of dates, which conditions hold as years."""
        return last_time(float(condition.value))


@dataclass(frozen=True)
class Model:
    """A checked rule model, ready for export."""

    rules: tuple[Term, ...]  # in the order of their sum
    intercept: tuple[float, ...]  # one for each output
    classes: tuple[Label, ...]  # none: regression; two, or one for each output
    names: dict[str, str]  # name of each feature in the export
    dates: dict[str, str | None]  # format of each feature that holds dates
    separate: bool  # whether each output chooses between two classes
    link: Link | None  # of probabilities

    def read(self, condition: Proposition | LinearTerm) -> Read:
        """Return as what a condition reads its column."""
        if is_linear(condition):
            return Read("number")
        if condition.is_numeric:
            if condition.feature in self.dates:
                return Read("time", self.dates[condition.feature])
            return Read("number")
        values = condition.levels or (condition.value,)
        if any(isinstance(value, str) for value in values):
            return Read("text")
        return Read("truth" if any(isinstance(value, bool) for value in values) else "code")

    @property
    def reads(self) -> dict[tuple[str, Read], str]:
        """The features that conditions read, and as what, with their names in the export."""
        conditions = [c for rule in self.rules for c in needed(rule)]
        return {(c.feature, self.read(c)): self.names[c.feature] for c in conditions}


def needed(term: Term) -> tuple[Proposition | LinearTerm, ...]:
    """Return what a term reads of a row: conditions that no other one implies, or a column."""
    return (term,) if is_linear(term) else essential(term.conditions)


def check_model(
    rules: Sequence[Term],
    intercept: float | Sequence[float] | Floats,
    classes: Sequence[Any] | None,
    rename: Mapping[str, str] | None,
    *,
    dates: Mapping[str, str | None] | None = None,
    separate: bool = False,
    link: Link | None = None,
) -> Model:
    """Check the arguments of an export."""
    rules = tuple(rules)
    for i, rule in enumerate(rules):
        if not isinstance(rule, Rule | LinearTerm):
            raise InputTypeError(f"rules must hold rules, but item {i} is {rule!r}.")
    start = check_outputs(rules, intercept)
    found = () if classes is None else tuple(_class(label) for label in classes)
    n_classes = 2 if len(start) == 1 or separate else len(start)
    if classes is not None and len(found) != n_classes:
        raise InputError(
            f"classes must be None for regression, or name {n_classes} classes where intercept has "
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
    if link is not None and (classes is None or len(link.slopes) != len(start)):
        raise InputError(
            f"link: probabilities need classes and {len(start)} output(s), got {link!r}."
        )
    known = {feature: form for feature, form in (dates or {}).items() if feature in names}
    for rule in rules:
        if is_linear(rule) and rule.feature in known:
            raise InputError(
                f"dates: {rule.feature!r} has a linear term, which needs the years as numbers. "
                "Hint: leave it out of dates, or fit with linear_terms=False."
            )
    return Model(rules, start, found, names, known, separate, link)


def _class(label: Any) -> Label:
    plain: Label = plain_value(label)
    if not isinstance(plain, str | bool | int | float):
        raise InputTypeError(
            f"classes must be text, numbers or truth values, got {label!r}; encode them first."
        )
    return plain


def to_python(
    rules: Sequence[Term],
    intercept: float | Sequence[float] | Floats,
    *,
    classes: Sequence[Any] | None = None,
    name: str = "predict",
    rename: Mapping[str, str] | None = None,
    dates: Mapping[str, str | None] | None = None,
    separate: bool = False,
    link: Link | None = None,
) -> str:
    """Write a model of rules as a Python function that needs no package.

    The function takes a mapping from column to value and returns the class and the score (several
    outputs: all scores), for regression the score alone. It adds in the order of `score_rules`.
    None and NaN satisfy no condition.

    Parameters
    ----------
    rules : sequence of Rule or LinearTerm
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
    dates : mapping of str to str or None, default=None
        Features whose thresholds are years with decimals, but whose columns hold dates; with the
        format of ``datetime.strptime`` where they are text, such as ``{"born": "%d.%m.%Y"}``.
    separate : bool, default=False
        Whether each output chooses between the two classes, as labels and tasks do.
    link : Link, default=None
        Adds the probability that the score is right about the second class to what the function
        returns (several classes: those of all).

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
    model = check_model(
        rules, intercept, classes, rename, dates=dates, separate=separate, link=link
    )
    variables = _variables(model)
    lines = [f"def {name}(row):", *_HELP]
    if any(read.kind == "time" for _, read in variables):
        lines += ["", *_DATES]
    lines.append("")
    for (feature, read), variable in variables.items():
        column = f"row[{model.names[feature]!r}]"
        reader = {"number": "number", "time": "date"}.get(read.kind, "label")
        form = f", {read.form!r}" if read.form else ""
        lines.append(f"    {variable} = {reader}({column}{form})")
    outputs = range(len(model.intercept))
    lines += [f"    score{t} = {model.intercept[t]!r}" for t in outputs]
    for block in blocks(model.rules):
        lines += [f"    part{t} = 0.0" for t in outputs]
        for rule in block:
            if is_linear(rule):
                lines += _linear_lines(rule, variables[rule.feature, model.read(rule)])
                continue
            sums = [f"part{t} += {w!r}" for t, w in enumerate(rule.weights) if w]
            tests = [_test(c, model, variables) for c in essential(rule.conditions)]
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

# The clock counts, not the time zone, as in the preparation of tables.
_DATES = """\
    from datetime import datetime

    def date(value, form="%Y-%m-%d"):
        value = label(value)
        if isinstance(value, str):
            value = datetime.strptime(value.strip(), form)
        if value is None or isinstance(value, datetime):
            return value if value is None else value.replace(tzinfo=None)
        return datetime(value.year, value.month, value.day)
""".splitlines()


def _variables(model: Model) -> dict[tuple[str, Read], str]:
    """Return a variable for each column and way to read it, named like the column if possible."""
    found: dict[tuple[str, Read], str] = {}
    for key in model.reads:
        name = key[0]
        plain = name.isidentifier() and name.isascii() and not keyword.iskeyword(name)
        # score0, part1 and x2 are made here; a column must not take such a name.
        made = name.rstrip("0123456789") in ("score", "part", "x")
        if not plain or made or name in _RESERVED or name in found.values():
            name = f"x{len(found)}"
        found[key] = name
    return found


def _linear_lines(term: LinearTerm, variable: str) -> list[str]:
    """Return the lines that add a linear term; NaN is not equal to itself."""
    above = f"(min(max({variable}, {term.low!r}), {term.high!r}) - {term.mean!r})"
    sums = [f"        part{t} += {w!r} * {above}" for t, w in enumerate(term.weights) if w]
    return [f"    if {variable} == {variable}:", *(sums or ["        pass"])]


def _test(condition: Proposition, model: Model, variables: Mapping[tuple[str, Read], str]) -> str:
    read = model.read(condition)
    variable = variables[condition.feature, read]
    if condition.levels:
        return f"{variable} in {condition.allowed!r}"
    if read.kind == "time":
        cut = repr(read.cut(condition)).removeprefix("datetime.")
        return f"{variable} is not None and {variable} {condition.operator} {cut}"
    test = f"{variable} {condition.operator} {condition.value!r}"
    return f"{variable} is not None and {test}" if condition.operator == "!=" else test


def _answer(model: Model) -> list[str]:
    scores = [f"score{t}" for t in range(len(model.intercept))]
    one = len(scores) == 1
    if not model.classes:
        return ["    return score0" if one else f"    return {', '.join(scores)}"]
    lines = [] if model.link is None else ["    from math import exp", ""]
    if one or model.separate:
        first, second = map(repr, model.classes)
        choices = [f"{second} if {score} > 0 else {first}" for score in scores]
        answer = choices[0] if one else f"({', '.join(choices)},)"
    else:
        lines += [f"    scores = ({', '.join(scores)})", "    best = scores.index(max(scores))"]
        answer = f"{model.classes!r}[best]"
    returned = [answer, "score0" if one else f"({', '.join(scores)})"]
    if model.link is not None:
        shares = model.link.write(scores, _SYNTAX)
        returned.append(shares[0] if one else f"({', '.join(shares)})")
    return [*lines, f"    return {', '.join(returned)}"]


def _python_case(cases: Sequence[tuple[str, str]], otherwise: str) -> str:
    return " else ".join([*(f"{value} if {test}" for test, value in cases), otherwise])


_SYNTAX = Syntax(lambda value: repr(float(value)), "min(max({}, {}), {})", "exp({})", _python_case)
