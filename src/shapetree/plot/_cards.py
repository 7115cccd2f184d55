"""The card for each kind of shape function."""

from __future__ import annotations

from shapetree.plot._card import Card
from shapetree.plot._pair_card import PairCard
from shapetree.plot._scene import Scene
from shapetree.plot._strips import CategoryCard, OrderedCard
from shapetree.tree._view import NodeView


def card_for(scene: Scene, node: NodeView) -> Card:
    """The card of a node that splits."""
    if len(node.features) == 2:
        return PairCard(scene, node)
    if node.features[0].is_categorical:
        return CategoryCard(scene, node)
    return OrderedCard(scene, node)
