"""What leaves the program: exports of a run and of what was computed from it."""
