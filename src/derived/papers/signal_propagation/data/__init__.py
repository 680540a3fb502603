"""Generated images in place of photographs."""
