"""Theory and mechanism: least squares as a layer, and associative memories."""
