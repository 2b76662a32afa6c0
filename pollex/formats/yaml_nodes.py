"""YAML before it becomes values: how much its aliases stand for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import yaml


def count_yaml_size_with_aliases_expanded(node: yaml.Node) -> float:
    """Count a node's parts and characters with each alias written out; infinite where it holds itself.

    Raises:
        RecursionError: It is nested too deeply.
    """
    return _count_expanded_size_of_node(node, {})


def _count_expanded_size_of_node(node: yaml.Node, sizes: dict[int, float]) -> float:
    if id(node) not in sizes:
        # infinite while it is counted, so that an alias inside of itself stays so
        sizes[id(node)] = math.inf
        if isinstance(node.value, str):
            size: float = len(node.value)
        else:
            # a list has nodes, a mapping pairs of them
            size = 0
            for child in node.value:
                for part in child if isinstance(child, tuple) else (child,):
                    size += _count_expanded_size_of_node(part, sizes)

        sizes[id(node)] = 1 + size

    return sizes[id(node)]
