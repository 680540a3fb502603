"""One plain transformer block, and the mechanism of each paper as a small change of it (the page "One block")."""
