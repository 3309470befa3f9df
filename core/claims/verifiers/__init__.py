"""Who judges whether a passage supports a claim, alone or with another one."""
