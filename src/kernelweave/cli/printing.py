"""Kernels, rules, tables and facts on a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from kernelweave._text import clip

from .parsing import shown

_SHOWN = 12
_LEAST = 20  # letters of a text before it is broken
_NAME = 60  # letters of a name in a table, which is shortened in its middle
_KERNEL = 120  # the same of kernels, some of which are products of others
_RULE = 600  # the same of rules, whose conditions are shortened one by one
_NUMBER = 15  # letters that a column of numbers takes with the space beside it


def print_kernels(console: Any, summary: dict[str, Any]) -> None:
    """Print a table of the heaviest kernels."""
    kernels, total = summary["kernels"], sum(k["weight"] for k in summary["kernels"])
    named = ["kernel", "weight"]
    lines = [[k["kernel"], f"{k['weight']:.4g}"] for k in kernels[:_SHOWN]]
    if kernels and kernels[0]["contribution"] is not None:
        named.append("contribution")
        for line, kernel in zip(lines, kernels, strict=False):
            line.append(f"{kernel['contribution']:.1%}")
    print_table(console, named, lines, most=_KERNEL)
    kept = f"{summary['kernels_used']} of {summary['kernels_offered']} kernels are in use"
    if len(kernels) > _SHOWN:
        share = sum(k["weight"] for k in kernels[:_SHOWN]) / total
        kept += f"; the {_SHOWN} heaviest above carry {share:.0%} of the weight"
    console.print(f"{kept}.", soft_wrap=True)


def print_rules(console: Any, summary: dict[str, Any], limit: int = _SHOWN) -> None:
    """Print a table of the heaviest rules."""
    rules, n_outputs = summary["rules"], len(summary["intercept"])
    known = summary["classes"]
    outputs = known if known is not None and len(known) == n_outputs else range(n_outputs)
    weights = ["weight"] if n_outputs == 1 else [f"weight {clip(name, 24)}" for name in outputs]
    lines: list[tuple[str, ...]] = [
        (_brief(rule), *(f"{w:+.4g}" for w in rule["weights"]), f"{rule['coverage']:.1%}")
        for rule in rules[:limit]
    ]
    lines.append(("intercept", *(f"{b:+.4g}" for b in summary["intercept"]), ""))
    if _NUMBER * (n_outputs + 1) + _LEAST > console.width:
        lines = [_strongest(rule, list(outputs)) for rule in rules[:limit]]
        names = ["rule", "class", "weight", "coverage"]
        print_table(console, names, lines, texts=(0, 1), most=_RULE)
        console.print("Of every rule the class with the largest weight; --json prints all.")
    else:
        print_table(console, ["rule", *weights, "coverage"], lines, most=_RULE)
    more = f"; the {limit} that matter most are above" if len(rules) > limit else ""
    console.print(f"A score is the intercept and the weights of the rules that hold{more}.")


def _brief(rule: dict[str, Any]) -> str:
    """Return a rule with its conditions shortened, not their number."""
    return " and ".join(shown(part, _NAME) for part in rule["rule"].split(" and "))


def _strongest(rule: dict[str, Any], outputs: list[Any]) -> tuple[str, ...]:
    """Return a rule with the class that it tells most about."""
    weight, name = max(zip(rule["weights"], outputs, strict=True), key=lambda pair: abs(pair[0]))
    return _brief(rule), shown(name, _NAME), f"{weight:+.4g}", f"{rule['coverage']:.1%}"


def print_table(
    console: Any,
    names: list[str],
    lines: Iterable[Iterable[str]],
    texts: Collection[int] = (0,),
    *,
    most: int = _NAME,
) -> None:
    """Print a table of numbers, and of texts in some columns, which may be broken or shortened."""
    from rich import box
    from rich.table import Table

    rows = [[shown(text, most) for text in line] for line in lines]
    names = [shown(name, _NAME) for name in names]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for k, name in enumerate(names):
        style = "cyan" if k == 0 else None
        if k in texts:
            table.add_column(name, overflow="fold", style=style)
        else:  # a number stays whole; its name may be broken
            cells = max((len(row[k]) for row in rows), default=0)
            word = max(map(len, name.split()), default=0)
            # Rich keeps to a width, but not to a least width, where a table is too wide.
            width = max(cells, min(word, _NUMBER - 3))
            table.add_column(name, justify="right", overflow="fold", style=style, width=width)
    for row in rows:
        table.add_row(*row)
    console.print()
    console.print(table)
    console.print()


def print_facts(console: Any, facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns."""
    facts = list(facts)
    width = max(len(name) for name, _ in facts)
    console.print()
    for name, value in facts:
        console.print(f"{name:<{width}}  {value}", soft_wrap=True)
