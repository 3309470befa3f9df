"""Who judges whether a passage, or a pair of them, supports a claim."""
