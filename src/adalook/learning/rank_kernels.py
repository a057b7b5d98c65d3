"""A treap in arrays: a search tree by (distance, slot) that is a heap by a fixed priority of each slot.

Priorities are a one-to-one mixing of the slot number, so the tree is a function of what is recorded and not of the
order in which it was recorded: built in bulk or bit by bit, it is the same tree. Its depth is O(log n) unless
distances were chosen against the mixing.

`left`, `right`, `size` have two places more than there are slots: NIL (index `capacity`, the empty tree, size 0) and
the anchor (index `capacity + 1`), whose left child is the root. A slot that is not recorded has size 0.
"""

from __future__ import annotations

import numpy as np

from adalook._jit import compiled, inlined


@inlined
def _priority(slot):
    """Murmur's 32-bit finaliser: one to one, so no two slots tie."""
    x = np.uint32(slot)
    x = np.uint32((x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    x = np.uint32((x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.uint32(x ^ (x >> np.uint32(16)))


@inlined
def _before(distances, a, b):
    """Whether slot a comes before slot b: by distance, equal distances by slot."""
    return distances[a] < distances[b] or (distances[a] == distances[b] and a < b)


@inlined
def _hang(left, right, parent, on_left, node):
    if on_left:
        left[parent] = node
    else:
        right[parent] = node


@compiled
def insert(left, right, size, distances, slot):
    """Record `slot`, whose distance is in place already."""
    nil = len(size) - 2
    rank = _priority(slot)
    parent, on_left, node = nil + 1, True, left[nil + 1]
    while node != nil and _priority(node) > rank:
        size[node] += 1
        parent, on_left = node, _before(distances, slot, node)
        node = left[node] if on_left else right[node]
    _hang(left, right, parent, on_left, slot)
    _split(left, right, size, distances, slot, node)


@inlined
def _split(left, right, size, distances, slot, tree):
    """Make what comes before `slot` in `tree` its left subtree and the rest its right one.

    Counting first how many come before gives each node on the way its new size at once, with no way back up.
    """
    nil = len(size) - 2
    before, node = 0, tree
    while node != nil:
        if _before(distances, node, slot):
            before += size[left[node]] + 1
            node = right[node]
        else:
            node = left[node]
    after = size[tree] - before
    size[slot] = before + after + 1
    low_parent, low_is_left, high_parent, high_is_left = slot, True, slot, False
    node = tree
    while node != nil:
        if _before(distances, node, slot):
            _hang(left, right, low_parent, low_is_left, node)
            size[node], before = before, before - size[left[node]] - 1
            low_parent, low_is_left = node, False
            node = right[node]
        else:
            _hang(left, right, high_parent, high_is_left, node)
            size[node], after = after, after - size[right[node]] - 1
            high_parent, high_is_left = node, True
            node = left[node]
    _hang(left, right, low_parent, low_is_left, nil)
    _hang(left, right, high_parent, high_is_left, nil)


@compiled
def remove(left, right, size, distances, slot):
    """Forget `slot`, which is recorded: its two subtrees are merged where it was."""
    nil = len(size) - 2
    parent, on_left, node = nil + 1, True, left[nil + 1]
    while node != slot:
        size[node] -= 1
        parent, on_left = node, _before(distances, slot, node)
        node = left[node] if on_left else right[node]
    low, high = left[slot], right[slot]
    size[slot] = 0
    while low != nil and high != nil:
        if _priority(low) > _priority(high):
            size[low] += size[high]
            _hang(left, right, parent, on_left, low)
            parent, on_left, low = low, False, right[low]
        else:
            size[high] += size[low]
            _hang(left, right, parent, on_left, high)
            parent, on_left, high = high, True, left[high]
    _hang(left, right, parent, on_left, high if low == nil else low)


@compiled
def build(left, right, size, order):
    """The tree of the slots in `order` (ascending), in linear time: `insert` one by one gives the same arrays."""
    nil = len(size) - 2
    spine = np.empty(len(order), np.int64)  # the right-hand edge of the tree so far, from the root down
    height = 0
    for slot in order:
        below = nil
        while height > 0 and _priority(spine[height - 1]) < _priority(slot):
            height -= 1
            below = spine[height]
            size[below] = size[left[below]] + size[right[below]] + 1
        left[slot], right[slot] = below, nil
        if height > 0:
            right[spine[height - 1]] = slot
        spine[height] = slot
        height += 1
    while height > 0:
        height -= 1
        node = spine[height]
        size[node] = size[left[node]] + size[right[node]] + 1
        left[nil + 1] = node


@compiled
def count_above(left, right, size, distances, distance):
    """How many recorded distances are greater."""
    nil = len(size) - 2
    count, node = 0, left[nil + 1]
    while node != nil:
        if distances[node] > distance:
            count += size[right[node]] + 1
            node = left[node]
        else:
            node = right[node]
    return count


@compiled
def count_at_least(left, right, size, distances, distance):
    """How many recorded distances are greater or equal."""
    nil = len(size) - 2
    count, node = 0, left[nil + 1]
    while node != nil:
        if distances[node] >= distance:
            count += size[right[node]] + 1
            node = left[node]
        else:
            node = right[node]
    return count


@compiled
def largest(left, right, size, place):
    """The slot of the `place`-th largest distance, 1 <= place <= n."""
    nil = len(size) - 2
    node = left[nil + 1]
    while True:
        above = size[right[node]] + 1
        if place == above:
            return node
        if place < above:
            node = right[node]
        else:
            place -= above
            node = left[node]
