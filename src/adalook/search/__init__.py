"""From a state to an action: an exact tree of fixed or adaptive depth."""
