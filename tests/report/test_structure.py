"""Drawings of structures."""

from kernelweave.report.structure import Node, _layout


def test_a_drawing_with_too_many_nodes_is_left_out(monkeypatch):
    nodes = {
        0: Node("sum", "s", None, (1, 2)),
        1: Node("leaf", "a", 1.0, ()),
        2: Node("leaf", "b", 1.0, ()),
    }
    assert _layout(nodes, [1, 2, 0], "caption", flush=False) is not None
    monkeypatch.setattr("kernelweave.report.structure._MOST", 0)
    assert _layout(nodes, [1, 2, 0], "caption", flush=False) is None
