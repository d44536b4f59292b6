"""Slots of components and the labels that rewards carry: kernels.mixture.records."""

import numpy as np

from polyarm.kernels.mixture.records import NEXT, ROWS
from polyarm.types import IntArray


def doubled_slots(slots: IntArray) -> IntArray:
    """Labels of all slots and slots of all labels, (..., 2, C), with twice the room; new slots carry new labels."""
    capacity = slots.shape[-1]
    new = np.broadcast_to(np.arange(capacity, 2 * capacity), slots.shape)
    return np.ascontiguousarray(np.concatenate([slots, new], axis=-1))


def slots_in_order(slots: IntArray, size: IntArray, labels: IntArray) -> IntArray:
    """The slot of each of an arm's rewards that can still move, oldest first."""
    return np.asarray(slots[1][np.concatenate([labels[size[NEXT] : size[ROWS]], labels[: size[NEXT]]])])
