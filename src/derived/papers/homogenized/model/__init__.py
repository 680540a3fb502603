"""Theory and mechanism: random heads, one layer, the chains, and the equations for their overlaps."""
