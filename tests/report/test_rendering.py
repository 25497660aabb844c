"""Templates escape every value, and miss none."""

import pytest

from kernelweave.report.rendering import Section, environment


def test_values_are_escaped_and_control_characters_shown():
    section = Section("any", "Any", {"name": "<b>\x1b"}, template="{{ name }} {{ 0.5|percent }}")
    assert section.render() == "&lt;b&gt;\\x1b 50.0%"


def test_names_are_broken_between_words():
    names = {"name": "mean_size", "other": "DistanceFromHome<A"}
    section = Section("any", "Any", names, template="{{ name|breakable }} {{ other|breakable }}")
    assert section.render() == "mean_<wbr/>size Distance<wbr/>From<wbr/>Home&lt;A"


def test_a_value_that_is_missing_is_an_error():
    undefined = pytest.importorskip("jinja2").UndefinedError
    with pytest.raises(undefined, match="absent"):
        environment().from_string("{{ absent }}").render()
