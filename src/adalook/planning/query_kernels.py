"""Compiled loops that count queries: levels, balls and trees below a state. Arguments as in `kernels`."""

from __future__ import annotations

from adalook._jit import compiled


@compiled
def expand(codes, indptr, indices, num_hubs, member, out):
    """Mark in `out` every successor of a member state that is not reached through a hub."""
    num_states, num_actions = codes.shape
    for s in range(num_states):
        if member[s]:
            for a in range(num_actions):
                code = codes[s, a]
                if code >= 0:
                    out[code] = True
                elif code < -1 and -2 - code >= num_hubs:
                    row = -2 - code
                    for k in range(indptr[row], indptr[row + 1]):
                        out[indices[k]] = True


@compiled
def ball_pairs(codes, indptr, indices, num_hubs, offered, roots, depth, stamp, queue, out):
    """out[i] = distinct (state, action) pairs in the tree of `depth` levels below roots[i], hubs not expanded."""
    num_actions = codes.shape[1]
    for i in range(len(roots)):
        mark = i + 1
        stamp[roots[i]] = mark
        queue[0] = roots[i]
        head, tail = 0, 1
        total = 0
        for level in range(depth):
            end = tail
            while head < end:
                s = queue[head]
                head += 1
                total += offered[s]
                if level == depth - 1:
                    continue
                for a in range(num_actions):
                    code = codes[s, a]
                    if code >= 0:
                        if stamp[code] != mark:
                            stamp[code] = mark
                            queue[tail] = code
                            tail += 1
                    elif code < -1 and -2 - code >= num_hubs:
                        row = -2 - code
                        for k in range(indptr[row], indptr[row + 1]):
                            p = indices[k]
                            if stamp[p] != mark:
                                stamp[p] = mark
                                queue[tail] = p
                                tail += 1
        out[i] = total


@compiled
def tree_pairs(codes, indptr, indices, num_hubs, shallower, out):
    """out(s) = Σ_a (1 + Σ_s' shallower(s')): nodes of a tree one level deeper, hubs not expanded."""
    num_states, num_actions = codes.shape
    for s in range(num_states):
        total = 0
        for a in range(num_actions):
            code = codes[s, a]
            if code == -1:
                continue
            total += 1
            if code >= 0:
                total += shallower[code]
            elif -2 - code >= num_hubs:
                row = -2 - code
                for k in range(indptr[row], indptr[row + 1]):
                    total += shallower[indices[k]]
        out[s] = total
